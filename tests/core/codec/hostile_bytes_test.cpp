// Bytes that no encoder made: every end is a value or `decode_error`, and no length is believed before it is checked.
#include "packets.hpp"
#include "random_values.hpp"

#include "zlink/codec.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace codec_test {

struct of_text {
  std::string x;
};
struct of_blob {
  zlink::bytes x;
};
struct of_ints {
  std::vector<int> x;
};
struct of_doubles {
  std::vector<double> x;
};
struct of_packets {
  std::vector<containers> x;
};
struct of_list {
  std::list<std::string> x;
};
struct of_map {
  std::map<int, int> x;
};
struct of_set {
  std::unordered_set<std::string> x;
};
struct of_packet {
  point x;
};
struct of_array {
  std::array<double, 4> x{};
};
struct of_choice {
  std::variant<int, point> x;
};
struct of_small {
  std::uint16_t x = 0;
};
struct of_signed {
  std::int16_t x = 0;
};
struct of_flag {
  std::vector<bool> x;
};
struct of_answer {
  std::vector<answer> x;
};
ZLINK_PACKET(of_text, "codec.of_text", x)
ZLINK_PACKET(of_blob, "codec.of_blob", x)
ZLINK_PACKET(of_ints, "codec.of_ints", x)
ZLINK_PACKET(of_doubles, "codec.of_doubles", x)
ZLINK_PACKET(of_packets, "codec.of_packets", x)
ZLINK_PACKET(of_list, "codec.of_list", x)
ZLINK_PACKET(of_map, "codec.of_map", x)
ZLINK_PACKET(of_set, "codec.of_set", x)
ZLINK_PACKET(of_packet, "codec.of_packet", x)
ZLINK_PACKET(of_array, "codec.of_array", x)
ZLINK_PACKET(of_choice, "codec.of_choice", x)
ZLINK_PACKET(of_small, "codec.of_small", x)
ZLINK_PACKET(of_signed, "codec.of_signed", x)
ZLINK_PACKET(of_flag, "codec.of_flag", x)
ZLINK_PACKET(of_answer, "codec.of_answer", x)

