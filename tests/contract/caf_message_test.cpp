#include "zlink/caf/message_codec.hpp"
#include "zlink/caf/packet_ops.hpp"
#include "zlink/codec.hpp"
#include "zlink/messaging/body_codec.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace caf_message_test {

struct known {
  std::string text;
};
ZLINK_PACKET(known, "caf_message_test.known", text)

struct registered {
  int value = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, registered& x) {
  return f(x.value);
}

struct unregistered {
  int value = 0;
};
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, unregistered& x) {
  return f(x.value);
}

struct config : caf::actor_system_config {
  config() { add_message_type<registered>("caf_message_test.registered"); }
};

using namespace zlink;
using namespace zlink::detail;

/// Encodes `content` as a frame would carry it.
encoded_value encoded(caf::actor_system& system, caf::message content) {
  codec_registry codecs;
  payload body;
  body.emplace<caf::message>(std::move(content));
  body_encoder encoder{body, codecs, &system};
  bytes data;
  encoder.encode(data);
  return {encoder.packet_name(), encoder.content_type(), data};
}

TEST_CASE("D-13 several values, atoms and registered types come back as they were, under the names of their types") {
  config cfg;
  caf::actor_system system{cfg};
  const auto value =
    encoded(system, caf::make_message(caf::atom("add"), std::string{"sku"}, std::int32_t{3}, registered{7}));
  CHECK(value.packet_name() == "caf:@atom,@str,@i32,caf_message_test.registered");
  CHECK(value.content_type() == caf_content_type);
  const auto back = decode_caf_message(system, value.packet_name(), value.data());
  REQUIRE(back.match_elements<caf::atom_value, std::string, std::int32_t, registered>());
  CHECK(back.get_as<caf::atom_value>(0) == caf::atom("add"));
  CHECK(back.get_as<std::string>(1) == "sku");
  CHECK(back.get_as<std::int32_t>(2) == 3);
  CHECK(back.get_as<registered>(3).value == 7);
}

TEST_CASE("D-11 D-13 one packet in a CAF message travels as that packet") {
  config cfg;
  caf::actor_system system{cfg};
  const auto value = encoded(system, caf::make_message(known{"hello"}));
  CHECK(value.packet_name() == "caf_message_test.known");
  CHECK(value.content_type() == binary_content_type);
  CHECK(decode<known>(value.data()).text == "hello");
}

TEST_CASE("D-13 types that CAF does not know are refused at the sender, with a way out") {
  config cfg;
  caf::actor_system system{cfg};
  CHECK_THROWS_WITH_AS(encoded(system, caf::make_message(std::int32_t{1}, unregistered{})),
                       doctest::Contains("add_message_type"), encode_error);
}

TEST_CASE("D-13 truncated bytes, bytes left over and other types than the name says are refused at the receiver") {
  config cfg;
  caf::actor_system system{cfg};
  const auto value = encoded(system, caf::make_message(std::string{"text"}, std::int32_t{1}));
  for (std::size_t size = 0; size < value.data().size(); ++size) {
    const bytes cut{value.data().begin(), value.data().begin() + static_cast<std::ptrdiff_t>(size)};
    CHECK_THROWS_AS(decode_caf_message(system, value.packet_name(), cut), decode_error);
  }
  bytes longer{value.data().begin(), value.data().end()};
  longer.push_back(std::byte{0});
  CHECK_THROWS_AS(decode_caf_message(system, value.packet_name(), longer), decode_error);
  CHECK_THROWS_AS(decode_caf_message(system, "caf:@str", value.data()), decode_error);
}

} // namespace caf_message_test
