// Names and numbers of zlink/identity.hpp.
#include "zlink/identity.hpp"

#include <doctest/doctest.h>

#include <random>
#include <regex>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace {

using namespace zlink::detail;
using namespace std::string_literals;

// The rule itself. That every entrance asks for it (C-25, C-51, M-15), and what is refused where, is tested there.
TEST_CASE("M-16 an id takes 1 to 255 bytes of UTF-8") {
  CHECK_FALSE(is_valid_id(""));
  CHECK(is_valid_id("a"));
  CHECK(is_valid_id(std::string(255, 'a')));
  CHECK_FALSE(is_valid_id(std::string(256, 'a')));
  CHECK(is_valid_id(std::string(251, 'a') + "\xf0\x9f\x98\x80"));
  CHECK_FALSE(is_valid_id(std::string(252, 'a') + "\xf0\x9f\x98\x80")); // bytes count, not characters
  CHECK_FALSE(is_valid_id("\xff"));
  CHECK_FALSE(is_valid_id(std::string(254, 'a') + "\xc3"));
}

TEST_CASE("every code point is allowed, U+0000 and blanks included") {
  for (const auto& id :
       {"\0"s, "a\0b"s, " "s, "\n"s, "\x7f"s, "/*?"s, "\xef\xbb\xbf"s, "\xef\xbf\xbf"s, "\xf4\x8f\xbf\xbf"s})
    CHECK(is_valid_id(id));
}

TEST_CASE("M-16 UTF-8 is well-formed: shortest forms, no surrogates, nothing above U+10FFFF, nothing cut off") {
  for (const auto& good : {"\x7f"s, "\xc2\x80"s, "\xdf\xbf"s, "\xe0\xa0\x80"s, "\xed\x9f\xbf"s, "\xee\x80\x80"s,
                           "\xef\xbf\xbf"s, "\xf0\x90\x80\x80"s, "\xf4\x8f\xbf\xbf"s, ""s}) {
    CAPTURE(good);
    CHECK(is_utf8(good));
  }
  for (const auto& bad : {"\x80"s,
                          "\xbf"s,
                          "\xc0\x80"s,
                          "\xc1\xbf"s,
                          "\xe0\x80\x80"s,
                          "\xe0\x9f\xbf"s,
                          "\xed\xa0\x80"s,
                          "\xed\xbf\xbf"s,
                          "\xf0\x80\x80\x80"s,
                          "\xf0\x8f\xbf\xbf"s,
                          "\xf4\x90\x80\x80"s,
                          "\xf5\x80\x80\x80"s,
                          "\xfe"s,
                          "\xff"s,
                          "\xc3"s,
                          "\xc3"
                          "a"s,
                          "\xe2\x82"s,
                          "\xe2\x82"
                          "a"s,
                          "\xe2"
                          "a\xac"s,
                          "\xf0\x9f\x98"s,
                          "\xf0\x9f\x98"
                          "a"s,
                          "\xc3\xa4\xa4"s,
                          "a\xff"s}) {
    CAPTURE(bad);
    CHECK_FALSE(is_utf8(bad));
  }
}

