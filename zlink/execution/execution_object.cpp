#include "zlink/execution/execution_object.hpp"

#include <cassert>

namespace zlink::detail {

namespace {

inbox_node* idle() noexcept { return reinterpret_cast<inbox_node*>(1); }

} // namespace

execution_object::execution_object(execution_domain& domain, counted_ptr<gate> home, std::uint64_t application_flags,
                                   execution_object* whole)
  : inbox_node(node_kind::object), domain_(domain), owned_home_(std::move(home)), home_(owned_home_.get()),
    whole_(whole == nullptr ? this : whole),
    inbox_(idle()), application_word_(application_flags),
    open_((application_flags & admission_word::staging_bit) == 0) {}

execution_object::~execution_object() {
  assert(active_runs == nullptr && application_.empty() && lifecycle_.empty());
}

void execution_object::push(record* r) noexcept {
  const bool at_once = r->kind == record_kind::send; // a request's caller waits, so its receiver may run here next
  r->target = this;
  auto* seen = inbox_.load(std::memory_order_relaxed);
  do
    r->next = seen == idle() ? nullptr : seen;
  while (!inbox_.compare_exchange_weak(seen, r, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (seen == idle())
    home().push_ready(*this, at_once);
}

admission execution_object::submit(record* r, bool may_stage, bool behind_waiters) noexcept {
  const auto cost = cost_of(*r);
  const auto verdict = whole_->application_word_.admit(cost, domain_.application, may_stage, behind_waiters);
  if (verdict == admission::admitted) {
    r->charged = cost;
    push(r);
  }
  return verdict;
}

admission execution_object::submit_arrival(record* r, bool may_stage) noexcept {
  const auto cost = cost_of(*r);
  const auto verdict = whole_->application_word_.admit_arrival(cost, may_stage);
  if (verdict == admission::admitted) {
    r->charged = cost;
    push(r);
  }
  return verdict;
}

void execution_object::submit_unchecked(record* r, bool charge) noexcept {
  if (charge) {
    r->charged = cost_of(*r);
    whole_->application_word_.charge(r->charged);
  }
  push(r);
}

void execution_object::submit_step(std::unique_ptr<lifecycle_step> step) noexcept {
  auto* r = make_record(record_kind::lifecycle);
  r->body.emplace<std::unique_ptr<lifecycle_step>>(std::move(step));
  r->charged = record_overhead_bytes;
  lifecycle_word_.charge(r->charged);
  push(r);
}

/// The look that the whole takes when it is made ready is the one that counts: by then the subtraction is visible.
void execution_object::part_quiet(std::uint32_t records) noexcept {
  if (busy_parts_.fetch_sub(records, std::memory_order_acq_rel) == records)
    home().post([held = counted_ptr<execution_object>::share(this)] { held->home().make_ready(*held); });
}

void execution_object::divert_continuations() noexcept {
  divert_.store(false, std::memory_order_relaxed);
  if (open())
    return;
  record_fifo waiting;
  while (!application_.empty()) {
    auto* r = application_.pop_front();
    if (r->kind == record_kind::resume)
      lifecycle_.push_continuation(r);
    else
      waiting.push_back(r);
  }
  application_ = waiting;
}

void execution_object::drain() noexcept {
  if (divert_.load(std::memory_order_acquire))
    divert_continuations();
  const auto* seen = inbox_.load(std::memory_order_relaxed);
  if (seen == nullptr || seen == idle()) // asked for while parked: nothing has arrived
    return;
  auto* node = inbox_.exchange(nullptr, std::memory_order_acquire);
  assert(node != idle());
  inbox_node* in_order = nullptr;
  while (node != nullptr) {
    auto* next = node->next;
    __builtin_prefetch(reinterpret_cast<const char*>(node) + 64); // the body: it comes from the sender's core as well
    node->next = in_order;
    in_order = node;
    node = next;
  }
  while (in_order != nullptr) {
    auto* r = static_cast<record*>(in_order);
    in_order = r->next;
    if (r->kind == record_kind::lifecycle)
      lifecycle_.push_back(r);
    else if (r->kind == record_kind::resume && !open())
      lifecycle_.push_continuation(r); // of a lifecycle callback, which messages that wait for the opening do not hold up
    else
      application_.push_back(r);
  }
}

void execution_object::set_open(bool open) noexcept {
  open_.store(open, std::memory_order_release);
  if (open)
    home().make_ready(*this);
  else
    divert_.store(true, std::memory_order_relaxed);
}

void execution_object::move_home(counted_ptr<gate> next) noexcept {
  assert(active_runs == nullptr || active_runs->next_active == nullptr); // at most the step that moves it
  assert(outstanding == 0);
  home_.store(next.get(), std::memory_order_relaxed);
  owned_home_ = std::move(next); // the old gate lives at least as long as the turn under way
}

bool execution_object::quiet() const noexcept {
  const auto* arrivals = inbox_.load(std::memory_order_acquire);
  return application_.empty() && lifecycle_.empty() && active_runs == nullptr && outstanding == 0
         && (arrivals == nullptr || arrivals == idle()) && busy_parts_.load(std::memory_order_acquire) == 0;
}

bool execution_object::quiet_besides_this_step() noexcept {
  drain();
  const auto* own = current_run();
  const bool only_this = active_runs == own && (own == nullptr || own->next_active == nullptr);
  return application_.empty() && only_this && outstanding == 0 && busy_parts_.load(std::memory_order_acquire) == 0;
}

void execution_object::refuse_waiting(const error& why, bool continuations) noexcept {
  drain();
  record_fifo kept;
  while (!application_.empty()) {
    auto* r = application_.pop_front();
    if (r->kind == record_kind::resume) {
      if (continuations)
        free_record(r);
      else
        kept.push_back(r);
      continue;
    }
    if (r->charged != 0)
      whole_->application_word_.release(1, r->charged);
    r->charged = 0;
    domain_.counters.drop(drop_reason::closed);
    on_refused(*r);
    r->body.reset();
    r->body.emplace<error>(why);
    send_reply(r);
  }
  application_ = kept;
  while (continuations && !lifecycle_.empty() && lifecycle_.front()->kind == record_kind::resume)
    free_record(lifecycle_.pop_front());
}

bool execution_object::at_boundary(const handler_run* step) noexcept {
  drain();
  const bool none_else = active_runs == step && (step == nullptr || step->next_active == nullptr);
  return none_else && outstanding == 0 && claim_ == nullptr && lifecycle_.empty() && (step != nullptr || !lifecycle_busy_)
         && busy_parts_.load(std::memory_order_acquire) == 0;
}

std::vector<record*> execution_object::take_unstarted() {
  drain();
  std::vector<record*> taken;
  while (!application_.empty()) {
    auto* r = application_.pop_front();
    if (r->charged != 0)
      whole_->application_word_.release(1, std::exchange(r->charged, 0));
    if (r->kind == record_kind::send || r->kind == record_kind::request || r->kind == record_kind::tick) {
      r->target = nullptr;
      taken.push_back(r);
    } else {
      free_record(r);
    }
  }
  return taken;
}

std::vector<record*> execution_object::take_waiting() {
  drain();
  std::vector<record*> taken;
  while (!application_.empty()) {
    auto* r = application_.pop_front();
    assert(r->kind == record_kind::send || r->kind == record_kind::request);
    whole_->application_word_.release(1, std::exchange(r->charged, 0));
    r->target = nullptr;
    taken.push_back(r);
  }
  return taken;
}

} // namespace zlink::detail
