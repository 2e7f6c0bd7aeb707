// What ZLINK_PACKET makes of a type.
#include "packets.hpp"

#include "zlink/codec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <new>

namespace {

struct nobody {};
static_assert(zlink::packet<codec_test::point>);
static_assert(zlink::packet<codec_test::empty>);
static_assert(!zlink::packet<nobody>);
static_assert(!zlink::packet<int>);
static_assert(!zlink::packet<zlink::spot_ref>, "references travel inside packets only");

// In the unnamed namespace, in a class, with a base, by an alias.
struct base {
  int inherited = 1;
};
struct derived : base {
  int own = 2;
};
ZLINK_PACKET(derived, "codec.derived", inherited, own)

struct outer {
  struct inner {
    int x = 3;
  };
};
ZLINK_PACKET(outer::inner, "codec.inner", x)

template <class A, class B>
struct couple {
  A a{};
  B b{};
};
using int_and_text = couple<int, std::string>;
ZLINK_PACKET(int_and_text, "codec.couple", a, b)

struct wide {
  int a0 = 0, a1 = 1, a2 = 2, a3 = 3, a4 = 4, a5 = 5, a6 = 6, a7 = 7, a8 = 8, a9 = 9, b0 = 10, b1 = 11, b2 = 12,
      b3 = 13, b4 = 14, b5 = 15, b6 = 16, b7 = 17, b8 = 18, b9 = 19, c0 = 20, c1 = 21, c2 = 22, c3 = 23;
};
ZLINK_PACKET(wide, "codec.wide", a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, c0, c1,
             c2, c3)

} // namespace

// Beside a namespace of the same name as the library.
namespace app::zlink {
struct shadowed {
  int x = 0;
};
ZLINK_PACKET(shadowed, "codec.shadowed", x)
} // namespace app::zlink

