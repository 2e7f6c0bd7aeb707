// The sessions that the Actors of a moving unit are bound to, as the source of the move sees them (L-60 to L-62, L-162).
#pragma once

#include "relocation/wakeup.hpp"
#include "zlink/identity.hpp"
#include "zlink/objects/hosted_object.hpp"
#include "zlink/session/session_frames.hpp"
#include "zlink/task.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;
class node_runtime;

/// Inside the infrastructure unit.
class session_seals final : public std::enable_shared_from_this<session_seals> {
public:
  session_seals(host_runtime& host, node_runtime& node, unique_id move);

  /// Part `index` of the unit: asked for if it is an Actor that is bound.
  void add(std::uint32_t index, const hosted_object& object);
  /// Asks all session owners at once. Ends when each has answered, with nothing if no Actor has to stay; else with the reason.
  task<std::optional<std::string>> install(steady_time due, std::function<bool()> given_up);
  /// `given_up` may have changed.
  void look();
  /// The binding that goes along with that part: its seal is there.
  std::optional<session_binding> of(std::uint32_t index) const;
  /// The unit stays: what may be sealed is let go, to the source (L-162). Once.
  void withdraw();

private:
  struct seal {
    std::uint32_t part;
    session_binding binding;
    std::string actor_id;
    object_generation generation;
    std::optional<seal_answer> answer;
    std::string why; ///< without one
  };

  task<void> ask(std::size_t which, steady_time due);
  void let_go(const seal& one);

  host_runtime& host_;
  node_runtime& node_;
  const unique_id move_;
  wakeup wake_;
  std::vector<seal> seals_;
  std::size_t unanswered_ = 0;
  bool withdrawn_ = false;
};

} // namespace zlink::detail
