// What the program gains: objects with an address that are found from anywhere and come to life when they are needed.
#pragma once

#include "actors.hpp"
#include "climate_packets.hpp"

#include <caf/typed_response_promise.hpp>

#include <zlink/zlink.hpp>

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

/// The actor from before, unchanged, as a Spot.
class thermostat_spot final : public zlink::instance_spot {
public:
  static constexpr const char* type = "thermostat";

  using instance_spot::instance_spot;
  caf::behavior make_behavior() override { return thermostat(self()); }
};

/// A Spot that keeps a CAF actor at work: it spawns a pump, watches it, and starts another when it breaks.
class boiler_spot final : public zlink::instance_spot {
public:
  static constexpr const char* type = "boiler";

  using instance_spot::instance_spot;
  zlink::task<void> on_initialize() override;
  zlink::task<void> on_closing(const zlink::spot_closing_context& closing, std::stop_token cleanup) override;
  caf::behavior make_behavior() override;

private:
  void start_pump();
  void pump_broke(const std::string& reason);

  caf::actor pump_;
  std::uint64_t pumps_ = 0;
  std::string last_reason_;
  std::vector<caf::typed_response_promise<repair>> asked_;
};
