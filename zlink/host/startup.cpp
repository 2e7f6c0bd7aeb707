// The start of a host in the order of C-46, and what happens when its lease is lost and regained (S-43, S-44).
#include "relocation/host_relocate.hpp"
#include "zlink/execution/job_sizing.hpp"
#include "zlink/execution/processors.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/placement/pause.hpp"
#include "zlink/placement/probe.hpp"

#include <caf/actor_system_config.hpp>

namespace zlink::detail {

namespace {

constexpr std::chrono::seconds registration_patience{10};
constexpr std::chrono::milliseconds registration_pause{500}; // before the store is asked again
constexpr std::chrono::seconds admission_watch_lead{1}; // far more than any timer is late

error failure_of(placement::registration_outcome outcome, const node_runtime& node) {
  const std::string name = "mesh \"" + node.mesh_name() + "\": ";
  switch (outcome) {
    case placement::registration_outcome::rid_taken:
      return {error_kind::invalid_configuration, name + "the routing id is held by another live node"};
    case placement::registration_outcome::entry_taken:
      return {error_kind::already_exists, name + "the Entry Spot id is in use"};
    default: return {error_kind::invalid_configuration, name + "registration failed: " + to_string(outcome)};
  }
}

/// As which a node is published that the store does not show yet. One that starts serves as soon as it is shown.
placement::node_state published_state(host_state state) noexcept {
  switch (state) {
    case host_state::relocating: return placement::node_state::relocating;
    case host_state::relocated: return placement::node_state::relocated;
    default: return placement::node_state::serving;
  }
}

/// It may work later.
bool is_delay(placement::registration_outcome outcome) noexcept {
  return outcome == placement::registration_outcome::late || outcome == placement::registration_outcome::not_held;
}

} // namespace

void host_runtime::note_deadline(std::optional<steady_time> until) {
  domain.admission_deadline.store(until ? until->time_since_epoch().count() : std::numeric_limits<std::int64_t>::min(),
                                  std::memory_order_release);
  domain.admission_over.store(!until, std::memory_order_release);
  if (until)
    infra->schedule(admission_watch_, *until - admission_watch_lead); // who asks too early asks the clock as well
  else
    infra->unschedule(admission_watch_);
}

void host_runtime::make_stores() {
  if (!location || (!relocation && !relocation_off)) {
    embedded_store own{time};
    if (!location)
      location = own.location();
    if (!relocation && !relocation_off)
      relocation = own.relocation();
  }
  repository = std::make_unique<placement::repository>(*infra, location, relocation);
  const placement::lease_settings lease{options.lease_renew_interval, options.lease_ttl, options.lease_renew_timeout,
                                        options.lease_fencing_margin};
  placement::ownership_events events;
  events.deadline = [this](std::optional<steady_time> until) { note_deadline(until); };
  events.lost = [this](const placement::owner_token& token) { lease_lost(token); };
  events.regained = [this](const placement::owner_token&) {
    infra->post([this] { start_coroutine(lease_regained(), [](result<void>) {}); });
  };
  events.failed = [this](std::string) { state.store(host_state::error); };
  ownership = std::make_unique<placement::ownership>(*infra, *repository, lease, *random, std::move(events));
  sweep = std::make_unique<placement::sweep>(*infra, *repository, *ownership, placement::sweep_settings{},
                                             [this](const std::string& id, const placement::row_record& row) {
                                               recovery.note_own_row(id, row);
                                             });
  placement::directory_settings discovery;
  discovery.polling_interval = options.discovery_polling_interval;
  discovery.lease_ttl = options.lease_ttl;
  discovery.lease_margin = options.lease_fencing_margin;
  discovery.failure_grace = options.store_failure_grace;
  for (auto& node : nodes) {
    auto& n = node->runtime();
    n.registration = std::make_unique<placement::node_registration>(*infra, *repository, *ownership);
    n.peers_known = std::make_unique<placement::directory>(*infra, *repository, n.mesh_name(), discovery);
    n.peers_known->add_listener([&n](const placement::directory::snapshot_ptr& known) { n.links->follow(known); });
    n.peers_known->on_recovery([this] { messages.routes.cache.clear(); }); // what changed meanwhile nobody could tell (M-79)
    sweep->add_node(n.identity);
  }
}

task<void> host_runtime::start() {
  if (ending())
    throw configuration_error{"the host has been shut down; make a new one"};
  if (start_begun_.exchange(true))
    throw configuration_error{"the host was started before"};
  const auto mistakes = collect_mistakes();
  if (!mistakes.empty()) {
    start_begun_ = false;
    throw configuration_error{mistakes};
  }
  const auto jobs = options.max_jobs == 0 ? std::nullopt : std::optional<std::int64_t>{options.max_jobs};
  const auto processors
    = effective_processors(read_processor_facts(static_cast<std::uint32_t>(
      caf::get_or(system.config(), "scheduler.max-threads", std::size_t{0}))));
  domain.workers = processors;
  permits = std::make_unique<job_permits>(job_permit_count(jobs, job_profile::balanced, processors), pressure_thresholds{},
                                          [this](bool paused, std::uint64_t version) {
                                            for (auto& node : nodes)
                                              if (node->runtime().links)
                                                for (auto& link : node->runtime().links->ready_links())
                                                  link->set_pressure(paused, version);
                                          });
  for (auto& node : nodes) {
    node->runtime().fix_identity(*random);
    has_objects_ = has_objects_ || node->runtime().has_object_role();
  }
  started_ = new_counted<operation<void>>();
  started_->dispatcher = dispatcher;
  auto answer = task<void>{started_};
  start_running_ = true;
  infra->post([this] { start_coroutine(start_sequence(), [](result<void>) {}); });
  return answer;
}

void host_runtime::end_start(std::optional<error> failure) {
  start_running_ = false;
  auto expected = host_state::preparing;
  if (!failure && !state.compare_exchange_strong(expected, host_state::serving))
    failure.emplace(error_kind::shutting_down, "the host was shut down while it started");
  if (!failure) {
    started_->set(result<void>{});
    return;
  }
  state.compare_exchange_strong(expected = host_state::preparing, host_state::error);
  start_failure.emplace(failure->message(), failure->kind());
  started_->fail(std::move(*failure));
}

/// What a transport does not take of its settings, certificates for instance, ends the start before anything is published.
std::optional<error> host_runtime::make_links() {
  try {
    for (auto& node : nodes) {
      auto& n = node->runtime();
      n.links = std::make_unique<mesh_links>(n, make_transport(n.mesh_name()));
    }
  } catch (const configuration_error& what) {
    return error{what.kind(), what.what()};
  }
  return std::nullopt;
}

/// Node-direct messages between peers configured by hand: no lease, no discovery, no objects (C-9).
std::optional<error> host_runtime::start_without_stores() {
  try {
    for (auto& node : nodes)
      node->runtime().note_listening(node->runtime().links->listen());
  } catch (const configuration_error& what) {
    return error{what.kind(), what.what()};
  }
  return std::nullopt;
}

bool host_runtime::start_interrupted() {
  if (ending())
    end_start(error{error_kind::shutting_down, "the host was shut down while it started"});
  return ending();
}

task<void> host_runtime::start_sequence() {
  if (auto failed = make_links()) {
    end_start(std::move(failed));
    co_return;
  }
  if (stores_off) {
    end_start(start_without_stores());
    if (state.load() == host_state::serving)
      for (auto& node : nodes)
        node->runtime().links->keep_manual_peers();
    co_return;
  }
  make_stores();
  auto owning = ownership->start();
  const auto owned = co_await std::move(owning);
  if (start_interrupted())
    co_return;
  if (owned.what == placement::ownership_start::failed) {
    end_start(error{error_kind::invalid_configuration, "owner lease: " + owned.mistake});
    co_return;
  }
  const auto until = time->now() + registration_patience;
  if (owned.what == placement::ownership_start::held) {
    auto claiming = probe_and_claim(until);
    if (auto failed = co_await std::move(claiming)) {
      end_start(std::move(failed));
      co_return;
    }
  }
  for (auto& node : nodes) {
    if (start_interrupted())
      co_return;
    auto entering = start_entry(node->runtime());
    if (auto failed = co_await std::move(entering)) {
      end_start(std::move(failed));
      co_return;
    }
  }
  if (start_interrupted())
    co_return;
  try {
    for (auto& node : nodes)
      node->runtime().note_listening(node->runtime().links->listen());
  } catch (const configuration_error& what) {
    end_start(error{what.kind(), what.what()});
    co_return;
  }
  for (auto& node : nodes)
    node->runtime().peers_known->start();
  for (auto& node : nodes) { // what the store does not carry out now comes later (S-43)
    if (!ownership->held() || start_interrupted())
      break;
    auto registering = register_node(node->runtime());
    if (co_await std::move(registering) == registration_end::impossible) {
      end_start(error{error_kind::invalid_configuration, "mesh \"" + node->name() + "\": registration failed"});
      co_return;
    }
  }
  if (!start_running_)
    co_return;
  end_start(std::nullopt);
  if (state.load() != host_state::serving)
    co_return;
  sweep->start();
  sweep_idle_later();
  start_coroutine(keep_registered(), [](result<void>) {});
}

/// A store that has gone since the lease was taken is no mistake of the configuration (S-43, S-160).
task<std::optional<error>> host_runtime::probe_and_claim(steady_time until) {
  auto probing = probe_location();
  if (auto failed = co_await std::move(probing)) {
    auto letting_go = ownership->release(until);
    co_await std::move(letting_go);
    co_return failed;
  }
  for (auto& node : nodes) {
    auto& n = node->runtime();
    auto claiming = n.registration->claim(n.identity, n.entry_id, until);
    const auto outcome = co_await std::move(claiming);
    if (outcome != placement::registration_outcome::done && !is_delay(outcome))
      co_return failure_of(outcome, n);
  }
  co_return std::nullopt;
}

/// A provider that answers wrongly is a mistake; one that does not answer is asked again once it does (S-20).
task<std::optional<error>> host_runtime::probe_location() {
  if (probed_)
    co_return std::nullopt;
  auto probing = placement::probe_store(*infra, location, *random, time->now() + options.lease_renew_timeout);
  const auto found = co_await std::move(probing);
  probed_ = found.what == placement::probe_outcome::good;
  if (found.what == placement::probe_outcome::wrong)
    co_return error{error_kind::invalid_configuration, found.mistake};
  co_return std::nullopt;
}

task<std::optional<error>> host_runtime::start_entry(node_runtime& node) {
  if (!node.settings.entry)
    co_return std::nullopt;
  auto numbering = repository->issue_generations();
  const auto numbers = co_await std::move(numbering);
  node.entry = activations.make_object(node, *node.settings.entry, node.entry_id);
  // Without a store a number of its own: nobody else knows this Spot, which has no row (C-132).
  const auto alone = object_generation{(random->next() >> 1) | 1};
  node.entry->set_generations(numbers ? numbers->object : alone, numbers ? numbers->authority : authority_generation{1});
  auto building = activations.build(*node.entry, node, std::nullopt);
  const auto built = co_await std::move(building);
  if (!built) {
    auto why = built.error();
    activations.discard(*node.entry, why);
    node.entry = nullptr;
    co_return error{error_kind::invalid_configuration, "mesh \"" + node.mesh_name() + "\": the Entry Spot failed to start: " + why.message()};
  }
  objects.insert(node.entry);
  activations.open(*node.entry);
  co_return std::nullopt;
}

// -- the lease ------------------------------------------------------------------------------------------------------------

void host_runtime::lease_lost(const placement::owner_token&) {
  messages.routes.cache.clear();
  start_coroutine(actors.abandon_all(), [](result<void>) {});
}

task<void> host_runtime::lease_regained() {
  auto probing = probe_location();
  if (co_await std::move(probing)) {
    state.store(host_state::error);
    co_return;
  }
  if (!start_running_) // else the start goes on with it
    co_await keep_registered();
}

task<void> host_runtime::keep_registered() {
  if (std::exchange(registering_, true))
    co_return; // somebody is at it, and sees what is missing
  bool again = true;
  while (again && !ending() && state.load() != host_state::error) {
    again = false;
    for (auto& node : nodes) {
      auto registering = register_node(node->runtime());
      const auto end = co_await std::move(registering);
      if (end == registration_end::impossible)
        state.store(host_state::error); // met only now (S-43)
      again = again || end == registration_end::again;
    }
    if (again) {
      auto pausing = placement::pause(*infra, registration_pause);
      co_await std::move(pausing);
    }
    again = again && ownership->held(); // else it begins anew with the next lease
  }
  registering_ = false;
}

task<host_runtime::registration_end> host_runtime::register_node(node_runtime& node) {
  auto& registration = *node.registration;
  const auto until = time->now() + registration_patience;
  if (registration.stamp()) {
    if (registration.descriptor().owner == token())
      co_return registration_end::done;
    auto renewing = registration.register_again(until);
    const auto renewed = co_await std::move(renewing);
    co_return is_delay(renewed) ? registration_end::again : registration_end::done;
  }
  auto claiming = registration.claim(node.identity, node.entry_id, until);
  const auto claimed = co_await std::move(claiming);
  if (claimed != placement::registration_outcome::done)
    co_return is_delay(claimed) ? registration_end::again : registration_end::impossible;
  auto publishing = registration.publish(node.describe(published_state(state.load())), until);
  const auto published = co_await std::move(publishing);
  if (published != placement::registration_outcome::done)
    co_return is_delay(published) ? registration_end::again : registration_end::impossible;
  if (node.entry)
    node.publish_entry();
  auto refreshing = node.peers_known->refresh();
  co_await std::move(refreshing);
  co_return registration_end::done;
}

void host_runtime::change_weight(node_runtime& node, std::uint32_t weight) {
  infra->post([this, &node, weight] {
    node.settings.placement_weight = weight;
    start_coroutine(keep_weight(node, weight), [](result<void>) {});
  });
}

/// Until the store shows it, or another one is wanted (S-49).
task<void> host_runtime::keep_weight(node_runtime& node, std::uint32_t weight) {
  while (!ending() && node.settings.placement_weight == weight) {
    auto change = node.registration->change([weight](placement::descriptor_record& d) { d.placement_weight = weight; },
                                            time->now() + registration_patience);
    if (!is_delay(co_await std::move(change)))
      co_return; // done, or it goes with the first publication
    auto pausing = placement::pause(*infra, registration_pause);
    co_await std::move(pausing);
  }
}

void host_runtime::change_channel_weight(node_runtime& node, const std::string& channel, std::uint32_t weight) {
  node.channels.set_weight(channel, weight);
  infra->post([this, &node] {
    if (node.links)
      node.links->tell_channels();
    if (!node.registration)
      return;
    auto change = node.registration->change([&node](placement::descriptor_record& d) { d.channels = node.published_channels(); },
                                            time->now() + registration_patience);
    start_coroutine(std::move(change), [](result<placement::registration_outcome>) {});
  });
}

void host_runtime::sweep_idle_later() {
  if (idle_sweep_period_.count() == 0)
    for (auto& node : nodes)
      if (const auto timeout = node->runtime().settings.instance_idle_timeout; timeout.count() != 0) {
        const auto period = std::clamp(timeout / 4, std::chrono::milliseconds{1}, std::chrono::milliseconds{1000});
        idle_sweep_period_ = idle_sweep_period_.count() == 0 ? period : std::min(idle_sweep_period_, period);
      }
  if (idle_sweep_period_.count() == 0)
    return;
  infra->post_after(idle_sweep_period_, [this] {
    if (ending())
      return;
    if (!relocating_->moves_units()) // what takes part is not evicted (L-203)
      closings.sweep_idle();
    sweep_idle_later();
  });
}

} // namespace zlink::detail
