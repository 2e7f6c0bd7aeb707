// The inspector that ZLINK_PACKET generates, against the CAF of this build and against the form of later ones.
#include "packets.hpp"

#include "zlink/codec.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/config.hpp>
#include <caf/deep_to_string.hpp>

namespace codec_test {

/// What CAF can serialize by itself.
struct for_caf {
  int number = 0;
  std::string text;
  std::vector<point> points;
  std::map<std::string, std::int64_t> counts;
  colour paint = colour::red;
  empty nothing;
  zlink::spot_ref spot;
  friend bool operator==(const for_caf&, const for_caf&) = default;
};
ZLINK_PACKET(for_caf, "codec.for_caf", number, text, points, counts, paint, nothing, spot)

namespace {

const for_caf sample{-3, "text", {{1, 2}, {3, 4}}, {{"a", 1}}, colour::green, {}, {"spot", 17, "mesh", "rid"}};

#if CAF_VERSION < 1800
TEST_CASE("a packet passes through CAF's own binary serialization") {
  caf::binary_serializer::container_type bytes;
  caf::binary_serializer sink{nullptr, bytes};
  auto from = sample;
  CHECK_FALSE(sink(from));
  for_caf to;
  caf::binary_deserializer source{nullptr, bytes};
  CHECK_FALSE(source(to));
  CHECK(to == sample);
  CHECK(source.remaining() == 0);
}
#endif

TEST_CASE("CAF prints a packet") { CHECK(caf::deep_to_string(point{1, 2}).find("1, 2") != std::string::npos); }

/// In the style of CAF 0.18 and later.
struct naming_inspector {
  std::string seen;

  template <class T>
  struct object_type {
    naming_inspector* self;
    template <class... Fields>
    bool fields(Fields&&... all) {
      self->seen += '(';
      const bool ok = (true && ... && all(*self));
      self->seen += ')';
      return ok;
    }
  };
  template <class T>
  object_type<T> object(T&) {
    return {this};
  }
  template <class T>
  static auto field(const char* name, T& x) {
    return [name, &x](naming_inspector& f) {
      f.seen += std::string{name} + '=' + std::to_string(x) + ';';
      return true;
    };
  }
};

TEST_CASE("inspectors that name fields get the members by name, and none from an empty packet") {
  naming_inspector f;
  point p{5, 6};
  CHECK(inspect(f, p));
  empty e;
  CHECK(inspect(f, e));
  CHECK(f.seen == "(x=5;y=6;)()");
  static_assert(std::is_same_v<decltype(inspect(f, p)), bool>);
}

} // namespace
} // namespace codec_test
