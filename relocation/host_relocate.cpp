#include "relocation/host_relocate.hpp"

#include "zlink/host/host_runtime.hpp"

#include <algorithm>

namespace zlink::detail {

host_relocate::host_relocate(host_runtime& host, unit_mover& mover) : host_(host), mover_(&mover) {}

// -- any thread -----------------------------------------------------------------------------------------------------------

task<relocate_result> host_relocate::relocate(const relocate_options& options, std::stop_token cancel) {
  relocate_result asked;
  asked.mode = options.mode;
  asked.target_version = effective_version(options, host_.options.application_version);
  const auto due = host_.time->now() + std::min<std::chrono::milliseconds>(options.deadline, defaults::longest_timeout); // days: no overflow
  auto told = new_counted<operation<relocate_result>>();
  told->verb = "relocation of the host";
  told->dispatcher = host_.dispatcher;
  told->watch(std::move(cancel), [this, told = told.get()] {
    host_.infra->post([this, who = waiter::share(told)] { this->cancel(who); });
  });
  host_.infra->post([this, asked, due, told] { ask(asked, due, told); });
  return task<relocate_result>{std::move(told)};
}

bool host_relocate::safe_to_shutdown() const noexcept {
  return host_.state.load() == host_state::relocated && mover_->quiet();
}

std::optional<relocate_result> host_relocate::last_result() const {
  std::lock_guard guard{mutex_};
  return last_;
}

std::vector<unit_report> host_relocate::reports() const {
  std::lock_guard guard{mutex_};
  return reports_;
}

// -- inside the unit ------------------------------------------------------------------------------------------------------

/// L-228.
void host_relocate::ask(relocate_result asked, steady_time due, waiter told) {
  if (told->done()) // cancelled before
    return;
  const auto answer = [&](relocate_reason reason) {
    asked.outcome = relocate_outcome::blocked;
    asked.reason = reason;
    told->set(result<relocate_result>{asked});
  };
  if (running_ && !host_.ending()) {
    if (asked.mode == asked_.mode && asked.target_version == asked_.target_version)
      waiting_.push_back(std::move(told));
    else
      answer(relocate_reason::operation_in_progress);
    return;
  }
  if (host_.state.load() == host_state::relocated) {
    told->set(result<relocate_result>{*last_result()});
    return;
  }
  if (const auto why = ended_by_host()) {
    answer(why.reason);
    return;
  }
  running_ = true;
  asked_ = asked;
  waiting_.push_back(std::move(told));
  start_coroutine(run(due), [](result<void>) {});
}

/// What the host itself has to say against it; nothing while it serves.
host_relocate::block host_relocate::ended_by_host() const {
  switch (host_.state.load()) {
    case host_state::draining: return {relocate_reason::shutdown_requested, "the host is shutting down"};
    case host_state::preparing: return {relocate_reason::runtime_not_ready, "the host has not started"};
    case host_state::stopped: return {relocate_reason::runtime_not_ready, "the host has ended"};
    case host_state::error: return {relocate_reason::runtime_not_ready, "the host has failed"};
    default: return {};
  }
}

/// With the lease everything that was here is lost: that nothing is left does not mean that it has moved (S-44, L-226).
host_relocate::block host_relocate::lease_gone() const {
  if (!host_.repository || (host_.ownership->token() && host_.token() == token_))
    return {};
  return {relocate_reason::store_unavailable, "the ownership lease of this host was lost meanwhile"};
}

/// L-229.
void host_relocate::cancel(const waiter& who) {
  if (std::erase(waiting_, who) != 0 || !who->done())
    who->cancel();
}

task<void> host_relocate::run(steady_time due) {
  {
    std::lock_guard guard{mutex_};
    reports_.clear();
  }
  targets_.emplace(host_, asked_.target_version);
  auto looking = until_possible(due);
  auto why = co_await std::move(looking);
  if (why) { // nothing has changed (L-214)
    end(why);
    co_return;
  }
  auto beginning = begin(due);
  why = co_await std::move(beginning);
  if (!why) {
    moving_ = true;
    auto moving = move_all(due);
    why = co_await std::move(moving);
    auto settling = settle(!why);
    co_await std::move(settling);
    moving_ = false;
    if (auto ended = ended_by_host()) // meanwhile, whatever the units came to (L-248)
      why = std::move(ended);
  }
  end(why);
}

void host_relocate::end(const block& why) {
  auto outcome = asked_;
  outcome.outcome = why ? relocate_outcome::blocked : relocate_outcome::relocated;
  outcome.reason = why.reason;
  {
    std::lock_guard guard{mutex_};
    last_ = outcome;
  }
  running_ = false;
  targets_.reset();
  failed_ = {};
  tell(to_string(outcome.outcome), why);
  for (auto& who : std::exchange(waiting_, {}))
    who->set(result<relocate_result>{outcome});
}

/// With a unit that did not end in time.
void host_relocate::end_waits() {
  auto outcome = asked_;
  outcome.outcome = relocate_outcome::blocked;
  outcome.reason = relocate_reason::shutdown_requested;
  for (auto& who : std::exchange(waiting_, {}))
    who->set(result<relocate_result>{outcome});
}

/// L-272.
void host_relocate::tell(std::string_view state, const block& why) const {
  trace_record told;
  told.category = trace_category::actor_relocation;
  told.event = "zlink.runtime.host.relocation_changed";
  told.state = state;
  told.reason = why ? to_string(why.reason) : "";
  told.cause = std::string_view{why.why}.substr(0, longest_cause);
  if (why.who)
    name(told, *why.who);
  host_.trace(told);
}

/// Whoever keeps a host from being emptied is to be found (O-100).
void host_relocate::name(trace_record& told, const hosted_object& who) {
  told.mesh_name = who.mesh_name();
  (who.is_actor() ? told.actor_id : told.spot_id) = id_in(who.address());
  (who.is_actor() ? told.actor_type : told.spot_type) = who.type();
  if (const auto kind = unit_kind_of(who)) { // else it goes with its Spot
    told.unit_kind = to_string(*kind);
    told.execution_mode = execution_mode_of(*kind);
  }
}

} // namespace zlink::detail
