// Packets that several test files include, as an application's shared header would be.
#pragma once

#include "zlink/packet.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace codec_test {

enum class colour : std::uint8_t { red = 1, green = 2 };
enum class level : std::int32_t { low = -70'000, high = 70'000 };
enum class answer : bool { no, yes };

struct empty {
  friend bool operator==(const empty&, const empty&) = default;
};

struct point {
  int x = 7;
  int y = 8;
  friend bool operator==(const point&, const point&) = default;
};

struct numbers {
  bool flag = false;
  char letter = 0;
  std::int8_t i8 = 0;
  std::uint8_t u8 = 0;
  std::int16_t i16 = 0;
  std::uint16_t u16 = 0;
  std::int32_t i32 = 0;
  std::uint32_t u32 = 0;
  std::int64_t i64 = 0;
  std::uint64_t u64 = 0;
  char32_t sign = 0;
  float f = 0;
  double d = 0;
  colour c = colour::red;
  level l = level::low;
  answer a = answer::no;
  std::chrono::milliseconds ms{};
  std::chrono::duration<double> seconds{};
  friend bool operator==(const numbers&, const numbers&) = default;
};

struct containers {
  std::string text;
  zlink::bytes blob;
  std::array<std::byte, 4> key{};
  std::vector<int> ints;
  std::vector<bool> flags;
  std::vector<double> doubles;
  std::vector<colour> colours;
  std::vector<std::string> texts;
  std::vector<point> points;
  std::deque<std::uint64_t> deque;
  std::list<std::string> list;
  std::array<point, 2> pair_of_points{};
  std::array<float, 3> floats{};
  std::map<std::string, point> by_name;
  std::map<int, std::vector<std::string>> by_number;
  std::unordered_map<std::string, std::int64_t> unordered;
  std::set<std::string> set;
  std::unordered_set<int> unordered_set;
  std::optional<int> maybe;
  std::optional<point> maybe_point;
  std::pair<int, std::string> two;
  std::tuple<bool, point, std::vector<int>> three;
  std::variant<std::monostate, int, std::string, point> either;
  zlink::spot_ref spot{"s", 1, "m", "n"};
  std::vector<zlink::actor_ref> actors;
  friend bool operator==(const containers&, const containers&) = default;
};

/// Contains itself.
struct tree {
  int value = 0;
  std::vector<tree> children;
  friend bool operator==(const tree&, const tree&) = default;
};

ZLINK_PACKET(empty, "codec.empty")
ZLINK_PACKET(point, "codec.point", x, y)
ZLINK_PACKET(numbers, "codec.numbers", flag, letter, i8, u8, i16, u16, i32, u32, i64, u64, sign, f, d, c, l, a, ms,
             seconds)
ZLINK_PACKET(containers, "codec.containers", text, blob, key, ints, flags, doubles, colours, texts, points, deque, list,
             pair_of_points, floats, by_name, by_number, unordered, set, unordered_set, maybe, maybe_point, two, three,
             either, spot, actors)
ZLINK_PACKET(tree, "codec.tree", value, children)

/// Where the other translation unit sees the type of `point`.
const zlink::detail::packet_type* point_type_of_second_unit();

} // namespace codec_test