TEST_CASE("an id that is not allowed is an argument error that names what and why") {
  CHECK_NOTHROW(require_valid_id("spot id", "cart-17"));
  CHECK_THROWS_WITH_AS(require_valid_id("spot id", ""), "spot id is empty; it must be 1 to 255 bytes of UTF-8",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(require_valid_id("actor id", std::string(256, 'a')),
                       "actor id has 256 bytes; it must be 1 to 255 bytes of UTF-8", std::invalid_argument);
  CHECK_THROWS_WITH_AS(require_valid_id("actor id", "\xff"),
                       "actor id is not valid UTF-8; it must be 1 to 255 bytes of UTF-8", std::invalid_argument);
}

TEST_CASE("C-52 the kinds of Spots are closed; number and text form go both ways") {
  using zlink::spot_kind;
  const std::pair<spot_kind, const char*> table[] = {{spot_kind::invalid, "invalid"},
                                                     {spot_kind::entry, "entry"},
                                                     {spot_kind::user, "user"},
                                                     {spot_kind::instance, "instance"}};
  int number = 0;
  for (const auto& [kind, name] : table) {
    CHECK(static_cast<int>(kind) == number++);
    CHECK(zlink::to_string(kind) == std::string{name});
    CHECK(zlink::parse_spot_kind(name) == kind);
  }
  for (const char* other : {"", "User", "user ", "users", "4", "none"})
    CHECK(zlink::parse_spot_kind(other) == std::nullopt);
  CHECK(zlink::to_string(static_cast<spot_kind>(4)) == std::string{"invalid"});
}

const std::string uuid = "0b9f2c1e-7a3d-4e58-9c01-3f5a7d2b8e64";

TEST_CASE("the form of Entry Spot ids is recognised") {
  CHECK(is_entry_spot_format("node-entry-" + uuid));
  CHECK(is_entry_spot_format("a-entry-" + uuid));
  CHECK(is_entry_spot_format("-entry--entry-" + uuid)); // prefix "-entry-"... of one or more bytes
  CHECK(is_entry_spot_format(std::string(100, 'p') + "-entry-" + uuid));
  for (const char variant : {'8', '9', 'a', 'b'}) {
    auto other = uuid;
    other[19] = variant;
    CHECK(is_entry_spot_format("node-entry-" + other));
  }
}

TEST_CASE("near misses are ordinary ids") {
  CHECK_FALSE(is_entry_spot_format(""));
  CHECK_FALSE(is_entry_spot_format(uuid));
  CHECK_FALSE(is_entry_spot_format("-entry-" + uuid)); // no prefix
  CHECK_FALSE(is_entry_spot_format("nodeentry-" + uuid));
  CHECK_FALSE(is_entry_spot_format("node-entry" + uuid));
  CHECK_FALSE(is_entry_spot_format("node-Entry-" + uuid));
  CHECK_FALSE(is_entry_spot_format("node-entry-" + uuid + "x"));
  CHECK_FALSE(is_entry_spot_format("node-entry-" + uuid.substr(1)));
  CHECK_FALSE(is_entry_spot_format("node-entry-x" + uuid));
  const auto with = [](std::size_t at, char c) {
    auto other = uuid;
    other[at] = c;
    return "node-entry-" + other;
  };
  CHECK_FALSE(is_entry_spot_format(with(14, '1'))); // version
  CHECK_FALSE(is_entry_spot_format(with(14, '5')));
  CHECK_FALSE(is_entry_spot_format(with(19, '7'))); // variant
  CHECK_FALSE(is_entry_spot_format(with(19, 'c')));
  CHECK_FALSE(is_entry_spot_format(with(0, 'A'))); // upper case
  CHECK_FALSE(is_entry_spot_format(with(0, 'g')));
  CHECK_FALSE(is_entry_spot_format(with(8, '_')));
  CHECK_FALSE(is_entry_spot_format(with(13, '0')));
  CHECK_FALSE(is_entry_spot_format(with(20, '-')));
}

TEST_CASE("a formatted uuid is version 4 in lowercase canonical form, whatever the random bits") {
  const std::regex form{"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"};
  std::mt19937_64 random{1};
  for (int i = 0; i < 1'000; ++i)
    CHECK(std::regex_match(format_uuid_v4({random(), random()}), form));
  CHECK(format_uuid_v4({0, 0}) == "00000000-0000-4000-8000-000000000000");
  CHECK(format_uuid_v4({~0ULL, ~0ULL}) == "ffffffff-ffff-4fff-bfff-ffffffffffff");
  CHECK(format_uuid_v4({0x0123'4567'89ab'cdef, 0x0123'4567'89ab'cdef}) == "01234567-89ab-4def-8123-456789abcdef");
  CHECK(is_entry_spot_format("node-entry-" + format_uuid_v4({random(), random()})));
}

TEST_CASE("M-16 references compare by bytes: case and composition count") {
  const zlink::spot_ref ref{"A", 1, "m", "n"};
  auto other = ref;
  CHECK(other == ref);
  other.spot_id = "a";
  CHECK_FALSE(other == ref);
  CHECK_FALSE(zlink::spot_ref{"\xc3\xa4", 1, "m", "n"} == zlink::spot_ref{"a\xcc\x88", 1, "m", "n"});
}

TEST_CASE("numbers of different kinds do not substitute for each other") {
  static_assert(!std::is_convertible_v<object_generation, authority_generation>);
  static_assert(!std::is_constructible_v<object_generation, authority_generation>);
  static_assert(!std::is_convertible_v<std::uint64_t, object_generation>);
  CHECK_FALSE(object_generation{});
  CHECK(object_generation{1} < object_generation{2});
  CHECK_FALSE(unique_id{});
  CHECK(unique_id{0, 1});
  CHECK(unique_id{1, 0});
  CHECK(unique_id{1, 5} != unique_id{2, 5}); // equal low words stay distinct (M-132)
}

} // namespace
