// Moving everything off this host: who may ask, what is looked at before, and the units in their batches (chapter 06,
// section 18).
#pragma once

#include "relocation/inventory.hpp"
#include "relocation/unit_mover.hpp"
#include "relocation/unit_targets.hpp"
#include "zlink/execution/operation.hpp"
#include "zlink/host.hpp"
#include "zlink/relocate.hpp"
#include "zlink/task.hpp"
#include "zlink/trace.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;

/// The application version that the units go to; throws `std::invalid_argument` (L-210).
std::uint64_t effective_version(const relocate_options& options, std::uint64_t own);

/// How one unit fared, for logs.
struct unit_report {
  unit_kind kind = unit_kind::instance_spot;
  std::string mesh_name;
  std::string type; ///< stable type of its Spot or Actor
  std::string id;
  placement::node_identity target; ///< the last that was tried
  unit_end end;
};

class host_relocate {
public:
  host_relocate(host_runtime& host, unit_mover& mover);
  host_relocate(const host_relocate&) = delete;
  host_relocate& operator=(const host_relocate&) = delete;

  // -- any thread ------------------------------------------------------------------------------------------------------
  task<relocate_result> relocate(const relocate_options& options, std::stop_token cancel);
  /// L-231.
  bool safe_to_shutdown() const noexcept;
  std::optional<relocate_result> last_result() const;
  /// Of the operation that runs, or of the last one.
  std::vector<unit_report> reports() const;

  // -- inside the unit -------------------------------------------------------------------------------------------------
  /// An operation is under way: a host that shuts down waits until it has noticed that, and its units have ended (L-248).
  bool running() const noexcept { return running_; }
  /// It has passed the point where units may be under way.
  bool moves_units() const noexcept { return moving_; }
  /// The host has ended: whoever still waits is told.
  void end_waits();

  /// For tests, before the first operation.
  void use_mover(unit_mover& mover) noexcept { mover_ = &mover; }

private:
  /// Why it does not go on; reason `none`: it does.
  struct block {
    relocate_reason reason = relocate_reason::none;
    std::string why;
    counted_ptr<hosted_object> who = {}; ///< the object that it is about, if it is about one
    explicit operator bool() const noexcept { return reason != relocate_reason::none; }
  };
  using waiter = counted_ptr<operation<relocate_result>>;
  static constexpr std::size_t longest_cause = 256; ///< of a text (O-92)

  // Asking and answering (host_relocate.cpp).
  void ask(relocate_result asked, steady_time due, waiter told);
  void cancel(const waiter& who);
  task<void> run(steady_time due);
  void end(const block& why);
  block ended_by_host() const;
  block lease_gone() const;
  void tell(std::string_view state, const block& why) const;
  static void name(trace_record& told, const hosted_object& who);

  // Before anything changes (preflight.cpp).
  task<block> until_possible(steady_time due);
  task<block> refresh_nodes();
  task<block> look();
  block plan(const inventory& all, unit_targets rooms);

  // Relocating, and back (host_states.cpp).
  task<block> begin(steady_time due);
  task<block> take_back();
  task<bool> publish(placement::node_state state, steady_time until, bool for_sure);
  task<void> settle(bool relocated);
  task<void> keep_published(host_state state);

  // The units (batches.cpp).
  task<block> move_all(steady_time due);
  task<void> run_batch(std::vector<relocation_unit> units, const inventory& all, steady_time due);
  task<void> move_unit(relocation_unit unit, unit_needs needs, steady_time due);
  bool is_there(const relocation_unit& unit) const;
  task<std::optional<block>> until_movable(relocation_unit unit, steady_time due);
  std::optional<block> stopped(steady_time due) const;
  using node_list = std::vector<placement::node_identity>;
  task<std::optional<placement::node_identity>> target_for(relocation_unit unit, const unit_needs& needs, node_list& refused);
  task<std::optional<placement::node_identity>> node_of_its_spot(relocation_unit member);
  void note(const relocation_unit& unit, placement::node_identity target, unit_end end);
  std::vector<relocation_unit> units_left(const inventory& all) const;

  host_runtime& host_;
  unit_mover* mover_;
  relocate_result asked_; ///< mode and version of the operation that runs
  placement::owner_token token_; ///< of all that it is to move
  bool running_ = false;
  bool moving_ = false;
  std::vector<waiter> waiting_;
  std::optional<unit_targets> targets_;
  std::set<std::string> done_;                                ///< addresses of the units that have ended
  std::map<std::string, placement::node_identity> shells_at_; ///< by the Spot's id: where its members follow it
  block failed_;                                              ///< of the first unit that stays

  mutable std::mutex mutex_;
  std::optional<relocate_result> last_;
  std::vector<unit_report> reports_;
};

} // namespace zlink::detail
