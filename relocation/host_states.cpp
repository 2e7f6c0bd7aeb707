// Relocating and back, or on to Relocated, and what the store shows of it (L-220, L-221, L-224, L-225).
#include "relocation/host_relocate.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/placement/pause.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

constexpr std::chrono::seconds publish_patience{5};
constexpr std::chrono::milliseconds publish_pause{500};

} // namespace

/// No unit starts before the store shows of every node what the host does (L-220).
task<host_relocate::block> host_relocate::begin(steady_time due) {
  auto serving = host_state::serving;
  if (!host_.state.compare_exchange_strong(serving, host_state::relocating)) {
    auto ended = ended_by_host();
    co_return ended ? ended : block{relocate_reason::runtime_not_ready, "the host does not serve"};
  }
  tell("relocating", {});
  host_.tell_selection();
  auto publishing = publish(placement::node_state::relocating, std::min(due, host_.time->now() + publish_patience), false);
  const bool published = co_await std::move(publishing);
  if (auto ended = ended_by_host()) // a shutdown came first: what is published next is its matter (L-248)
    co_return ended;
  if (published)
    co_return block{};
  auto taking_back = take_back();
  co_return co_await std::move(taking_back);
}

/// Nobody knows what the store shows: it has to show again that the host serves, or the host ends (L-221).
task<host_relocate::block> host_relocate::take_back() {
  auto publishing = publish(placement::node_state::serving, host_.time->now() + publish_patience, true);
  const bool published = co_await std::move(publishing);
  if (auto ended = ended_by_host())
    co_return ended;
  auto relocating = host_state::relocating;
  if (!published)
    host_.shut_down_forced();
  else if (host_.state.compare_exchange_strong(relocating, host_state::serving))
    host_.tell_selection();
  co_return block{relocate_reason::store_unavailable, "the Location Store did not show in time that the host relocates"};
}

/// True: the store shows that state of every node. Draining has the last word.
task<bool> host_relocate::publish(placement::node_state state, steady_time until, bool for_sure) {
  bool all = true;
  if (!host_.repository)
    co_return all;
  const auto edit = [this, state](placement::descriptor_record& d) {
    d.state = host_.ending() ? placement::node_state::draining : state;
  };
  for (auto& node : host_.nodes) {
    auto& registration = *node->runtime().registration;
    auto changing = for_sure ? registration.change_for_sure(edit, until) : registration.change(edit, until);
    const auto outcome = co_await std::move(changing);
    all = all && outcome == placement::registration_outcome::done;
  }
  co_return all;
}

/// Whoever waits for the end finds it in the store, unless that takes long.
task<void> host_relocate::settle(bool relocated) {
  auto relocating = host_state::relocating;
  const auto next = relocated ? host_state::relocated : host_state::serving;
  if (!host_.state.compare_exchange_strong(relocating, next))
    co_return;
  host_.tell_selection();
  const auto shown = relocated ? placement::node_state::relocated : placement::node_state::serving;
  auto publishing = publish(shown, host_.time->now() + publish_patience, false);
  if (!co_await std::move(publishing))
    start_coroutine(keep_published(next), [](result<void>) {});
}

/// Until the store shows it, or it is no longer so.
task<void> host_relocate::keep_published(host_state state) {
  const auto shown = state == host_state::relocated ? placement::node_state::relocated : placement::node_state::serving;
  while (host_.state.load() == state) {
    auto publishing = publish(shown, host_.time->now() + publish_patience, true);
    if (co_await std::move(publishing))
      co_return;
    auto pausing = placement::pause(*host_.infra, publish_pause);
    co_await std::move(pausing);
  }
}

} // namespace zlink::detail
