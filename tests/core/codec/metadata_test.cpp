// Message metadata: what it takes, what it refuses, and its form on the wire.
#include "zlink/codec_error.hpp"
#include "zlink/metadata.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using zlink::message_metadata;
using namespace std::string_literals;

zlink::bytes of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

message_metadata decode(std::string_view text) { return message_metadata::decode(of(text)); }

TEST_CASE("M-38 the last value of a key counts, keys are compared byte by byte") {
  message_metadata m;
  m.set("b", "1");
  m.set("a", "2");
  m.set("A", "3");
  m.set("b", "4");
  CHECK(m.size() == 3);
  CHECK(m.get("b") == "4");
  CHECK(m.get("a") == "2");
  CHECK(m.get("A") == "3");
  CHECK(m.get("c") == std::nullopt);
  CHECK(m.entries() == std::vector<std::pair<std::string_view, std::string_view>>{{"A", "3"}, {"a", "2"}, {"b", "4"}});
}

TEST_CASE("M-38 keys and values are UTF-8 without NUL, keys not empty; a refusal changes nothing") {
  message_metadata m;
  m.set("\xc3\xa4", "\xf0\x9f\x98\x80");
  m.set("empty", "");
  const auto before = m;
  for (const auto& bad : {"\xff"s, "\xc3"s, "a\0b"s, "\0"s, "\xed\xa0\x80"s}) {
    CHECK_THROWS_AS(m.set(bad, "v"), std::invalid_argument);
    CHECK_THROWS_AS(m.set("k", bad), std::invalid_argument);
  }
  CHECK_THROWS_AS(m.set("", "v"), std::invalid_argument);
  CHECK(m == before);
  CHECK(m.get("empty") == "");
}

/// A set of exactly that many encoded bytes.
std::string value_for(std::size_t encoded_bytes) {
  message_metadata m;
  m.set("k", std::string(200, 'v')); // lengths of values take two bytes from here on
  return std::string(encoded_bytes - (m.encoded().size() - 200), 'v');
}

TEST_CASE("M-38 1,024 encoded bytes pass, 1,025 are refused at the caller, and nothing changes") {
  message_metadata m;
  m.set("k", value_for(1024));
  CHECK(m.encoded().size() == 1024);
  const auto before = m;
  CHECK_THROWS_AS(m.set("k", value_for(1025)), std::invalid_argument);
  CHECK_THROWS_AS(m.set("x", ""), std::invalid_argument);
  CHECK_THROWS_AS(m.set("x", std::string(5'000'000, 'v')), std::invalid_argument);
  CHECK(m == before);
  m.set("k", "short");
  m.set("x", "now there is room");
  CHECK(m.size() == 2);
}

TEST_CASE("M-38 what one end encodes the other decodes, up to 1,024 bytes") {
  CHECK(message_metadata{}.encoded().empty());
  CHECK(message_metadata::decode({}).empty());
  message_metadata m;
  m.set("coupon", "SPRING");
  m.set("a", "");
  CHECK(message_metadata::decode(m.encoded()) == m);
  CHECK(std::string(reinterpret_cast<const char*>(m.encoded().data()), m.encoded().size())
        == "\x02\x01"
           "a\0\x06"
           "coupon\x06"
           "SPRING"s);
  m = {};
  m.set("k", value_for(1024));
  CHECK(message_metadata::decode(m.encoded()) == m);
}

TEST_CASE("M-38 malformed or oversized bytes are refused on receipt") {
  CHECK(decode("\x02\x01"
               "a\x01"
               "1\x01"
               "b\x01"
               "2"s)
          .size()
        == 2);
  for (const auto& bad : {
         "\0"s,   // an empty set has no bytes
         "\x01"s, // pair missing
         "\x01\x01"
         "a"s, // value missing
         "\x01\x01"
         "a\x02"
         "1"s, // value too short
         "\x02\x01"
         "a\x01"
         "1"s, // count too large
         "\x01\x01"
         "a\x01"
         "1\x01"
         "b\x01"
         "2"s, // count too small
         "\x01\x01"
         "a\x01"
         "1x"s, // bytes behind the end
         "\x02\x01"
         "a\x01"
         "1\x01"
         "a\x01"
         "2"s, // key twice
         "\x02\x01"
         "b\x01"
         "1\x01"
         "a\x01"
         "2"s, // out of order
         "\x01\0\x01"
         "1"s, // empty key
         "\x01\x01\xff\x01"
         "1"s, // not UTF-8
         "\x01\x01"
         "a\x01\xff"s, //
         "\x01\x01\0\x01"
         "1"s, // NUL
         "\x01\x01"
         "a\x01\0"s, //
         "\x01\x81\0"
         "a\x01"
         "1"s, // length longer than it need be
         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,
       }) {
    CAPTURE(bad);
    CHECK_THROWS_AS(decode(bad), zlink::decode_error);
  }
  const auto value = std::string(1020, 'v'); // 1 + 2 + 2 + 1,020 bytes
  CHECK_THROWS_AS(decode("\x01\x01"
                         "k\xfc\x07"
                         + value),
                  zlink::decode_error);
  CHECK(decode("\x01\x01"
               "k\xfb\x07"
               + value.substr(1))
          .encoded()
          .size()
        == 1024);
}

TEST_CASE("M-38 every truncation and random change ends as a set or as decode_error") {
  message_metadata m;
  m.set("first", "1");
  m.set("second", std::string(200, 'x'));
  m.set("third", "\xc3\xa4");
  const zlink::bytes whole{m.encoded().begin(), m.encoded().end()};
  for (std::size_t size = 1; size < whole.size(); ++size)
    CHECK_THROWS_AS(message_metadata::decode(zlink::bytes(whole.data(), whole.data() + size)), zlink::decode_error);
  std::mt19937_64 random{4};
  for (int i = 0; i < 20'000; ++i) {
    auto changed = whole;
    changed[random() % changed.size()] = static_cast<std::byte>(random());
    message_metadata found;
    try {
      found = message_metadata::decode(changed);
    } catch (const zlink::decode_error&) {
      continue;
    }
    message_metadata again;
    for (const auto& [key, value] : found.entries())
      again.set(key, value);
    CHECK(again == found);
  }
}

TEST_CASE("a copy is a snapshot: shared until one side changes, and then its own") {
  message_metadata m;
  m.set("k", "1");
  const auto snapshot = m;
  CHECK(snapshot.encoded().data() == m.encoded().data()); // nothing copied
  m.set("k", "2");
  CHECK(snapshot.get("k") == "1");
  CHECK(m.get("k") == "2");
  auto moved = std::move(m);
  CHECK(moved.get("k") == "2");
  m = moved;
  moved = message_metadata{};
  CHECK(moved.empty());
  CHECK(m.get("k") == "2");
  static_assert(sizeof(message_metadata) == sizeof(void*));
}

TEST_CASE("M-38 a set that is changed at random agrees with a map") {
  std::mt19937_64 random{5};
  message_metadata m;
  std::map<std::string, std::string> model;
  for (int i = 0; i < 2'000; ++i) {
    const auto key = "k" + std::to_string(random() % 30);
    const auto value = std::string(random() % 30, 'v');
    try {
      m.set(key, value);
      model[key] = value;
    } catch (const std::invalid_argument&) {}
    REQUIRE(m.size() == model.size());
    REQUIRE(m.encoded().size() <= 1024);
  }
  const auto all = m.entries();
  CHECK(std::equal(all.begin(), all.end(), model.begin(), model.end(),
                   [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
}

} // namespace
