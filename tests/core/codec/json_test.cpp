// The JSON profile: one text that is accepted and one that is refused for every rule of M-35, and M-36 for references.
#include "packets.hpp"
#include "random_values.hpp"

#include "zlink/codec.hpp"
#include "zlink/codec/base64.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace codec_test {

struct profile {
  bool flag = false;
  int i32 = 0;
  std::uint8_t u8 = 0;
  std::int64_t i64 = 0;
  std::uint64_t u64 = 0;
  double d = 0;
  float f = 0;
  std::string text;
  zlink::bytes blob;
  std::optional<int> maybe;
};
struct of_numbers {
  std::map<std::string, int> x;
};
struct of_pairs {
  std::map<int, int> x;
};
struct of_elements {
  std::set<int> x;
};
struct of_either {
  std::variant<std::monostate, int> x;
};
struct of_tuple {
  std::tuple<int, std::string> x;
};
struct of_three {
  std::array<int, 3> x{};
};
struct of_key {
  std::array<std::byte, 2> x{};
};
struct of_colour {
  colour x = colour::red;
};
struct of_time {
  std::chrono::seconds x{};
};
struct of_reference {
  zlink::spot_ref spot;
  std::optional<zlink::actor_ref> actor;
};
ZLINK_PACKET(profile, "codec.profile", flag, i32, u8, i64, u64, d, f, text, blob, maybe)
ZLINK_PACKET(of_numbers, "codec.of_numbers", x)
ZLINK_PACKET(of_pairs, "codec.of_pairs", x)
ZLINK_PACKET(of_elements, "codec.of_elements", x)
ZLINK_PACKET(of_either, "codec.of_either", x)
ZLINK_PACKET(of_tuple, "codec.of_tuple", x)
ZLINK_PACKET(of_three, "codec.of_three", x)
ZLINK_PACKET(of_key, "codec.of_key", x)
ZLINK_PACKET(of_colour, "codec.of_colour", x)
ZLINK_PACKET(of_time, "codec.of_time", x)
ZLINK_PACKET(of_reference, "codec.of_reference", spot, actor)