namespace {

using zlink::detail::find_packet;
using zlink::detail::packet_type;
using zlink::detail::packet_type_of;

// The packet's half of M-29; which handler a name selects is the messaging tests' matter.
TEST_CASE("the declared name is the packet's name, whatever the C++ type is called") {
  CHECK(find_packet("codec.point") == &packet_type_of<codec_test::point>());
  CHECK(packet_type_of<codec_test::point>().name == "codec.point");
  CHECK(find_packet("codec.inner") == &packet_type_of<outer::inner>());
  CHECK(find_packet("codec.couple") == &packet_type_of<couple<int, std::string>>());
  CHECK(find_packet("codec.shadowed") == &packet_type_of<app::zlink::shadowed>());
  CHECK(find_packet("codec_test::point") == nullptr);
  CHECK(find_packet("CODEC.POINT") == nullptr);
  CHECK(*packet_type_of<codec_test::point>().type == typeid(codec_test::point));
}

TEST_CASE("two types of equal shape keep their own names") {
  struct probe {
    int x = 0;
  };
  CHECK(packet_type_of<outer::inner>().name != packet_type_of<app::zlink::shadowed>().name);
  CHECK(zlink::encode(outer::inner{5}) == zlink::encode(app::zlink::shadowed{5}));
  static_assert(!zlink::packet<probe>);
}

TEST_CASE("members come in the order of the line, from none to many, inherited ones too") {
  CHECK(zlink::encode(codec_test::empty{}).empty());
  CHECK(zlink::encode_json(codec_test::empty{}) == "{}");
  CHECK(zlink::encode_json(derived{}) == R"({"inherited":1,"own":2})");
  const auto all = zlink::encode(wide{});
  REQUIRE(all.size() == 24);
  for (std::size_t i = 0; i < all.size(); ++i)
    CHECK(all[i] == static_cast<std::byte>(2 * i)); // zigzag
}

TEST_CASE("registered packets come in name order, and every one of this program has a name of its own") {
  const auto all = zlink::detail::registered_packets();
  CHECK(std::is_sorted(all.begin(), all.end(), [](auto* a, auto* b) { return a->name < b->name; }));
  CHECK(std::find(all.begin(), all.end(), &packet_type_of<codec_test::tree>()) != all.end());
}

/// Counts its living copies.
struct counted {
  int x = 1;
  static inline int living = 0;
  counted() { ++living; }
  counted(const counted& other) : x(other.x) { ++living; }
  counted(counted&& other) noexcept : x(std::exchange(other.x, 0)) { ++living; }
  counted& operator=(const counted&) = default;
  ~counted() { --living; }
};
ZLINK_PACKET(counted, "codec.counted", x)

TEST_CASE("the operations of a packet type construct, copy, move and destroy exactly once") {
  const auto& type = packet_type_of<counted>();
  CHECK(type.size == sizeof(counted));
  CHECK(type.alignment == alignof(counted));
  alignas(counted) std::byte a[sizeof(counted)], b[sizeof(counted)], c[sizeof(counted)];
  const auto value = [](std::byte* at) { return std::launder(reinterpret_cast<counted*>(at)); };
  type.construct(a);
  CHECK(value(a)->x == 1);
  value(a)->x = 5;
  type.copy(b, a);
  CHECK(value(b)->x == 5);
  CHECK(counted::living == 2);
  type.move(c, b); // ends b
  CHECK(value(c)->x == 5);
  CHECK(counted::living == 2);
  type.destroy(a);
  type.destroy(c);
  CHECK(counted::living == 0);
}

TEST_CASE("both encodings are reached through the packet type") {
  const auto& type = packet_type_of<codec_test::point>();
  const codec_test::point from{3, -4};
  zlink::bytes encoded{std::byte{0xff}};
  type.encode_binary(&from, encoded);
  CHECK(encoded.size() == 3); // appended
  codec_test::point to;
  type.decode_binary(&to, zlink::byte_view{encoded}.subspan(1));
  CHECK(to == from);
  std::string text = ",";
  type.encode_json(&from, text);
  CHECK(text == R"(,{"x":3,"y":-4})");
  to = {};
  type.decode_json(&to, std::string_view{text}.substr(1));
  CHECK(to == from);
}

TEST_CASE("one packet type serves all translation units that include its header, with CAF in sight or not") {
  CHECK(codec_test::point_type_of_second_unit() == &packet_type_of<codec_test::point>());
  for (const auto& mistake : zlink::detail::packet_registration_mistakes())
    CHECK_MESSAGE(mistake.find("codec.point") == mistake.npos, mistake);
}

TEST_CASE("a clash of names is remembered for host start, and the first registration stays") {
  const auto mistakes_of = [](std::string_view part) {
    std::vector<std::string> found;
    for (auto& mistake : zlink::detail::packet_registration_mistakes())
      if (mistake.find(part) != mistake.npos)
        found.push_back(mistake);
    return found;
  };
  static const packet_type first{.name = "codec.clash", .type = &typeid(char)};
  static const packet_type other_type{.name = "codec.clash", .type = &typeid(short)};
  static const packet_type other_name{.name = "codec.clash.renamed", .type = &typeid(char)};
  static const packet_type again{.name = "codec.clash", .type = &typeid(char)};
  static const packet_type bad_name{.name = "codec.clash.\xff", .type = &typeid(long)};

  zlink::detail::register_packet(first);
  zlink::detail::register_packet(again);
  CHECK(mistakes_of("codec.clash").empty());
  zlink::detail::register_packet(other_type);
  CHECK(mistakes_of("two types").size() == 1);
  CHECK(mistakes_of("two types")[0].find("\"codec.clash\"") != std::string::npos);
  zlink::detail::register_packet(other_name);
  CHECK(mistakes_of("two names").size() == 1);
  zlink::detail::register_packet(bad_name);
  CHECK(mistakes_of("UTF-8").size() == 1);
  CHECK(find_packet("codec.clash") == &first);
  CHECK(find_packet("codec.clash.renamed") == nullptr);
  CHECK(find_packet("codec.clash.\xff") == nullptr);
}

} // namespace
