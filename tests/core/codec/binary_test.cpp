// The compact encoding between nodes: its bytes, round trips, and packets of two versions (D-10).
#include "packets.hpp"
#include "random_values.hpp"

#include "zlink/codec.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>

namespace codec_test {

/// Two versions of one packet, as two processes of a rolling upgrade know it, alone and nested.
struct item_v1 {
  std::string name;
};
struct item_v2 {
  std::string name;
  int count = 42;
  std::vector<std::string> tags{"new"};
};
struct order_v1 {
  int id = 0;
  std::vector<item_v1> items;
  std::map<std::string, item_v1> named;
  std::optional<item_v1> gift;
  int last = 0;
};
struct order_v2 {
  int id = 0;
  std::vector<item_v2> items;
  std::map<std::string, item_v2> named;
  std::optional<item_v2> gift;
  int last = 0;
  item_v2 added{"default", 1, {}};
};
ZLINK_PACKET(item_v1, "codec.item.1", name)
ZLINK_PACKET(item_v2, "codec.item.2", name, count, tags)
ZLINK_PACKET(order_v1, "codec.order.1", id, items, named, gift, last)
ZLINK_PACKET(order_v2, "codec.order.2", id, items, named, gift, last, added)

namespace {

zlink::bytes hex(std::initializer_list<int> values) {
  zlink::bytes all;
  for (const int value : values)
    all.push_back(static_cast<std::byte>(value));
  return all;
}

TEST_CASE("the bytes of every number are those of the format's description") {
  numbers n;
  n.flag = true;
  n.letter = 'A';
  n.i8 = -1;
  n.u8 = 255;
  n.i16 = -1;
  n.u16 = 300;
  n.i32 = 64;
  n.u32 = 127;
  n.i64 = std::numeric_limits<std::int64_t>::min();
  n.u64 = std::numeric_limits<std::uint64_t>::max();
  n.sign = U'\x20ac';
  n.f = 1.0F;
  n.d = -2.0;
  n.c = colour::green;
  n.l = level::low;
  n.a = answer::yes;
  n.ms = std::chrono::milliseconds{-1};
  n.seconds = std::chrono::duration<double>{0.5};
  CHECK(zlink::encode(n)
        == hex({1,    'A',  0xff, 0xff, 1,    0xac, 2,    0x80, 1,    127,  0xff, 0xff, 0xff, 0xff, 0xff,
                0xff, 0xff, 0xff, 0xff, 1,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
                0xac, 0x41, 0,    0,    0x80, 0x3f, 0,    0,    0,    0,    0,    0,    0,    0xc0, 2,
                0xdf, 0xc5, 8,    1,    1,    0,    0,    0,    0,    0,    0,    0xe0, 0x3f}));
}

TEST_CASE("nested packets and texts carry their length, lists their count") {
  CHECK(zlink::encode(tree{1, {{2, {}}, {3, {{4, {}}}}}}) == hex({2, 2, 2, 4, 0, 5, 6, 1, 2, 8, 0}));
  CHECK(zlink::encode(order_v1{1, {{"ab"}}, {{"k", {"v"}}}, item_v1{""}, 0})
        == hex({2, 1, 3, 2, 'a', 'b', 1, 1, 'k', 2, 1, 'v', 1, 1, 0, 0}));
}

TEST_CASE("random values of every field type come back equal") {
  generator random{20240607};
  for (int i = 0; i < 3'000; ++i) {
    CAPTURE(i);
    const auto n = random_of<numbers>(random);
    REQUIRE(zlink::decode<numbers>(zlink::encode(n)) == n);
    const auto c = random_of<containers>(random);
    REQUIRE(zlink::decode<containers>(zlink::encode(c)) == c);
  }
}

TEST_CASE("floats that are not finite and signed zero keep their bits") {
  numbers n;
  n.f = -0.0F;
  n.d = std::numeric_limits<double>::infinity();
  CHECK(std::signbit(zlink::decode<numbers>(zlink::encode(n)).f));
  CHECK(zlink::decode<numbers>(zlink::encode(n)).d == n.d);
  n.d = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(zlink::decode<numbers>(zlink::encode(n)).d));
}

TEST_CASE("encodings of all sizes around the writer's own buffer and the width of a length are whole") {
  for (std::size_t size :
       {0, 1, 120, 127, 128, 129, 230, 250, 255, 256, 257, 300, 600, 16'380, 16'384, 20'000, 3'000'000}) {
    CAPTURE(size);
    const order_v1 from{1, {{std::string(size, 'x')}, {"tail"}}, {}, item_v1{std::string(size, 'y')}, 9};
    zlink::bytes to = hex({1, 2, 3});
    zlink::detail::encode_binary(from, to);
    REQUIRE(to[2] == std::byte{3});
    const auto back = zlink::decode<order_v1>(zlink::byte_view{to}.subspan(3));
    CHECK(back.items[0].name == from.items[0].name);
    CHECK(back.items[1].name == "tail");
    CHECK(back.gift->name == from.gift->name);
    CHECK(back.last == 9);
  }
}

TEST_CASE("a newer peer reads an older packet: missing members keep their defaults, nested ones too") {
  const order_v1 old{5, {{"a"}, {"b"}}, {{"k", {"c"}}}, item_v1{"d"}, 6};
  const auto now = zlink::decode<order_v2>(zlink::encode(old));
  CHECK(now.id == 5);
  REQUIRE(now.items.size() == 2);
  for (const auto& item : {now.items[0], now.items[1], now.named.at("k"), *now.gift}) {
    CHECK(item.count == 42);
    CHECK(item.tags == std::vector<std::string>{"new"});
  }
  CHECK(now.items[1].name == "b");
  CHECK(now.gift->name == "d");
  CHECK(now.last == 6);
  CHECK(now.added.name == "default");
  CHECK(zlink::decode<order_v2>({}).added.name == "default");
}

TEST_CASE("an older peer reads a newer packet: members it does not know are skipped, nested ones too") {
  const order_v2 now{5, {{"a", 1, {"t"}}, {"b", 2, {}}}, {{"k", {"c", 3, {}}}}, item_v2{"d", 4, {}}, 6, {"e", 7, {}}};
  const auto old = zlink::decode<order_v1>(zlink::encode(now));
  CHECK(old.id == 5);
  REQUIRE(old.items.size() == 2);
  CHECK(old.items[0].name == "a");
  CHECK(old.items[1].name == "b");
  CHECK(old.named.at("k").name == "c");
  CHECK(old.gift->name == "d");
  CHECK(old.last == 6);
}

TEST_CASE("decoding replaces what a container held before") {
  containers from;
  containers into;
  into.ints = {1, 2, 3};
  into.by_name = {{"old", {}}};
  into.set = {"old"};
  into.maybe = 5;
  zlink::detail::decode_binary(zlink::encode(from), into);
  CHECK(into == from);
}

tree chain(int depth) {
  tree top;
  for (int i = 1; i < depth; ++i) {
    tree outer;
    outer.children.push_back(std::move(top));
    top = std::move(outer);
  }
  return top;
}

TEST_CASE("64 packets within each other pass, 65 are refused by writer and reader") {
  const auto deepest = chain(zlink::detail::nesting_limit);
  auto encoded = zlink::encode(deepest);
  CHECK(zlink::decode<tree>(encoded) == deepest);
  CHECK(zlink::decode_json<tree>(zlink::encode_json(deepest)) == deepest);

  const auto too_deep = chain(zlink::detail::nesting_limit + 1);
  CHECK_THROWS_AS(zlink::encode(too_deep), zlink::encode_error);
  CHECK_THROWS_AS(zlink::encode_json(too_deep), zlink::encode_error);
  CHECK_THROWS_AS(zlink::encode(too_deep), std::invalid_argument); // O-4: an argument error of the caller
  zlink::bytes to = hex({1});
  CHECK_THROWS(zlink::detail::encode_binary(too_deep, to));
  CHECK(to == hex({1})); // nothing is left of a failed encoding

  zlink::bytes one_more = hex({0, 1});
  zlink::bytes length;
  zlink::detail::binary_writer out{length};
  out.varint(encoded.size());
  out.finish();
  one_more.insert(one_more.end(), length.begin(), length.end());
  one_more.insert(one_more.end(), encoded.begin(), encoded.end());
  CHECK_THROWS_WITH_AS(zlink::decode<tree>(one_more), doctest::Contains("nested too deep"), zlink::decode_error);
}

TEST_CASE("an error names the outermost packet and the way to the field") {
  order_v1 from{1, {{"ab"}}, {}, {}, 0};
  auto encoded = zlink::encode(from);
  encoded[3] = std::byte{9}; // length of the name, longer than its packet
  CHECK_THROWS_WITH_AS(zlink::decode<order_v1>(encoded),
                       "packet \"codec.order.1\", field \"items.name\": length exceeds the bytes left",
                       zlink::decode_error);
}

} // namespace
} // namespace codec_test
