// Which codec a message is sent with and received by.
#include "packets.hpp"

#include "zlink/codec.hpp"
#include "zlink/error.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace codec_test {

struct vehicle {
  int wheels = 4;
};
struct bicycle : vehicle {
  bool bell = true;
};
ZLINK_PACKET(vehicle, "codec.vehicle", wheels)
ZLINK_PACKET(bicycle, "codec.bicycle", wheels, bell)

namespace {

using zlink::codec_registry;
using zlink::packet_info;
using zlink::detail::canonical_content_type;
using zlink::detail::packet_type_of;

/// Writes its name in front of the compact encoding.
class named_codec final : public zlink::codec {
public:
  named_codec(std::string content_type, std::function<bool(const packet_info&)> handles)
    : content_type_(std::move(content_type)), handles_(std::move(handles)) {}
  std::string content_type() const override { return content_type_; }
  bool handles(const packet_info& type) const override {
    ++asked;
    return handles_(type);
  }
  void encode(const packet_info& type, const void* value, zlink::bytes& to) const override {
    to.push_back(std::byte{'!'});
    type.encode_binary(value, to);
  }
  void decode(const packet_info& type, zlink::byte_view from, void* value) const override {
    if (from.empty() || from[0] != std::byte{'!'})
      throw zlink::decode_error{"no mark"};
    type.decode_binary(value, from.subspan(1));
  }
  mutable std::atomic<int> asked{0};

private:
  std::string content_type_;
  std::function<bool(const packet_info&)> handles_;
};

std::shared_ptr<named_codec> codec_for(std::string content_type, const packet_info& type) {
  return std::make_shared<named_codec>(std::move(content_type),
                                       [&type](const packet_info& asked) { return &asked == &type; });
}
std::shared_ptr<named_codec> codec_for_all(std::string content_type) {
  return std::make_shared<named_codec>(std::move(content_type), [](const packet_info&) { return true; });
}

/// As a call site does: the type is the declared one of the argument.
template <class T>
std::pair<std::string, zlink::bytes> send(const codec_registry& codecs, const T& value) {
  const auto& chosen = codecs.for_sending(packet_type_of<T>());
  zlink::bytes to;
  chosen.encode(packet_type_of<T>(), &value, to);
  return {std::string{codecs.content_type_of(chosen)}, to};
}

template <class T>
T receive(const codec_registry& codecs, std::string_view content_type, const zlink::bytes& from) {
  T value{};
  codecs.decode(content_type, packet_type_of<T>(), from, &value);
  return value;
}

TEST_CASE("M-34 without any registration a packet goes and comes as typed JSON, or compact where that is the default") {
  const codec_registry json{codec_registry::fallback::json};
  const auto [type, text] = send(json, point{1, 2});
  CHECK(type == "application/json");
  CHECK(std::string(reinterpret_cast<const char*>(text.data()), text.size()) == R"({"x":1,"y":2})");
  CHECK(receive<point>(json, type, text) == point{1, 2});

  const codec_registry binary;
  const auto [compact_type, compact] = send(binary, point{1, 2});
  CHECK(compact_type == "application/vnd.zlink.binary");
  CHECK(compact == zlink::encode(point{1, 2}));
  // Each reads what the other sends: both are always known.
  CHECK(receive<point>(binary, type, text) == point{1, 2});
  CHECK(receive<point>(json, compact_type, compact) == point{1, 2});
}

TEST_CASE("M-37 a content type is trimmed and lower-cased at registration") {
  CHECK(canonical_content_type(" \tApplication/X-Proto+V1.0 ") == "application/x-proto+v1.0");
  codec_registry codecs;
  codecs.add(codec_for(" APPLICATION/X-Point ", packet_type_of<point>()));
  CHECK(send(codecs, point{}).first == "application/x-point");
}

TEST_CASE("M-37 parameters, inner blanks, other than ASCII and empty parts are configuration errors") {
  for (const char* bad : {"", " ", "a", "/", "a/", "/b", "a/b;c=d", "a/b ;c=d", "a /b", "a/ b", "a/b c", "a/b/c",
                          "a/\xc3\xa4", "a/b,c", "a/\"b\"", "a/b\x7f", "a\t/b"}) {
    CAPTURE(bad);
    codec_registry codecs;
    CHECK_THROWS_AS(codecs.add(codec_for(bad, packet_type_of<point>())), zlink::configuration_error);
    CHECK(codecs.for_content_type(bad) == nullptr);
  }
  codec_registry codecs;
  CHECK_NOTHROW(codecs.add(codec_for("a/b", packet_type_of<point>())));
}

TEST_CASE("M-37 of equal content types the last registration counts, for sending and for receiving") {
  codec_registry codecs;
  const auto first = codec_for("x/y", packet_type_of<point>());
  const auto second = codec_for("X/Y", packet_type_of<numbers>());
  codecs.add(first);
  codecs.add(second);
  CHECK(codecs.for_content_type("x/y") == second.get());
  CHECK(&codecs.for_sending(packet_type_of<numbers>()) == second.get());
  CHECK(send(codecs, point{}).first == zlink::binary_content_type); // the first is gone
}

TEST_CASE("M-37 an application may replace a built-in encoding as well") {
  codec_registry codecs;
  const auto own = codec_for_all("application/vnd.zlink.binary");
  codecs.add(own);
  CHECK(codecs.for_content_type(zlink::binary_content_type) == own.get());
  CHECK(&codecs.for_sending(packet_type_of<point>()) == own.get());
}

TEST_CASE("M-37 a received content type is compared verbatim, and an unknown one is never tried as JSON") {
  codec_registry codecs{codec_registry::fallback::json};
  codecs.add(codec_for("x/y", packet_type_of<point>()));
  const auto [type, encoded] = send(codecs, point{3, 4});
  CHECK(receive<point>(codecs, type, encoded) == point{3, 4});
  CHECK_THROWS_AS(receive<point>(codecs, "X/Y", encoded), zlink::decode_error);
  CHECK_THROWS_AS(receive<point>(codecs, " x/y", encoded), zlink::decode_error);
  const auto text = zlink::encode_json(point{3, 4});
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  const zlink::bytes json{first, first + text.size()};
  CHECK(receive<point>(codecs, "application/json", json) == point{3, 4});
  for (const char* unknown :
       {"", "application/JSON", "application/json;charset=utf-8", "text/json", "application/x-other"}) {
    CAPTURE(unknown);
    CHECK_THROWS_WITH_AS(receive<point>(codecs, unknown, json), doctest::Contains("is not registered"),
                         zlink::decode_error);
  }
}

TEST_CASE("M-37 sending chooses by the declared type, not by the dynamic one") {
  codec_registry codecs;
  codecs.add(codec_for("x/bicycle", packet_type_of<bicycle>()));
  const bicycle value;
  const vehicle& as_base = value;
  CHECK(send(codecs, value).first == "x/bicycle");
  CHECK(send(codecs, as_base).first == zlink::binary_content_type);
}

TEST_CASE("M-37 of several codecs for a type the later registration sends, all of them receive") {
  codec_registry codecs;
  codecs.add(codec_for("x/one", packet_type_of<point>()));
  codecs.add(codec_for_all("x/two"));
  codecs.add(codec_for("x/three", packet_type_of<numbers>()));
  const auto [type, encoded] = send(codecs, point{5, 6});
  CHECK(type == "x/two");
  CHECK(receive<point>(codecs, "x/one", encoded) == point{5, 6});
  CHECK(send(codecs, numbers{}).first == "x/three");
}

/// Types by the thousand: what matters is that they are different.
std::deque<packet_info> make_types(std::size_t n) {
  std::deque<packet_info> all;
  for (std::size_t i = 0; i < n; ++i)
    all.emplace_back();
  return all;
}

TEST_CASE("M-37 the choice is remembered for 1,024 types, and is right for more") {
  const auto types = make_types(codec_registry::remembered_types + 2);
  codec_registry codecs;
  const auto* last = &types.back();
  const auto own = std::make_shared<named_codec>(
    "x/own", [&](const packet_info& type) { return &type == last || &type == &types[5]; });
  codecs.add(own);
  const auto chosen = [&](const packet_info& type) { return &codecs.for_sending(type) == own.get(); };
  for (int round = 0; round < 3; ++round)
    for (const auto& type : types)
      REQUIRE(chosen(type) == (&type == last || &type == &types[5]));
  // 1,024 are asked once and stay; the two beyond are asked in every round.
  CHECK(own->asked == static_cast<int>(codec_registry::remembered_types) + 3 * 2);
}

TEST_CASE("M-37 a registration after a choice is not hidden by it") {
  codec_registry codecs;
  codecs.add(codec_for("x/one", packet_type_of<point>()));
  CHECK(send(codecs, point{}).first == "x/one");
  codecs.add(codec_for("x/two", packet_type_of<point>()));
  CHECK(send(codecs, point{}).first == "x/two");
}

TEST_CASE("many threads choose at once") {
  const auto types = make_types(codec_registry::remembered_types + 100);
  codec_registry codecs;
  const auto own = std::make_shared<named_codec>(
    "x/own", [](const packet_info& type) { return reinterpret_cast<std::uintptr_t>(&type) / sizeof(type) % 2 == 0; });
  codecs.add(own);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round)
        for (const auto& type : types) {
          const bool expected = reinterpret_cast<std::uintptr_t>(&type) / sizeof(type) % 2 == 0;
          if ((&codecs.for_sending(type) == own.get()) != expected)
            ++wrong;
        }
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(wrong == 0);
}

} // namespace
} // namespace codec_test
