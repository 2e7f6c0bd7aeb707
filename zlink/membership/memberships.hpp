// Which Spot an Actor belongs to, from its creation in an Entry Spot to its end: Join, leave, destroy (chapter 05).
#pragma once

#include "zlink/actor.hpp"
#include "zlink/membership/actor_object.hpp"
#include "zlink/objects/spot_object.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/spot.hpp"
#include "zlink/task.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace zlink::detail {

class host_runtime;
class node_runtime;
struct control_answer;
struct join_question;
struct join_ticket;

/// What a `join_call` has collected.
struct join_request {
  counted_ptr<actor_object> actor;
  std::optional<std::string> spot_id; ///< nothing: an Entry Spot
  message request;
  std::optional<std::chrono::milliseconds> timeout;
  counted_ptr<handler_scope> made_in; ///< null: outside of handlers
  bool twice = false;
  bool used = false;
};

class memberships {
public:
  explicit memberships(host_runtime& host) noexcept : host_(host) {}
  memberships(const memberships&) = delete;
  memberships& operator=(const memberships&) = delete;

  // -- creation; inside the infrastructure unit ------------------------------------------------------------------------------

  /// Factory, configure, and the Entry Spot's `on_create_actor`, holding one of the node's activation permits (J-13, C-42).
  task<result<actor_create_response>> build(actor_object& actor, node_runtime& node, message request);
  /// Ready, and a member of the node's Entry Spot (J-11, J-15).
  void open(actor_object& actor, node_runtime& node);

  // -- what applications ask for ---------------------------------------------------------------------------------------------

  /// Registers a Join with the handler that runs now (J-50 to J-66). Throws what `join_call::defer` does.
  void defer(join_request& what);
  task<void> leave(spot_object& spot, actor_object& actor, std::stop_token cancel);
  task<void> destroy_in(spot_object& entry, actor_object& actor, std::stop_token cancel);
  task<std::optional<actor_ref>> find(std::string actor_id, std::stop_token cancel);
  task<std::optional<spot_ref>> find_spot(std::string actor_id, std::stop_token cancel);
  task<bool> destroy(actor_ref who, std::stop_token cancel);

  // -- inside the unit ---------------------------------------------------------------------------------------------------------

  /// In whose turn the end of an Actor is asked for; compared only.
  struct asker {
    const execution_object* object = nullptr;
    const gate* home = nullptr;
    bool is_spot = false;
    static asker here() noexcept;
  };
  /// Ends it here when what it has accepted has run, or the deadline has passed. Who asks in a turn that the end waits for
  /// is told when admission has closed (J-134). Throws the caller's error.
  task<bool> destroy_here(counted_ptr<actor_object> actor, steady_time due, asker by);
  /// Its client has gone: the Spot that it belongs to when the Spot's turn comes is told, among joins and leaves (J-41, J-140).
  /// Ends when the callback has; a failure is recorded, and changes nothing.
  task<void> tell_disconnected(counted_ptr<actor_object> actor);
  /// Another node asks whether one of its Actors may come to a Spot of this one (J-90, J-97, J-98). Asks the gate each time.
  task<control_answer> serve_join(node_runtime& node, join_question asked, steady_time due);
  /// Behind the deadline of its Join, for who has been let in.
  static constexpr std::chrono::seconds stays_expected{5};
  /// The Actor has come to stay, and waits: its Spot is told, then the Actor, then its messages go on (J-90, J-102).
  task<void> finish_join(counted_ptr<actor_object> actor, join_ticket ticket);
  /// The move of that Join came to nothing here: the Spot that has let the Actor in does not wait for it any longer (J-94).
  void comes_no_more(const std::string& operation_id);
  /// The Actor belongs to a Spot of another node now: the Spot that it leaves is told, one-way (J-84). Before it is disposed of.
  void left_by_join(counted_ptr<actor_object> actor);
  /// The host has lost the token that its objects are bound to: Actors end without touching their rows (S-44).
  /// So do all User and Instance Spots.
  task<void> abandon_all();
  /// The host shuts down: all of them run what they have accepted, until `due`, and nothing after it.
  task<void> drain(steady_time due);
  /// Then they end, silently (J-135).
  task<void> dispose_drained();
  /// Some did not come to an end in time: what they use stays behind.
  bool some_are_stuck() const noexcept;
  /// Ends of Actors and changes of membership that are under way.
  std::size_t under_way() const noexcept { return under_way_; }

