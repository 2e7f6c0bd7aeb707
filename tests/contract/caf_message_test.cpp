#include "zlink/caf/message_codec.hpp"
#include "zlink/caf/packet_ops.hpp"
#include "zlink/codec.hpp"
#include "zlink/messaging/body_codec.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/deep_to_string.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
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

TEST_CASE("D-11 a packet is to CAF a message of one value: shared without a copy, changed by its only owner") {
  const auto& ops = *packet_type_of<known>().caf.load();
  known value{"a text that no string holds in place"};
  auto first = to_caf_message(ops, &value);
  CHECK(value.text.empty());
  CHECK(first.match_elements<known>());
  CHECK_FALSE(first.match_elements<std::string>());
  CHECK(caf::to_string(first) == caf::to_string(caf::make_message(known{"a text that no string holds in place"})));

  const auto second = first;
  CHECK(second.cvals().get() == first.cvals().get());
  first.get_mutable_as<known>(0).text = "changed";
  CHECK(second.get_as<known>(0).text == "a text that no string holds in place");
  CHECK(first.get_as<known>(0).text == "changed");
}

TEST_CASE("D-13 what a handler takes from a CAF message that others hold too stays in it") {
  const auto& ops = *packet_type_of<known>().caf.load();
  const std::string text = "a text that no string holds in place";
  alignas(known) std::byte place[sizeof(known)];
  const auto take = [&](caf::message& from) {
    if (!take_from(from, ops, place))
      return std::string{"nothing"};
    auto* taken = reinterpret_cast<known*>(place);
    auto found = std::move(taken->text);
    std::destroy_at(taken);
    return found;
  };
  auto shared = caf::make_message(known{text});
  const auto kept = shared;
  CHECK(take(shared) == text);
  CHECK(kept.get_as<known>(0).text == text);
  auto own = caf::make_message(known{text});
  CHECK(take(own) == text);
  auto other = caf::make_message(registered{1});
  CHECK(take(other) == "nothing");
  auto several = caf::make_message(known{text}, 1);
  CHECK(take(several) == "nothing");
}

TEST_CASE("D-13 a packet travels through CAF's own serialization, alone and among other values") {
  config settings;
  announce(*packet_type_of<known>().caf.load(), settings);
  caf::actor_system system{settings};
  known value{"alone"};
  for (const auto& sent : {to_caf_message(*packet_type_of<known>().caf.load(), &value),
                           caf::make_message(7, known{"among others"}, registered{8})}) {
    std::vector<char> data;
    caf::binary_serializer sink{system, data};
    REQUIRE_FALSE(sent.save(sink));
    caf::message received;
    caf::binary_deserializer source{system, data};
    REQUIRE_FALSE(received.load(source));
    CHECK(caf::to_string(received) == caf::to_string(sent));
  }
}

TEST_CASE("D-11 a view shows a value where it lies, and gives copies away") {
  known value{"here"};
  packet_view view{*packet_type_of<known>().caf.load(), &value};
  CHECK(view.size() == 1);
  CHECK(view.match_elements<known>());
  CHECK(view.get(0) == &value);
  CHECK(view.get_mutable(0) == &value);
  const auto copy = view.copy(0);
  value.text = "changed";
  CHECK(copy->get_as<known>().text == "here");
  CHECK(copy->copy()->get_as<known>().text == "here");
  CHECK(view.stringify(0) == caf::deep_to_string(value));
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