namespace {

/// A text of `profile` in which one member has another value; "-" leaves it out.
std::string with(std::string_view name, std::string_view value) {
  std::pair<std::string_view, std::string_view> members[] = {
    {"flag", "true"}, {"i32", "-7"}, {"u8", "255"},    {"i64", "\"-5\""},    {"u64", "\"5\""},
    {"d", "1.5"},     {"f", "0.25"}, {"text", "\"\""}, {"blob", "\"AQI=\""}, {"maybe", "3"},
  };
  std::string text;
  for (auto& [key, standard] : members) {
    const auto chosen = key == name ? value : standard;
    if (chosen != "-")
      text += (text.empty() ? "{\"" : ",\"") + std::string{key} + "\":" + std::string{chosen};
  }
  return text + '}';
}

template <class T = profile>
bool accepts(std::string_view text) {
  try {
    static_cast<void>(zlink::decode_json<T>(text));
    return true;
  } catch (const zlink::decode_error&) {
    return false;
  }
}

bool takes(std::string_view name, std::string_view value) { return accepts(with(name, value)); }

TEST_CASE("M-35 order and white space mean nothing") {
  const auto p =
    zlink::decode_json<profile>(" {\n\t\"maybe\" : null, \"blob\":\"\",\"text\":\"t\",\"f\":1,\"d\":2,\"u64\":\"3\","
                                "\"i64\":\"4\",\"u8\":5,\"i32\":6,\r\n\"flag\":true } ");
  CHECK(p.flag);
  CHECK(p.i32 == 6);
  CHECK(p.u64 == 3);
  CHECK(p.text == "t");
  CHECK_FALSE(accepts(with("", "") + "x"));
  CHECK_FALSE(accepts(with("", "") + "{}"));
  CHECK_FALSE(accepts("[]"));
  CHECK_FALSE(accepts(""));
}

TEST_CASE("M-35 a byte order mark is refused, and so is NUL") {
  CHECK(accepts(with("", "")));
  CHECK_FALSE(accepts("\xEF\xBB\xBF" + with("", "")));
  CHECK_FALSE(accepts(with("", "") + std::string(1, '\0')));
  CHECK_FALSE(accepts(with("", "") + std::string("\0garbage", 8)));
}

TEST_CASE("M-35 names are case-sensitive, unknown ones are ignored") {
  const auto text = with("", "");
  CHECK(accepts(text.substr(0, text.size() - 1) + ",\"Flag\":17,\"other\":{\"deep\":[null]}}"));
  CHECK_FALSE(accepts("{\"Flag\":true" + with("flag", "-").replace(0, 1, ",")));
}

TEST_CASE("M-35 a member that occurs twice is refused, known or not, in a map and when escaped") {
  const auto text = with("", "");
  const auto plus = [&](std::string_view more) { return text.substr(0, text.size() - 1) + std::string{more} + '}'; };
  CHECK(accepts(plus(",\"a\":1,\"b\":1")));
  CHECK_FALSE(accepts(plus(",\"i32\":-7")));
  CHECK_FALSE(accepts(plus(",\"i\\u0033\\u0032\":-7")));
  CHECK_FALSE(accepts(plus(",\"a\":1,\"a\":1")));
  CHECK_FALSE(accepts(plus(",\"a\":{\"b\":1,\"b\":1}")));
  CHECK(accepts<of_numbers>(R"({"x":{"a":1,"b":1}})"));
  CHECK_FALSE(accepts<of_numbers>(R"({"x":{"a":1,"a":1}})"));
  CHECK_THROWS_WITH(zlink::decode_json<of_numbers>(R"({"x":{"a":1,"a":1}})"),
                    "packet \"codec.of_numbers\": member \"a\" occurs twice");
}

TEST_CASE("M-35 every member is required but optional ones, which may be absent or null") {
  for (const char* name : {"flag", "i32", "u8", "i64", "u64", "d", "f", "text", "blob"}) {
    CAPTURE(name);
    CHECK_FALSE(takes(name, "-"));
  }
  CHECK_THROWS_WITH(zlink::decode_json<profile>(with("u8", "-")), "packet \"codec.profile\", field \"u8\": missing");
  CHECK(takes("maybe", "-"));
  CHECK(zlink::decode_json<profile>(with("maybe", "null")).maybe == std::nullopt);
  CHECK(zlink::decode_json<profile>(with("maybe", "4")).maybe == 4);
}

TEST_CASE("M-35 null stands only where it is declared") {
  for (const char* name : {"flag", "i32", "u8", "i64", "u64", "d", "f", "text", "blob"}) {
    CAPTURE(name);
    CHECK_FALSE(takes(name, "null"));
  }
  CHECK(takes("maybe", "null"));
  CHECK(accepts<of_either>(R"({"x":[0,null]})"));
  CHECK_FALSE(accepts<of_either>(R"({"x":[0,1]})"));
}

TEST_CASE("M-35 64-bit integers are decimal strings without leading zero, in range") {
  CHECK(zlink::decode_json<profile>(with("i64", "\"-9223372036854775808\"")).i64
        == std::numeric_limits<std::int64_t>::min());
  CHECK(zlink::decode_json<profile>(with("i64", "\"9223372036854775807\"")).i64
        == std::numeric_limits<std::int64_t>::max());
  CHECK(zlink::decode_json<profile>(with("u64", "\"18446744073709551615\"")).u64
        == std::numeric_limits<std::uint64_t>::max());
  CHECK(takes("i64", "\"0\""));
  for (const char* bad : {"5", "\"\"", "\"-\"", "\"05\"", "\"00\"", "\"-0\"", "\"-05\"", "\"+5\"", "\" 5\"", "\"5 \"",
                          "\"5.0\"", "\"5e1\"", "\"0x5\"", "\"9223372036854775808\"", "\"-9223372036854775809\""}) {
    CAPTURE(bad);
    CHECK_FALSE(takes("i64", bad));
  }
  CHECK_FALSE(takes("u64", "\"18446744073709551616\""));
  CHECK_FALSE(takes("u64", "\"-1\""));
  CHECK(zlink::encode_json(profile{}).find("\"i64\":\"0\",\"u64\":\"0\"") != std::string::npos);
}

TEST_CASE("M-35 smaller integers are plain integral numbers, in range") {
  CHECK(zlink::decode_json<profile>(with("i32", "-2147483648")).i32 == std::numeric_limits<int>::min());
  CHECK(takes("i32", "2147483647"));
  CHECK(takes("u8", "0"));
  for (const char* bad : {"2147483648", "-2147483649", "1.0", "1e2", "\"1\"", "true", "18446744073709551615",
                          "99999999999999999999", "01", "+1"}) {
    CAPTURE(bad);
    CHECK_FALSE(takes("i32", bad));
  }
  CHECK_FALSE(takes("u8", "256"));
  CHECK_FALSE(takes("u8", "-1"));
}

TEST_CASE("M-35 floats are finite numbers") {
  CHECK(zlink::decode_json<profile>(with("d", "1e300")).d == 1e300);
  CHECK(takes("d", "-3"));
  CHECK(takes("f", "3.4e38"));
  for (const char* bad : {"1e400", "NaN", "Infinity", "-Infinity", "\"1.5\"", "true"}) {
    CAPTURE(bad);
    CHECK_FALSE(takes("d", bad));
  }
  CHECK_FALSE(takes("f", "3.5e38"));
  profile p;
  p.d = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH_AS(zlink::encode_json(p), doctest::Contains("packet \"codec.profile\", field \"d\""),
                       zlink::encode_error);
  p.d = 0;
  p.f = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(zlink::encode_json(p), zlink::encode_error);
}

TEST_CASE("M-35 bytes are base64 with padding") {
  const auto blob = [](const char* text) { return zlink::decode_json<profile>(with("blob", text)).blob; };
  CHECK(blob("\"\"").empty());
  CHECK(blob("\"/w==\"") == zlink::bytes{std::byte{0xff}});
  CHECK(blob("\"AQI=\"") == zlink::bytes{std::byte{1}, std::byte{2}});
  CHECK(blob("\"AQID\"") == zlink::bytes{std::byte{1}, std::byte{2}, std::byte{3}});
  for (const char* bad : {"\"/w\"", "\"/w=\"", "\"_w==\"", "\"/x==\"", "\"AQJ=\"", "\"AQ I\"", "\"AQI=\\n\"",
                          "\"====\"", "\"=AQI\"", "\"AQ==AQ==\"", "[1,2]", "1"}) {
    CAPTURE(bad);
    CHECK_FALSE(takes("blob", bad));
  }
  for (const std::size_t size : {1, 2, 3, 5}) {
    const std::vector<char> exact(size, 'A'); // no byte behind its end, for asan
    CHECK_FALSE(zlink::detail::parse_base64({exact.data(), exact.size()}));
  }
  CHECK(accepts<of_key>(R"({"x":"AQI="})"));
  CHECK_FALSE(accepts<of_key>(R"({"x":"AQ=="})"));
  generator random{3};
  for (std::size_t size = 0; size < 70; ++size) {
    zlink::bytes from(size);
    for (auto& b : from)
      b = static_cast<std::byte>(random());
    std::string text;
    zlink::detail::append_base64(text, from);
    CHECK(zlink::detail::parse_base64(text) == from);
  }
}

TEST_CASE("M-35 nothing is taken for a date, an enum name or another type than the declared one") {
  CHECK(zlink::decode_json<of_time>(R"({"x":"90"})").x == std::chrono::seconds{90});
  CHECK_FALSE(accepts<of_time>(R"({"x":"1970-01-01T00:01:30Z"})"));
  CHECK_FALSE(accepts<of_time>(R"({"x":"PT90S"})"));
  CHECK(zlink::decode_json<of_colour>(R"({"x":2})").x == colour::green);
  CHECK_FALSE(accepts<of_colour>(R"({"x":"green"})"));
  CHECK_FALSE(accepts<of_colour>(R"({"x":256})"));
  CHECK_FALSE(takes("flag", "1"));
  CHECK_FALSE(takes("flag", "\"true\""));
  CHECK_FALSE(takes("text", "1"));
  CHECK_FALSE(accepts<of_numbers>(R"({"x":[]})"));
  CHECK_FALSE(accepts<of_elements>(R"({"x":{}})"));
}

TEST_CASE("containers: fixed lengths are exact, keys and elements of sets occur once") {
  CHECK(accepts<of_tuple>(R"({"x":[1,"a"]})"));
  CHECK_FALSE(accepts<of_tuple>(R"({"x":[1]})"));
  CHECK_FALSE(accepts<of_tuple>(R"({"x":[1,"a",2]})"));
  CHECK(accepts<of_three>(R"({"x":[1,2,3]})"));
  CHECK_FALSE(accepts<of_three>(R"({"x":[1,2]})"));
  CHECK(accepts<of_pairs>(R"({"x":[[1,2],[2,2]]})"));
  CHECK_FALSE(accepts<of_pairs>(R"({"x":[[1,2],[1,2]]})"));
  CHECK_FALSE(accepts<of_pairs>(R"({"x":[[1]]})"));
  CHECK(accepts<of_elements>(R"({"x":[1,2]})"));
  CHECK_FALSE(accepts<of_elements>(R"({"x":[1,1]})"));
  CHECK_FALSE(accepts<of_either>(R"({"x":[2,null]})"));
  CHECK_FALSE(accepts<of_either>(R"({"x":[-1,null]})"));
  CHECK_FALSE(accepts<of_either>(R"({"x":[0]})"));
}

TEST_CASE("texts are UTF-8 on both ways, and are escaped where JSON asks for it") {
  profile p;
  p.text = "\"\\\n\x01\xc3\xa4\x7f";
  p.text += '\0';
  CHECK(zlink::decode_json<profile>(zlink::encode_json(p)).text == p.text);
  p.text = "\xff";
  CHECK_THROWS_WITH_AS(zlink::encode_json(p), doctest::Contains("field \"text\""), zlink::encode_error);
  CHECK_FALSE(takes("text", "\"\xff\""));
  CHECK_FALSE(takes("text", "\"\xed\xa0\x80\""));
  CHECK_FALSE(takes("text", "\"\\ud800\""));
  CHECK(takes("text", "\"\\ud83d\\ude00\""));
  CHECK_FALSE(takes("text", "\"\n\""));
}

TEST_CASE("random values of every field type come back equal from JSON") {
  generator random{99};
  for (int i = 0; i < 1'000; ++i) {
    CAPTURE(i);
    const auto n = random_of<numbers>(random);
    REQUIRE(zlink::decode_json<numbers>(zlink::encode_json(n)) == n);
    const auto c = random_of<containers>(random);
    REQUIRE(zlink::decode_json<containers>(zlink::encode_json(c)) == c);
  }
}

TEST_CASE("depth and size of a text are bounded, also in members that are ignored") {
  const auto nested = [](std::size_t depth) {
    return R"({"ignored":)" + std::string(depth, '[') + std::string(depth, ']') + '}';
  };
  CHECK(accepts<empty>(nested(zlink::detail::json_depth_limit - 1)));
  CHECK_FALSE(accepts<empty>(nested(zlink::detail::json_depth_limit)));
  CHECK_FALSE(accepts<empty>(std::string(5'000'000, '[')));
  CHECK(accepts<empty>("{}" + std::string(zlink::detail::json_bytes_limit - 2, ' ')));
  CHECK_FALSE(accepts<empty>("{}" + std::string(zlink::detail::json_bytes_limit - 1, ' ')));
}

TEST_CASE("a message of 5 MiB passes both codecs") {
  profile p;
  p.text.assign(5 << 20, 'x');
  CHECK(zlink::decode<profile>(zlink::encode(p)).text == p.text);
  CHECK(zlink::decode_json<profile>(zlink::encode_json(p)).text == p.text);
}

TEST_CASE("M-36 a reference has exactly id, objectGeneration, meshName and nodeRid") {
  const auto reference = [](std::string_view members) { return R"({"spot":{)" + std::string{members} + "}}"; };
  const of_reference from{{"s", 17, "m", "n"}, zlink::actor_ref{"a", 18, "m", "n"}};
  CHECK(zlink::encode_json(from)
        == R"({"spot":{"id":"s","objectGeneration":"17","meshName":"m","nodeRid":"n"},)"
           R"("actor":{"id":"a","objectGeneration":"18","meshName":"m","nodeRid":"n"}})");
  const auto back = zlink::decode_json<of_reference>(zlink::encode_json(from));
  CHECK(back.spot == from.spot);
  CHECK(back.actor == from.actor);

  CHECK(accepts<of_reference>(reference(R"("nodeRid":"n","id":"s","objectGeneration":"1","meshName":"m")")));
  for (const char* bad : {
         R"("objectGeneration":"1","meshName":"m","nodeRid":"n")",                            // one missing
         R"("id":"s","meshName":"m","nodeRid":"n")",                                          //
         R"("id":"s","objectGeneration":"1","nodeRid":"n")",                                  //
         R"("id":"s","objectGeneration":"1","meshName":"m")",                                 //
         R"("id":"s","objectGeneration":"1","meshName":"m","nodeRid":"n","x":1)",             // unknown
         R"("id":"s","id":"s","objectGeneration":"1","meshName":"m","nodeRid":"n")",          // twice
         R"("id":null,"objectGeneration":"1","meshName":"m","nodeRid":"n")",                  // null
         R"("id":"s","objectGeneration":null,"meshName":"m","nodeRid":"n")",                  //
         R"("id":"s","objectGeneration":"1","meshName":null,"nodeRid":"n")",                  //
         R"("id":"s","objectGeneration":"1","meshName":"m","nodeRid":null)",                  //
         R"("Id":"s","objectGeneration":"1","meshName":"m","nodeRid":"n")",                   // case
         R"("id":"s","objectGeneration":1,"meshName":"m","nodeRid":"n")",                     // not a string
         R"("id":"s","objectGeneration":"01","meshName":"m","nodeRid":"n")",                  // leading zero
         R"("id":"s","objectGeneration":"0","meshName":"m","nodeRid":"n")",                   // below the range
         R"("id":"s","objectGeneration":"9223372036854775808","meshName":"m","nodeRid":"n")", // above it
       }) {
    CAPTURE(bad);
    CHECK_FALSE(accepts<of_reference>(reference(bad)));
  }
  CHECK(accepts<of_reference>(
    reference(R"("id":"s","objectGeneration":"9223372036854775807","meshName":"m","nodeRid":"n")")));
  CHECK_FALSE(accepts<of_reference>(R"({"spot":null})"));
  CHECK_THROWS_AS(zlink::encode_json(of_reference{}), zlink::encode_error); // generation 0
}

} // namespace
} // namespace codec_test
