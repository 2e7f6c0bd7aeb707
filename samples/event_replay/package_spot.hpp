// A package as an Instance Spot: it comes to life on the first line that names it and remembers what the lines say.
#pragma once

#include "package_history.hpp"

#include <zlink/zlink.hpp>

#include <cstdint>
#include <string>

/// Answer to a `package_event`: how many lines the Spot has seen.
struct recorded {
  std::uint64_t lines = 0;
};

/// Question for everything the Spot knows, and its answer.
struct tell_history {};
struct told_history {
  package_history history;
  std::string node; ///< the routing id of the node where the Spot lives
};

ZLINK_PACKET(recorded, "packages.recorded", lines)
ZLINK_PACKET(tell_history, "packages.tell_history")
ZLINK_PACKET(told_history, "packages.told_history", history, node)

class package_spot final : public zlink::instance_spot {
public:
  /// The stable type under which nodes register this class.
  static constexpr const char* type = "package";

  using instance_spot::instance_spot;

  void configure() override {
    context().handlers().add_packet<&package_spot::on_event>().add_packet<&package_spot::on_tell_history>();
  }

private:
  // No lock: a Spot runs one message at a time, whichever node or thread it came from.
  recorded on_event(const package_event& event, const zlink::message_context&) {
    history_.apply(event);
    return recorded{history_.lines};
  }

  told_history on_tell_history(const tell_history&, const zlink::message_context&) const {
    return told_history{history_, context().node_rid()};
  }

  package_history history_;
};
