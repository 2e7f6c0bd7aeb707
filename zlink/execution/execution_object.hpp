// A thing that owns a pair of lanes: a Spot, an Actor, a timer of a PerActor Spot, a node's handler table.
#pragma once

#include "zlink/execution/domain.hpp"
#include "zlink/execution/gate.hpp"
#include "zlink/execution/lane.hpp"
#include "zlink/execution/turn.hpp"

#include <string>

namespace zlink::detail {

/// Leads the answer to a parked request back to it; touched inside the gate only.
struct late_answer final : counted {
  std::uint64_t id = 0; ///< in the gate's operation table; zero until parked, and out of date once it has ended
};

/// How `dispatch` left a record.
struct dispatched {
  handler_run* run = nullptr;      ///< a coroutine handler has taken the record
  counted_ptr<late_answer> parked; ///< the request is answered later by a record of kind `answered` about this
};

class execution_object : public inbox_node {
public:
  /// `whole`: the object that this one is a part of; null: none.
  execution_object(execution_domain& domain, counted_ptr<gate> home, std::uint64_t application_flags,
                   execution_object* whole = nullptr);
  execution_object(const execution_object&) = delete;
  execution_object& operator=(const execution_object&) = delete;

  void ref() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void unref() const noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      const_cast<execution_object*>(this)->destroy();
  }

  // -- any thread ------------------------------------------------------------------------------------------------------

  /// Reserves room and appends in one step as seen by the gate. Anything but `admitted` leaves `r` to the caller.
  admission submit(record* r, bool may_stage, bool behind_waiters = true) noexcept;
  /// As `submit` for a record from another node: lack of room is no reason.
  admission submit_arrival(record* r, bool may_stage) noexcept;
  /// Appends without asking for room: holds, resumes (X-26, D-6).
  void submit_unchecked(record* r, bool charge) noexcept;
  /// Appends to the lifecycle lane. Room there is a matter of the step's own operation.
  void submit_step(std::unique_ptr<lifecycle_step> step) noexcept;

  admission_word& application_word() noexcept { return application_word_; }
  const admission_word& application_word() const noexcept { return application_word_; }
  execution_domain& domain() const noexcept { return domain_; }
  /// Its gate. Of an Actor it changes with its membership; only turns and who makes it ready may rely on it.
  gate& home() const noexcept { return *home_.load(std::memory_order_relaxed); }
  virtual std::string_view mesh_name() const noexcept = 0;
  /// For reports: what it is, which Spot, and what `r` brings it.
  virtual std::string_view surface() const noexcept { return "node"; }
  virtual std::string_view spot_id() const noexcept { return {}; }
  /// It is found under this address.
  virtual bool is_at(std::string_view) const noexcept { return false; }
  /// How long a one-way message waits for room here.
  virtual steady_duration send_patience() const noexcept { return defaults::send_timeout; }
  virtual std::string subject_of(record& r) const { return packet_name_of(r.body); }

  /// The object itself, or the one that it is a part of, as a timer of a PerActor Spot is of the Spot: records of
  /// a part count against the lane of the whole, its turns are turns of the whole, under another gate.
  execution_object& whole() const noexcept { return *whole_; }
  /// A record has been submitted to a part. Paired with `part_quiet`.
  void part_busy() noexcept { busy_parts_.fetch_add(1, std::memory_order_acq_rel); }
  /// Of so many records of a part nothing waits, runs or is owed any more.
  void part_quiet(std::uint32_t records) noexcept;

  // -- inside a turn of this object's gate -------------------------------------------------------------------------------

