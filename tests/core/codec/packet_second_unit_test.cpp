// The same packet header in another translation unit, which has CAF in sight: the macro registers there in its second
// form.
#include "packets.hpp"

#include <doctest/doctest.h>

namespace codec_test {

// How CAF holds these packets is another module's matter; here only the way to it is followed.
const char stand_in = 0;
const zlink::detail::caf_packet_ops* zlink_caf_packet_ops(zlink::detail::packet_tag<struct late>) {
  return reinterpret_cast<const zlink::detail::caf_packet_ops*>(&stand_in);
}

struct early {
  int x = 0;
};
#undef ZLINK_DETAIL_CAF
#define ZLINK_DETAIL_CAF 0
ZLINK_PACKET(early, "codec.early", x)

struct late {
  int x = 0;
};
#undef ZLINK_DETAIL_CAF
#define ZLINK_DETAIL_CAF 1
ZLINK_PACKET(late, "codec.late", x)

const zlink::detail::packet_type* point_type_of_second_unit() { return &zlink::detail::packet_type_of<point>(); }

TEST_CASE("a packet declared with CAF in sight knows how CAF holds it, one declared before does not") {
  using zlink::detail::packet_type_of;
  CHECK(static_cast<const void*>(packet_type_of<late>().caf.load()) == &stand_in);
  CHECK(packet_type_of<early>().caf.load() == nullptr);
}

} // namespace codec_test
