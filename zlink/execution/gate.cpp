#include "zlink/execution/gate.hpp"

#include "zlink/execution/execution_object.hpp"
#include "zlink/execution/gathering.hpp"
#include "zlink/execution/job_permits.hpp"
#include "zlink/execution/waiting_room.hpp"

#include <cassert>

namespace zlink::detail {

namespace {

/// Per CAF worker: which gate it runs now and which one it runs next.
struct worker_state {
  gate* running = nullptr;
  gate* handed = nullptr; ///< woken here, holds its scheduling reference
  steady_time handed_at{};
  caf::execution_unit* unit = nullptr;
};

constinit thread_local worker_state worker;

/// A gate woken by a request or reply runs next on this worker, which costs no other thread; after a record that ends
/// later than this it leaves for another worker (D-2).
constexpr std::chrono::microseconds longest_hand_off{50};

} // namespace

caf::execution_unit* current_execution_unit() noexcept { return worker.unit; }

inbox_node* gate::idle() noexcept { return reinterpret_cast<inbox_node*>(1); }

// -- any thread -----------------------------------------------------------------------------------------------------

void gate::push(inbox_node& node, bool at_once) noexcept {
  auto* seen = inbox_.load(std::memory_order_relaxed);
  do
    node.next = seen == idle() ? nullptr : seen;
  while (!inbox_.compare_exchange_weak(seen, &node, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (seen == idle())
    wake(at_once);
}

void gate::push_ready(execution_object& object, bool at_once) noexcept {
  object.ref(); // until it leaves the ready set
  push(object, at_once);
}

void gate::wake(bool at_once) noexcept {
  ref(); // until it is idle again
  auto& w = worker;
  if (at_once || w.running == nullptr || !domain_.hand_off) {
    schedule(*domain_.system, this, w.unit);
    return;
  }
  if (auto* earlier = std::exchange(w.handed, this))
    schedule(*domain_.system, earlier, w.unit);
  w.handed_at = w.running->now_;
}

void gate::post(unique_function<void()> job) noexcept {
  auto* r = make_record(record_kind::call);
  r->body.emplace<unique_function<void()>>(std::move(job));
  push(*r, true);
}

void gate::wake_run(handler_run& run) noexcept {
  if (worker.running == this) {
    queue_resume(run);
    return;
  }
  auto* r = make_record(record_kind::wake);
  r->body.emplace<counted_ptr<handler_run>>(counted_ptr<handler_run>::share(&run));
  push(*r, true);
}

// -- CAF ------------------------------------------------------------------------------------------------------------

caf::resumable::resume_result gate::resume(caf::execution_unit* unit, std::size_t max_throughput) {
  constexpr std::size_t most = 300;
  auto& w = worker;
  w.unit = unit;
  const gathering replies; // of many turns go together
  std::size_t budget = std::clamp<std::size_t>(max_throughput, 1, most);
  const bool at_rest = run_batch(budget);
  // Gates woken here run here, while this worker has budget: two that talk to each other need no other thread.
  std::size_t chain = 4 * most;
  while (auto* next = std::exchange(w.handed, nullptr)) {
    std::size_t share = std::min<std::size_t>(most, chain);
    const auto before = share;
    if (share != 0 && next->run_batch(share))
      next->unref();
    else
      schedule(*domain_.system, next, unit);
    chain -= before - share;
  }
  w.unit = nullptr;
  return at_rest ? awaiting_message : resume_later;
}

bool gate::run_batch(std::size_t& budget) noexcept {
  auto& w = worker;
  auto* outer = std::exchange(w.running, this);
  now_ = domain_.time->now();
  turn_budget_end_ = now_ + domain_.occupancy;
  bool at_rest = false;
  for (;;) {
    drain_inbox();
    if (resumes_first_ != nullptr) {
      run_resumes();
      if (budget > 0)
        --budget;
      continue;
    }
    if (holder_ == nullptr && ready_first_ != nullptr) {
      if (budget == 0 || !run_ready(budget))
        break;
      continue;
    }
    return_reservations();
    if (become_idle()) {
      at_rest = true;
      break;
    }
  }
  return_reservations();
  if (served_ != 0)
    domain_.counters.served.fetch_add(std::exchange(served_, 0), std::memory_order_relaxed);
  w.running = outer;
  return at_rest;
}

void gate::return_reservation(execution_object& object, std::uint32_t bytes) noexcept {
  if (returned_to_ != &object) {
    return_reservations();
    returned_to_ = &object;
  }
  ++returned_records_;
  returned_bytes_ += bytes;
  // Returned one by one where somebody may miss them; else a few together, which spares the lane's word.
  constexpr std::uint32_t together = 16;
  const auto& word = object.whole().application_word_;
  if (returned_records_ >= together || word.has(admission_word::waiters_bit)
      || word.records() > domain_.application.records / 2 || word.bytes() > domain_.application.bytes / 2)
    return_reservations();
}

void gate::return_reservations() noexcept {
  if (returned_records_ == 0)
    return;
  auto& object = returned_to_->whole();
  if (object.application_word_.release(std::exchange(returned_records_, 0), std::exchange(returned_bytes_, 0)))
    domain_.waiting->room_in(object);
}

bool gate::become_idle() noexcept {
  inbox_node* none = nullptr;
  return inbox_.compare_exchange_strong(none, idle(), std::memory_order_acq_rel);
}

void gate::drain_inbox() noexcept {
  if (inbox_.load(std::memory_order_relaxed) == nullptr)
    return;
  auto* node = inbox_.exchange(nullptr, std::memory_order_acquire);
  inbox_node* in_order = nullptr;
  while (node != nullptr) {
    auto* next = node->next;
    node->next = in_order;
    in_order = node;
    node = next;
  }
  while (in_order != nullptr) {
    node = in_order;
    in_order = node->next;
    if (node->node == node_kind::record) {
      handle_control(static_cast<record*>(node));
      continue;
    }
    auto* object = static_cast<execution_object*>(node);
    object->next_ready_ = nullptr;
    (ready_first_ == nullptr ? ready_first_ : ready_last_->next_ready_) = object;
    ready_last_ = object;
  }
}

// -- runs -----------------------------------------------------------------------------------------------------------

void gate::queue_resume(handler_run& run) noexcept {
  if (run.now == handler_run::state::holding) {
    run.ref();
    run.next = nullptr;
    (resumes_first_ == nullptr ? resumes_first_ : resumes_last_->next) = &run;
    resumes_last_ = &run;
  } else if (run.now == handler_run::state::yielded && run.object().claim_ == &run) {
    run.object().claim_due_ = true;
    make_ready(run.object()); // behind the objects that are ready now
  } else if (run.now == handler_run::state::yielded) {
    auto* r = make_record(record_kind::resume);
    r->body.emplace<counted_ptr<handler_run>>(counted_ptr<handler_run>::share(&run));
    run.object().submit_unchecked(r, false);
  }
}

void gate::run_resumes() noexcept {
  auto run = counted_ptr<handler_run>::adopt(resumes_first_);
  resumes_first_ = run->next;
  {
    turn_scope scope{*this, run->object(), run.get()};
    run->resume();
  }
  settle(*run);
  now_ = domain_.time->now();
}

void gate::settle(handler_run& run) noexcept {
  if (run.now == handler_run::state::running) // a detached coroutine that did not suspend again
    run.now = handler_run::state::ended;
  if (run.now == handler_run::state::holding) {
    assert(holder_ == nullptr || holder_ == &run);
    holder_ = &run;
    return_reservations();
    return;
  }
  if (holder_ == &run)
    holder_ = nullptr;
  auto& object = run.object();
  if (run.now == handler_run::state::yielded && run.request() != nullptr && object.claims_while_yielded())
    object.claim_ = &run;
  else if (object.claim_ == &run)
    object.claim_ = nullptr; // released after the record has ended
  if (run.now == handler_run::state::ended)
    finish_run(run);
}

void gate::finish_run(handler_run& run) noexcept {
  auto& object = run.object();
  run.leave_object();
  run.end_scope();
  if (auto step = run.take_step()) {
    object.lifecycle_busy_ = false;
    turn_scope scope{*this, object, nullptr};
    step->ended(object, run.failure());
  } else if (auto* r = run.take_record()) {
    finish_record(object, r);
  }
  run.unref();
  make_ready(object); // a lane may have waited for this run
}

// -- records --------------------------------------------------------------------------------------------------------

bool gate::run_ready(std::size_t& budget) noexcept {
  auto& object = *ready_first_;
  object.drain();
  const bool application = object.claim_ != nullptr ? object.claim_due_ : object.open() && !object.application_.empty();
  const bool lifecycle = !object.lifecycle_.empty()
                         && (!object.lifecycle_busy_ || object.lifecycle_.front()->kind == record_kind::resume);
  switch (object.chooser_.pick(application, lifecycle)) {
    case lane_chooser::choice::none: leave_ready(object); return true;
    case lane_chooser::choice::application:
      if (std::exchange(object.claim_due_, false)) {
        resume_yielded(*object.claim_);
      } else {
        auto* r = object.application_.pop_front();
        gathering::expect(more_follows(object));
        run_record(object, r);
      }
      break;
    case lane_chooser::choice::lifecycle: run_step(object, object.lifecycle_.pop_front()); break;
  }
  --budget;
  now_ = domain_.time->now();
  if (&object.home() != this) {
    let_go(object);
    return true;
  }
  if (worker.handed != nullptr && now_ - worker.handed_at > longest_hand_off)
    schedule(*domain_.system, std::exchange(worker.handed, nullptr), worker.unit);
  if (now_ < turn_budget_end_)
    return true;
  if (ready_first_ != nullptr && ready_first_ != ready_last_) { // occupancy used up: to the back
    auto* first = ready_first_;
    ready_first_ = first->next_ready_;
    first->next_ready_ = nullptr;
    ready_last_->next_ready_ = first;
    ready_last_ = first;
  }
  return false;
}

/// Besides the record at hand.
bool gate::more_follows(const execution_object& object) const noexcept {
  return !object.application_.empty() || ready_first_ != ready_last_ || inbox_.load(std::memory_order_relaxed) != nullptr;
}

void gate::leave_ready(execution_object& object) noexcept {
  inbox_node* none = nullptr;
  auto* next = object.next_ready_;
  return_reservations();
  if (std::exchange(object.worked_, false))
    object.on_rest(now_);
  if (!object.inbox_.compare_exchange_strong(none, idle(), std::memory_order_acq_rel))
    return; // something arrived
  ready_first_ = next;
  if (next == nullptr)
    ready_last_ = nullptr;
  if (object.watch_quiet_ && object.quiet())
    object.on_quiet();
  object.unref();
}

/// It has another gate from now on; the reference of the ready set goes with it.
void gate::let_go(execution_object& object) noexcept {
  assert(ready_first_ == &object);
  return_reservations();
  ready_first_ = object.next_ready_;
  if (ready_first_ == nullptr)
    ready_last_ = nullptr;
  object.next_ready_ = nullptr;
  object.home().push(object, true);
}

void gate::make_ready(execution_object& object) noexcept {
  auto* parked = idle();
  if (object.inbox_.compare_exchange_strong(parked, nullptr, std::memory_order_acq_rel))
    push_ready(object, false);
}

void gate::run_record(execution_object& object, record* r) noexcept {
  switch (r->kind) {
    case record_kind::resume: run_continuation(object, r); return;
    case record_kind::caf_event: run_caf_event(object, r); return;
    case record_kind::pull: run_pulled(object, r); return;
    default: run_message(object, r); return;
  }
}

/// One after the other while there are some, as if each had been in the lane; `asked` asks again if others of this gate
/// or worker have their turn first.
void gate::run_pulled(execution_object& object, record* asked) noexcept {
  constexpr int most = 32;
  for (int n = 0; n < most; ++n) {
    gathering::expect(n != 0); // where one was, others are likely
    auto* r = object.pull();
    if (r != nullptr)
      run_message(object, r);
    if (r == nullptr || holder_ != nullptr) { // suspended: the object asks anew when that handler has ended, and once is enough
      free_record(asked);
      return;
    }
    now_ = domain_.time->now();
    if (now_ >= turn_budget_end_ || worker.handed != nullptr || inbox_.load(std::memory_order_relaxed) != nullptr)
      break;
  }
  object.submit_unchecked(asked, false);
}

/// What has waited for the permit is taken in on this thread, which then begins its own job. What that wakes is nothing of
/// this gate's and must not wait for it.
void gate::hand_on_permit(record& r) noexcept {
  auto* const here = std::exchange(worker.running, nullptr);
  std::exchange(r.permit, nullptr)->release_here();
  worker.running = here;
}

void gate::run_message(execution_object& object, record* r) noexcept {
  if (object.needs_lease() && !domain_.admits(now_)) {
    finish_refused(object, r, error{error_kind::unavailable, "this host does not hold its ownership lease at the moment"});
    return;
  }
  if (r->permit != nullptr)
    hand_on_permit(*r);
  ++served_;
  dispatched outcome;
  {
    turn_scope scope{*this, object, nullptr};
    scope.get().serves = true;
    bool well = true;
    try {
      outcome = object.dispatch(r);
    } catch (...) {
      well = false;
      fail_record(object, *r, std::current_exception());
    }
    if (auto ending = std::move(scope.get().scope); ending && outcome.run == nullptr)
      ending->end(r, well);
  }
  if (outcome.run != nullptr)
    settle(*outcome.run);
  else if (outcome.parked)
    park(object, r, *outcome.parked);
  else
    finish_record(object, r);
}

void gate::run_caf_event(execution_object& object, record* r) noexcept {
  turn_scope scope{*this, object, nullptr};
  try {
    object.consume_caf_event(*r);
  } catch (...) {
    note_failure(object, "callback of a CAF response", std::current_exception(), false);
  }
  free_record(r);
}

void gate::run_continuation(execution_object& object, record* r) noexcept {
  if (auto* waiting = r->body.get<counted_ptr<handler_run>>()) {
    auto run = std::move(*waiting);
    free_record(r);
    if (run->now == handler_run::state::yielded)
      resume_yielded(*run);
    return;
  }
  auto operation = std::move(*r->body.get<counted_ptr<operation_base>>());
  free_record(r);
  turn_scope scope{*this, object, nullptr};
  run_application_callback([&] { operation->run_callback(); });
}

void gate::resume_yielded(handler_run& run) noexcept {
  {
    turn_scope scope{*this, run.object(), &run};
    run.resume();
  }
  settle(run);
}

void gate::run_step(execution_object& object, record* r) noexcept {
  if (r->kind == record_kind::resume) { // of the step that is suspended, or a callback of one
    run_continuation(object, r);
    return;
  }
  auto step = std::move(*r->body.get<std::unique_ptr<lifecycle_step>>());
  object.lifecycle_word_.release(1, r->charged);
  free_record(r);
  object.lifecycle_busy_ = true;
  auto* run = new handler_run{*this, object, nullptr, false};
  {
    turn_scope scope{*this, object, run};
    run->start_step(std::move(step));
  }
  settle(*run);
}

void gate::finish_refused(execution_object& object, record* r, error what) noexcept {
  r->body.reset();
  r->body.emplace<error>(std::move(what));
  domain_.counters.drop(drop_reason::refused);
  finish_record(object, r);
}

void gate::finish_record(execution_object& object, record* r) noexcept {
  object.worked_ = true;
  object.on_handler_ended(*r);
  const auto charged = std::exchange(r->charged, 0);
  send_reply(r);
  if (charged != 0)
    return_reservation(object, charged);
}

} // namespace zlink::detail