namespace {

zlink::bytes varint(std::uint64_t value) {
  zlink::bytes to;
  zlink::detail::binary_writer out{to};
  out.varint(value);
  out.finish();
  return to;
}

zlink::bytes operator+(zlink::bytes a, const zlink::bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

zlink::bytes of(int byte) { return {static_cast<std::byte>(byte)}; }

TEST_CASE_TEMPLATE("a length beyond the bytes left is refused before anything is allocated", T, of_text, of_blob,
                   of_ints, of_doubles, of_packets, of_list, of_map, of_set, of_packet, of_flag) {
  for (const std::uint64_t length :
       {std::uint64_t{9}, std::uint64_t{1} << 32, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    CAPTURE(length);
    const auto encoded = varint(length) + zlink::bytes(8);
    CHECK_THROWS_WITH_AS(zlink::decode<T>(encoded), doctest::Contains("length exceeds the bytes left"),
                         zlink::decode_error);
  }
}

TEST_CASE("a count is compared with what its elements take at least") {
  CHECK(zlink::decode<of_doubles>(varint(2) + zlink::bytes(16)).x.size() == 2);
  CHECK_THROWS_WITH_AS(zlink::decode<of_doubles>(varint(3) + zlink::bytes(23)),
                       doctest::Contains("length exceeds the bytes left"), zlink::decode_error);
}

TEST_CASE("few bytes that claim many large elements reserve little before the elements are there") {
  // 100,000 elements of at least one byte each could follow, but the first is malformed.
  const auto encoded = varint(100'000) + varint(1) + of(0x80) + zlink::bytes(100'000);
  of_packets into;
  CHECK_THROWS_AS(zlink::detail::decode_binary(encoded, into), zlink::decode_error);
  CHECK(into.x.capacity() * sizeof(containers) <= 4 * encoded.size() + sizeof(containers));
}

TEST_CASE("integers outside their type, flags beyond 1, unknown alternatives and repeated keys are refused") {
  CHECK(zlink::decode<of_small>(varint(65'535)).x == 65'535);
  CHECK_THROWS_AS(zlink::decode<of_small>(varint(65'536)), zlink::decode_error);
  CHECK(zlink::decode<of_signed>(varint(65'535)).x == -32'768);
  CHECK(zlink::decode<of_signed>(varint(65'534)).x == 32'767);
  CHECK_THROWS_AS(zlink::decode<of_signed>(varint(65'536)), zlink::decode_error);
  CHECK_THROWS_AS(zlink::decode<of_signed>(varint(65'537)), zlink::decode_error);
  CHECK_THROWS_AS(zlink::decode<of_flag>(varint(1) + of(2)), zlink::decode_error);
  CHECK_THROWS_AS(zlink::decode<of_answer>(varint(1) + of(2)), zlink::decode_error);
  CHECK(std::get<0>(zlink::decode<of_choice>(varint(0) + varint(2)).x) == 1);
  CHECK_THROWS_WITH(zlink::decode<of_choice>(varint(2) + varint(2)), doctest::Contains("unknown alternative"));
  CHECK(zlink::decode<of_map>(varint(2) + varint(2) + varint(0) + varint(4) + varint(0)).x.size() == 2);
  CHECK_THROWS_WITH(zlink::decode<of_map>(varint(2) + varint(2) + varint(0) + varint(2) + varint(0)),
                    doctest::Contains("key occurs twice"));
  CHECK_THROWS_WITH(zlink::decode<of_set>(varint(2) + of(1) + of('a') + of(1) + of('a')),
                    doctest::Contains("key occurs twice"));
}

TEST_CASE("integers longer than 64 bits are refused") {
  zlink::bytes longest(9, std::byte{0xff});
  longest.push_back(std::byte{1});
  CHECK(zlink::detail::binary_reader{longest}.varint() == ~std::uint64_t{0});
  longest.back() = std::byte{2};
  CHECK_THROWS_AS(zlink::detail::binary_reader{longest}.varint(), zlink::decode_error);
  CHECK_THROWS_AS(zlink::decode<of_ints>(zlink::bytes(40, std::byte{0x80})), zlink::decode_error);
}

TEST_CASE("a nested packet cannot read beyond its own length") {
  CHECK(zlink::decode<of_packet>(varint(2) + of(2) + of(4)).x == point{1, 2});
  CHECK_THROWS_AS(zlink::decode<of_packet>(varint(1) + of(0x80) + of(4)), zlink::decode_error);
  CHECK(zlink::decode<of_packet>(varint(1) + of(2) + of(4)).x == point{1, 8}); // its second member is missing
}

template <class T>
void decode_any(zlink::byte_view from) {
  try {
    static_cast<void>(zlink::decode<T>(from));
  } catch (const zlink::decode_error&) {}
}

TEST_CASE("every truncation ends as a value or as decode_error, and no byte behind the end is touched") {
  generator random{7};
  for (int i = 0; i < 30; ++i) {
    const auto whole = zlink::encode(random_of<containers>(random));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const zlink::bytes part{whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}; // exact, for asan
      decode_any<containers>(part);
    }
  }
  CHECK_THROWS_AS(zlink::decode<of_array>(zlink::bytes(31)), zlink::decode_error);
}

TEST_CASE("random changes of bytes end as a value or as decode_error, in both encodings") {
  generator random{8};
  for (int i = 0; i < 20'000; ++i) {
    auto encoded = zlink::encode(random_of<containers>(random));
    if (encoded.empty())
      continue;
    for (auto n = 1 + random() % 4; n-- > 0;)
      encoded[random() % encoded.size()] = static_cast<std::byte>(random());
    decode_any<containers>(encoded);
    decode_any<tree>(encoded);
    decode_any<numbers>(encoded);
  }
  for (int i = 0; i < 3'000; ++i) {
    auto text = zlink::encode_json(random_of<containers>(random));
    for (auto n = 1 + random() % 2; n-- > 0;)
      text[random() % text.size()] = static_cast<char>(random() % 2 == 0 ? random() : "{}[]\",:0-"[random() % 9]);
    try {
      static_cast<void>(zlink::decode_json<containers>(text));
    } catch (const zlink::decode_error&) {}
  }
}

} // namespace
} // namespace codec_test
