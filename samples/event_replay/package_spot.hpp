// A package as an Instance Spot: it comes to life on the first line that names it and remembers what the lines say.
#pragma once

#include "package_history.hpp"

#include <zlink/zlink.hpp>

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

/// Answer to a `package_event`: how many lines the Spot has seen.
struct recorded {
  std::uint64_t lines = 0;
};

/// Question for everything the Spot knows, and its answer.
struct tell_history {};
struct told_history {
  package_history history;
  std::string node; ///< the routing id of the node where the Spot lives
  std::uint64_t moves = 0;
};

/// What travels when a package moves to another node.
struct carried_package {
  package_history history;
  std::uint64_t moves = 0;
};

ZLINK_PACKET(recorded, "packages.recorded", lines)
ZLINK_PACKET(tell_history, "packages.tell_history")
ZLINK_PACKET(told_history, "packages.told_history", history, node, moves)
ZLINK_PACKET(carried_package, "packages.carried", history, moves)

class package_spot final : public zlink::instance_spot {
public:
  /// The stable type under which nodes register this class.
  static constexpr const char* type = "package";

  using instance_spot::instance_spot;

  void configure() override {
    context().handlers().add_packet<&package_spot::on_event>().add_packet<&package_spot::on_tell_history>();
  }

private:
  friend class package_adapter;

  // No lock: a Spot runs one message at a time, whichever node or thread it came from.
  recorded on_event(const package_event& event, const zlink::message_context&) {
    history_.apply(event);
    return recorded{history_.lines};
  }

  told_history on_tell_history(const tell_history&, const zlink::message_context&) const {
    return told_history{history_, context().node_rid(), moves_};
  }

  package_history history_;
  std::uint64_t moves_ = 0;
};

/// Takes a package's state along when its node is emptied, while lines for it keep coming.
class package_adapter final : public zlink::spot_adapter<package_spot> {
public:
  zlink::task<zlink::bytes> capture(package_spot& from, std::stop_token) const override {
    co_return zlink::encode(carried_package{from.history_, from.moves_ + 1});
  }

  zlink::task<void> restore(package_spot& into, zlink::byte_view state, std::stop_token) const override {
    auto carried = zlink::decode<carried_package>(state);
    into.history_ = std::move(carried.history);
    into.moves_ = carried.moves;
    co_return;
  }
};