  std::atomic<std::uint64_t> failed_callbacks{0}; ///< on_leave_actor, on_disconnect_actor: recorded, without effect

private:
  struct join;
  using join_ptr = std::shared_ptr<join>;
  class work_count;
  /// Where a Join leads.
  struct target {
    counted_ptr<spot_object> spot;
    bool already_there = false;
    std::optional<placement::node_identity> elsewhere = std::nullopt; ///< then there is no `spot` here
    std::string entry = {}; ///< the Entry Spot there, if the Join leads to that
  };

  // A Join (join.cpp).
  void activate(join_ptr j);
  void discard(const join& j);
  task<void> run(join_ptr j);
  task<join_completion> decide(join_ptr which);
  task<result<target>> find_target(join_ptr which);
  task<result<target>> find_user_target(const join& j);
  target find_entry_target(const join& j);
  /// Lets in: then the Spot expects the Actor, and `expected_by` is the Spot.
  task<result<actor_join_response>> ask_gate(spot_object& spot, std::string actor_id, std::string request, steady_time due,
                                             counted_ptr<spot_object>& expected_by);

  // A Join to a Spot of another node (remote_join.cpp).
  task<join_completion> go_elsewhere(join& j, target where);
  task<result<target>> find_entry_elsewhere(const join& j);
  task<std::optional<error>> why_not_here(std::string spot_id);
  task<result<control_answer>> ask_elsewhere(const join& j, placement::node_identity where);
  task<std::optional<error>> check_row(const join_question& asked, placement::node_identity source);
  void expect(const std::string& operation_id, const std::string& actor_id, counted_ptr<spot_object> spot, steady_time until);
  counted_ptr<spot_object> take_expected(const std::string& operation_id);

  // A change of membership that is decided (change.cpp).
  task<std::optional<error>> commit(counted_ptr<actor_object> actor, counted_ptr<spot_object> spot, steady_time due);
  task<bool> until_at_rest(counted_ptr<actor_object> actor, steady_time due);
  task<void> move_in(counted_ptr<actor_object> actor, counted_ptr<spot_object> from, counted_ptr<spot_object> into, bool expected);
  /// Somebody who is on the way to a Spot; touched in turns of that Spot.
  struct arrival {
    counted_ptr<actor_object> actor;
    bool expected = false; ///< the Spot has let it in, and waits for it
    bool counted = false;  ///< among its members
    std::atomic<bool> settled{false}; ///< the Actor runs where the Spot wants it
  };
  static task<void> arrive(arrival& coming, spot_object& into);
  task<void> settle_and_tell(std::shared_ptr<arrival> coming, counted_ptr<spot_object> into);
  class leave_notice;
  void tell_left(counted_ptr<actor_object> actor, counted_ptr<spot_object> from);
  task<void> complete(counted_ptr<actor_object> actor, join_completion outcome);
  static void end_change(execution_object& actor);
  void reopen(counted_ptr<actor_object> actor);
  void remove_member(const counted_ptr<spot_object>& spot, counted_ptr<actor_object> actor);

  // Leave and end (actor_end.cpp).
  task<bool> leave_here(counted_ptr<spot_object> spot, counted_ptr<actor_object> actor, steady_time due);
  task<void> settle_after_leave(counted_ptr<actor_object> actor, counted_ptr<spot_object> from, counted_ptr<spot_object> entry);
  task<void> abandon(counted_ptr<actor_object> actor);
  bool hosts_somebody(const spot_object& spot) const;
  bool seal(actor_object& actor);
  task<void> finish_work(counted_ptr<actor_object> actor, steady_time due);
  task<void> dispose(counted_ptr<actor_object> actor, counted_ptr<spot_object> spot);
  task<void> end(counted_ptr<actor_object> actor, counted_ptr<spot_object> entry, steady_time due, bool remove_row);
  task<bool> destroy_exactly(actor_ref who, steady_time due, asker by);
  task<void> end_when_settled(counted_ptr<actor_object> actor, steady_time due);
  void take_nothing_more(actor_object& actor);
  task<std::optional<actor_ref>> look_up(std::string address);
  task<std::optional<spot_ref>> look_up_spot(std::string address);

  host_runtime& host_;
  std::size_t under_way_ = 0; ///< unit only
  std::map<std::string, counted_ptr<spot_object>> expected_; ///< by the Join of an Actor of another node; unit only
  std::vector<counted_ptr<actor_object>> drained_;
  std::set<const actor_object*> settling_; ///< have left, and are on their way home
};

/// The callbacks of a Spot about its Actors; null for one that hosts none, or that has ended.
actor_callbacks* callbacks_of(spot_object& spot) noexcept;

} // namespace zlink::detail
