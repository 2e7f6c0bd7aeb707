// All moves of one host, as their source and as their target.
#pragma once

#include "relocation/crowd_watch.hpp"
#include "relocation/move_pace.hpp"
#include "relocation/unit_mover.hpp"
#include "zlink/identity.hpp"
#include "zlink/messaging/control_calls.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace zlink::detail {

class host_runtime;
class link_session;
struct relayed_message;
class source_move;
class target_move;

/// What a move does, one after the other, on either side; told to `moves::on_step`. Tests kill here.
enum class move_step : std::uint8_t {
  // source
  preparing,       ///< the row is about to say so
  sealing,         ///< waits for a boundary
  sealed,          ///< no turn begins any more
  sessions_sealed, ///< or there are none
  captured,
  restore_sent,
  boundary,        ///< relay-ready is accepted
  cutover_sent,
  commit_seen,
  source_closed,
  followed_long_enough,
  // the way back
  aborting,
  fenced,
  restored,
  settled_lost,
  // target
  restore_received,
  payload_complete,
  row_reserved,
  rebuilt,
  relay_ready_sent,
  cutover_received,
  cutover_fallback,
  committing,
  committed,
  merged,
  opened,
  sessions_told,   ///< where its Actors are now (L-171)
  staging_removed,
};
inline constexpr std::size_t move_steps = static_cast<std::size_t>(move_step::staging_removed) + 1;
const char* to_string(move_step step) noexcept;

class moves final : public unit_mover {
public:
  explicit moves(host_runtime& host) noexcept;
  ~moves();
  moves(const moves&) = delete;
  moves& operator=(const moves&) = delete;

  task<unit_end> move(relocation_unit unit, placement::node_identity target, steady_time deadline) override;
  bool quiet() const noexcept override;

  /// A record of a lane. On the transport's thread. Throws `decode_error`.
  void arrived(node_runtime& node, link_session& link, control_command command, unique_id move, byte_view body);
  /// The link to that peer is ready, or was lost. Inside the unit.
  void link_changed(node_runtime& node, const std::string& rid, bool lost);
  /// Neither a source nor a target has steps to do; routes for those who still ask here do not count, nor do shells that
  /// serve their members. Any thread.
  bool at_rest() const noexcept { return under_way_.load(std::memory_order_acquire) == 0; }
  /// Of a Spot that has left, or was lost, the shell is here still for its members (L-152). Inside the unit.
  bool serves_members() const;
  /// An object of that address is being prepared here. Inside the unit.
  bool arrives(const std::string& address) const;
  /// The host ends: routes for late messages go. Inside the unit.
  void end();
  /// The object is on its way here, or was lost on its way out: a row of this host without an object is in order (L-163). Any
  /// thread.
  bool knows(const std::string& address) const;

  /// Inside the unit.
  move_pace pace;
  crowd_watch crowd;

  /// Set by tests, before the host starts; called in the unit or on a transport's thread.
  std::function<void(move_step step, const std::string& address)> on_step;
  void step(move_step step, const std::string& address) {
    if (on_step)
      on_step(step, address);
  }

private:
  friend class source_move;
  friend class target_move;
  void begin_target(node_runtime& node, link_session& link, unique_id move, byte_view body);
  void deliver_late(node_runtime& node, const link_session& link, const relayed_message& what);
  std::shared_ptr<source_move> source(unique_id move) const;
  std::shared_ptr<target_move> target(unique_id move) const;
  template <class F>
  void tell_source(const link_session& link, unique_id move, std::uint64_t attempt, F event);
  void forget(const source_move& ended);
  void forget(const target_move& ended);

  /// Stands for a link in the reply tables, and is none's.
  std::uint64_t next_number() noexcept { return (1ULL << 63) | numbers_.fetch_add(1, std::memory_order_relaxed); }

  host_runtime& host_;
  std::atomic<std::size_t> under_way_{0};
  std::atomic<std::uint64_t> numbers_{0};
  mutable std::mutex mutex_;
  std::map<unique_id, std::shared_ptr<source_move>> sources_;
  std::map<unique_id, std::shared_ptr<target_move>> targets_;
  std::map<std::string, unique_id> arriving_; ///< address of each object that is being prepared here: its move (L-109)
};

} // namespace zlink::detail
