// One unit on its way out: the state machine of its source (chapter 06, sections 5, 6, 11, 14).
#pragma once

#include "relocation/carried_unit.hpp"
#include "relocation/ingress_hold.hpp"
#include "relocation/lane_frames.hpp"
#include "relocation/moves.hpp"
#include "relocation/session_seals.hpp"
#include "relocation/source_record.hpp"
#include "relocation/wakeup.hpp"
#include "zlink/spot.hpp"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace zlink::detail {

class actor_object;
class spot_object;

/// Inside the infrastructure unit, but for what is said to run in turns.
class source_move final : public std::enable_shared_from_this<source_move> {
public:
  source_move(host_runtime& host, relocation_unit unit, placement::node_identity target, steady_time deadline);
  ~source_move();

  /// Ends when the unit has left (L-135), or runs on here.
  task<unit_end> run();

  const unique_id id;
  const std::uint64_t attempt;
  const std::string address; ///< of the lead, for reports
  const std::string& target() const noexcept { return target_.node_rid; }
  /// It has come to its end but for the members that its shell is there for.
  bool serves_members() const noexcept { return serves_members_; }

  // What comes by the lane.
  void ready(bool target_is_crowded);
  void refused(restore_refused why);
  void taken(std::uint64_t bytes);
  void link_changed(const std::string& rid, bool lost);
  /// The host ends.
  void end();

private:
  /// One object of the unit.
  struct part {
    counted_ptr<hosted_object> object;
    std::vector<timer_snapshot> timers;
  };
  enum class verdict : std::uint8_t { none, ready, refused, lost };

  task<unit_end> move_out();

  // Preparing, seal, capture (source_seal.cpp).
  task<std::optional<unit_end>> prepare();
  task<std::optional<unit_end>> await_store();
  task<std::optional<unit_end>> prepare_all();
  task<bool> seal();
  task<void> until_room();
  task<bool> try_in_turn(spot_object* spot);
  bool try_seal(spot_object* spot, hosted_object& lead);
  bool gather_parts(hosted_object& lead);
  bool claim(actor_object& actor);
  bool is_claimed_at_seal() const noexcept { return unit_.lead->is_actor() && !unit_.join; }
  void let_parts_go();
  void seal_part(std::uint32_t index);
  task<std::optional<unit_end>> seal_sessions();
  task<std::optional<unit_end>> capture();
  task<bytes> capture_in_turn(std::stop_token cancel);
  task<bytes> capture_state(hosted_object& object, std::stop_token cancel);
  carried_part capture_work(std::uint32_t index);
  carried_unit capture_all(std::vector<std::optional<bytes>> states);

  // The lane (source_lane.cpp).
  bool send_restore();
  void send_chunks();
  task<void> wait_for_verdict();
  void send(control_command command, const bytes& body);
  void pass_boundary();
  void send_batch();
  error link_was_lost() const;
  void fail_lost_lanes(const error& why);
  void relay(kept_record& kept, cutover_mark& mark);
  task<void> finish();
  counted_ptr<link_session> link_to_target() const;
  void send_again(counted_ptr<link_session> link);
  task<bool> see_commit(steady_time until);
  task<void> leave_source();
  task<void> tell_closing(spot_close_reason reason);
  task<void> until_members_left();
  task<void> close_instance();

  // The way back (source_abort.cpp).
  task<unit_end> go_back(relocate_reason reason, std::string why);
  void go_after_target();
  task<void> until_linked();
  task<void> restore();
  void restore_part(std::uint32_t index);
  void drop_captured(const error& why);
  task<void> withdraw();
  task<void> settle_lost();
  task<void> dispose_parts(error why);
  task<void> leave_spot();
  task<bool> end_instances(error why);
  void end_detours();
  void leave_pace();
  void end_transfer();
  std::chrono::milliseconds interruption() const;
  void start_forgetting();
  task<void> until_forgotten();
  void end_changes();

  host_runtime& host_;
  relocation_unit unit_;
  const placement::node_identity target_;
  const steady_time deadline_;
  const std::uint64_t number_; ///< stands in the reply table for what moves: requests that were captured or held
  std::uint64_t lane_number_;  ///< and this for what goes behind the cutover by `link_`, once
  std::vector<std::uint64_t> lost_lanes_; ///< of links that were lost: whether it has arrived nobody knows
  wakeup wake_;
  std::vector<part> parts_;
  counted_ptr<ingress_hold> hold_;
  std::vector<counted_ptr<detour>> detours_; ///< at the address of each part
  std::shared_ptr<source_record> record_;
  const std::shared_ptr<session_seals> sessions_;
  bool owes_completion_ = false;    ///< the Spot has signalled readiness (L-44)
  std::vector<kept_record> captured_;
  std::vector<kept_record> relayed_;
  bytes payload_;
  std::size_t chunk_bytes_ = 0; ///< of each chunk but the last
  std::size_t sent_bytes_ = 0;
  std::uint64_t taken_bytes_ = 0;
  counted_ptr<link_session> link_;
  /// Whatever the target answers comes by this link or a later one: it was the link when the target was not the owner yet.
  counted_ptr<link_session> answers_by_;
  verdict verdict_ = verdict::none;
  restore_refused refusal_;
  std::uint32_t batch_ = 0;
  bool batch_gone_ = false;         ///< there was a link when it was sent
  steady_time sealed_{};    ///< since when no turn begins
  steady_time submitted_{}; ///< when the cutover submit became terminal (L-183)
  bool paced_ = false;      ///< has a place among those that are under way
  bool forgetting_ = false;
  bool left_ = false; ///< the target is the owner
  bool serves_members_ = false;
  bool ended_ = false;
};

} // namespace zlink::detail
