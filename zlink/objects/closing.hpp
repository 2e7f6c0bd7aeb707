// How a Spot ends: check, seal, let accepted work finish, OnClosing, release (C-107 to C-120).
#pragma once

#include "zlink/objects/spot_object.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/task.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace zlink::detail {

class host_runtime;
class submission;

class closing {
public:
  explicit closing(host_runtime& host) noexcept : host_(host) {}
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;

  /// Closes this incarnation. The task of a caller outside of the Spot ends when everything is released; that of a turn
  /// of the Spot itself or of a part of it, which is `asking`, at the seal (C-115). Any thread. `deadline`: of the closing.
  task<bool> close(counted_ptr<spot_object> object, spot_close_reason reason, steady_time deadline,
                   execution_object* asking);
  /// The object has become quiet while it was closing, or was looked at for eviction.
  void quiet(spot_object& object) noexcept;
  /// A message with intent for an object that is sealed: runs on the next incarnation, in the order of arrival (C-117).
  /// False: the close is over, or there is none, and the message is still the caller's.
  bool hold(spot_object& object, submission& message);
  /// One bounded sweep for idle Instance Spots (C-108); inside the infrastructure unit.
  void sweep_idle();
  /// The host lost the token that this object is bound to: gone without OnClosing, unless it is sealed already (S-44).
  /// Inside the infrastructure unit.
  void abandon(counted_ptr<spot_object> object);
  /// The row of an object that has ended here goes, however long the store takes. Inside the infrastructure unit.
  task<void> remove_row(const hosted_object& object);
  /// Objects that are closing now.
  std::size_t under_way() const;

  std::atomic<std::uint64_t> failed_callbacks{0}; ///< on_closing calls that threw (L-243)

private:
  struct state;
  std::shared_ptr<state> find(spot_object& object) const;
  std::shared_ptr<state> begin(counted_ptr<spot_object> object) const;
  std::vector<submission> gather(state& closing);
  void refuse_unmarked(std::vector<submission> messages);
  bool holds_messages(state& closing);
  bool is_idle(spot_object& spot) const;
  bool is_lost(const state& closing) const;
  bool may_close(const state& closing, spot_object& spot) const;
  spot_close_reason reason_of(const state& closing) const;
  steady_duration time_left(const state& closing) const;
  placement::owned_object owned(const hosted_object& object) const;

  task<void> run(std::shared_ptr<state> closing);
  task<result<bool>> decide(std::shared_ptr<state> closing);
  task<bool> check(std::shared_ptr<state> closing);
  task<std::optional<error>> mark(std::shared_ptr<state> closing);
  void watch_deadline(std::shared_ptr<state> closing);
  void enforce_deadline(std::shared_ptr<state> closing);
  task<void> finish(std::shared_ptr<state> closing);
  task<void> release(std::shared_ptr<state> closing);
  task<bool> reincarnate(std::shared_ptr<state> closing);
  task<std::optional<placement::new_generations>> renew_row(std::shared_ptr<state> closing);

  host_runtime& host_;
  mutable std::mutex mutex_;
  std::unordered_map<spot_object*, std::shared_ptr<state>> closing_;
  std::vector<counted_ptr<spot_object>> sweep_; ///< what the sweep under way has not looked at yet
  std::size_t sweep_position_ = 0;
};

} // namespace zlink::detail
