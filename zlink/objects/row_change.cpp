#include "zlink/objects/row_change.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/placement/aggregates.hpp"
#include "zlink/placement/pause.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

constexpr std::chrono::seconds own_look_patience{1};
constexpr std::chrono::milliseconds longest_pause{1'000}; // between questions to a store that does not answer

} // namespace

task<row_outcome> change_row(host_runtime& host, row_change change) {
  row_outcome outcome;
  std::chrono::milliseconds pause{2};
  bool left = false;
  for (;;) {
    if (!change.seen) {
      auto reading = host.repository->read_object(change.id);
      auto read = co_await std::move(reading);
      if (const auto* found = placement::seen_in(read))
        change.seen = *found;
    }
    bool answered = false;
    if (change.seen) {
      outcome.seen = *std::exchange(change.seen, std::nullopt);
      const bool may_change = host.ownership->held();
      if (const auto* row = placement::row_in(outcome.seen); row != nullptr && row->aggregate && may_change && row->owner == host.token()
                                                             && !left) { // what moved it here is over: it stands for itself again
        left = true;
        auto leaving = placement::leave_one(*host.repository, row->kind, std::string{id_in(change.id)}, row->owner);
        if (co_await std::move(leaving) == placement::step_end::done)
          continue;
        change.seen = outcome.seen;
      }
      auto judgement = change.judge(outcome.seen);
      if (const auto* end = std::get_if<row_end>(&judgement); end != nullptr && (may_change || *end == row_end::settled)) {
        outcome.how = *end;
        co_return outcome;
      }
      if (may_change) {
        auto applying = host.repository->apply(std::move(std::get<placement::fragment>(judgement)));
        outcome.step = co_await std::move(applying);
        answered = outcome.step.what == placement::fragment_outcome::conflict;
        if (!answered && outcome.step.what != placement::fragment_outcome::not_applied) {
          const bool applied = outcome.step.what == placement::fragment_outcome::applied;
          outcome.how = applied ? row_end::applied : row_end::failed;
          co_return outcome;
        }
      }
    }
    if (change.give_up(answered))
      co_return outcome;
    if (answered) {
      for (auto& node : host.nodes) // a descriptor that this change names may be what has changed (S-73)
        if (auto& registration = node->runtime().registration) {
          auto looking = registration->look_at_own(host.time->now() + own_look_patience);
          co_await std::move(looking);
        }
      auto pausing = placement::pause_before_retry(*host.infra, *host.random);
      co_await std::move(pausing);
    } else {
      auto pausing = placement::pause(*host.infra, pause);
      co_await std::move(pausing);
      pause = std::min(pause * 2, longest_pause);
    }
  }
}

} // namespace zlink::detail