  /// Runs the handler of `r`. Neither run nor parked: it has ended and `r->body` is the reply, if one is owed. May throw
  /// what the application throws.
  virtual dispatched dispatch(record* r) = 0;
  /// In place of a `pull` record: the record to dispatch, or null. Asked again after each one.
  virtual record* pull() noexcept { return nullptr; }
  /// Something that CAF delivered to the object's face: a response, a down or exit message.
  virtual void consume_caf_event(record&) {}
  /// Yield here: none, or the kind of refusal.
  virtual std::optional<error_kind> yield_refused() const noexcept = 0;
  /// A yielded run keeps the head of this object's application lane: nothing behind it starts before the run has ended,
  /// while other objects of the gate run. So it is with Actors; a Spot's other messages run meanwhile.
  virtual bool claims_while_yielded() const noexcept { return false; }
  /// Its handlers may register Joins (J-58).
  virtual bool may_join() const noexcept { return false; }
  /// Ticks and messages need the host's ownership deadline (S-40).
  virtual bool needs_lease() const noexcept { return true; }
  /// Nothing runs, waits or is owed any more; called when that becomes true while `watch_quiet` is set.
  virtual void on_quiet() noexcept {}
  /// A handler has ended; for root retirement.
  virtual void on_handler_ended(record&) noexcept {}
  /// Handlers have ended since the last call, and no record waits; for idle eviction.
  virtual void on_rest(steady_time) noexcept {}
  /// A record ends without having been dispatched, because the object does.
  virtual void on_refused(record&) noexcept {}

  /// Application records start only while open; an object under construction is not (C-96).
  bool open() const noexcept { return open_.load(std::memory_order_relaxed); }
  void set_open(bool open) noexcept;
  /// From any thread: what has not started waits behind a barrier, until a turn sets it open again (J-65).
  void shut() noexcept {
    open_.store(false, std::memory_order_release);
    divert_.store(true, std::memory_order_release);
  }
  /// In the last instant of a turn, with nothing else of the object under way: from the next one on `next` is its gate.
  void move_home(counted_ptr<gate> next) noexcept;
  void watch_quiet(bool on) noexcept { watch_quiet_ = on; }
  /// No application record waits or runs, no run is suspended, no operation of its turns is under way (C-107, X-173); in
  /// its parts neither.
  bool quiet() const noexcept;
  /// As `quiet`, asked inside a lifecycle step, which does not count.
  bool quiet_besides_this_step() noexcept;
  /// Ends what waits in the application lane without running it. What continues something that has begun stays, so that
  /// runs and callbacks come to their ends; with `continuations`, because the instance is about to be destroyed, it goes too.
  void refuse_waiting(const error& why, bool continuations = false) noexcept;
  /// The messages that wait, in order, out of an object that has never been open. In a turn.
  std::vector<record*> take_waiting();
  /// No handler run of it is under way, nothing that one has begun is owed, and no step waits, besides `step`, the one that
  /// asks; null: none does (L-50). In a turn of its gate.
  bool at_boundary(const handler_run* step) noexcept;
  /// Work that has not started, in order: messages and ticks. What CAF had for the object's face ends here, with the face.
  /// In a turn of its gate, at a boundary.
  std::vector<record*> take_unstarted();

  std::uint32_t outstanding = 0;         ///< operations started in turns of this object and not ended
  handler_run* active_runs = nullptr;    ///< suspended or running coroutine handlers

protected:
  virtual ~execution_object();
  virtual void destroy() noexcept { delete this; }

private:
  friend class gate;

  void push(record* r) noexcept;
  /// Moves arrivals into the lanes.
  void drain() noexcept;
  void divert_continuations() noexcept;

  execution_domain& domain_;
  counted_ptr<gate> owned_home_; ///< touched in turns
  /// Who finds the inbox parked reads it, and nobody can move the object then: a turn is needed for that.
  std::atomic<gate*> home_;
  execution_object* whole_; ///< outlives its parts
  mutable std::atomic<std::uint32_t> references_{1};
  std::atomic<std::uint32_t> busy_parts_{0};
  // Written by senders.
  std::atomic<inbox_node*> inbox_;
  admission_word application_word_;
  admission_word lifecycle_word_;
  // The gate's. What changes with every record comes last, a cache line away from what senders write.
  execution_object* next_ready_ = nullptr;
  record_fifo lifecycle_;
  std::atomic<bool> open_;
  std::atomic<bool> divert_{false}; ///< it was shut: continuations among what waits go on all the same
  bool watch_quiet_ = false;
  bool worked_ = false; ///< since the last `on_rest`
  bool lifecycle_busy_ = false; ///< a step is suspended: the next one waits for its end
  bool claim_due_ = false;      ///< the run with the claim may go on
  handler_run* claim_ = nullptr; ///< the yielded run that keeps the head of the application lane
  lane_chooser chooser_;
  record_fifo application_;
};

} // namespace zlink::detail
