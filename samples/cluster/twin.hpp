// The twin of a device: an Instance Spot that takes what the device measures and sums it up.
#pragma once

#include <zlink/zlink.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

/// A device measured this. Answered with the summary so far.
struct reading {
  double value = 0;
};

/// Question for the summary.
struct sum_up {};

struct summary {
  std::uint64_t readings = 0;
  double mean = 0;
  double least = 0;
  double most = 0;
  std::string node; ///< the routing id of the node where the twin lives
};

ZLINK_PACKET(reading, "twin.reading", value)
ZLINK_PACKET(sum_up, "twin.sum_up")
ZLINK_PACKET(summary, "twin.summary", readings, mean, least, most, node)

class twin final : public zlink::instance_spot {
public:
  /// The stable type under which nodes register this class.
  static constexpr const char* type = "twin";

  using instance_spot::instance_spot;

  void configure() override { context().handlers().add_packet<&twin::on_reading>().add_packet<&twin::on_sum_up>(); }

private:
  summary on_reading(const reading& m, const zlink::message_context&) {
    now_.least = now_.readings == 0 ? m.value : std::min(now_.least, m.value);
    now_.most = now_.readings == 0 ? m.value : std::max(now_.most, m.value);
    ++now_.readings;
    now_.mean += (m.value - now_.mean) / static_cast<double>(now_.readings);
    return told();
  }
  summary on_sum_up(const sum_up&, const zlink::message_context&) const { return told(); }

  summary told() const {
    auto copy = now_;
    copy.node = context().node_rid();
    return copy;
  }

  summary now_;
};
