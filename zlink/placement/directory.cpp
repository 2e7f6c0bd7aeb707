#include "zlink/placement/directory.hpp"

#include "zlink/placement/lease.hpp"

#include <algorithm>
#include <iterator>

namespace zlink::placement {

namespace {

/// How often a list whose snapshot got lost is begun again before the read counts as failed (S-14).
constexpr int list_attempts = 8;

bool same_for_listeners(const directory_snapshot& a, const directory_snapshot& b) {
  return a.damaged() == b.damaged()
         && std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                       [](const live_node& x, const live_node& y) {
                         return x.version == y.version && x.lingering == y.lingering
                                && x.descriptor->node == y.descriptor->node;
                       });
}

} // namespace

// -- snapshot --------------------------------------------------------------------------------------------------------------

directory_snapshot::directory_snapshot(std::vector<live_node> nodes, bool damaged)
  : nodes_(std::move(nodes)), damaged_(damaged) {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (const auto& id = nodes_[i].descriptor->entry_spot_id; !id.empty() && !nodes_[i].lingering)
      by_entry_spot_.emplace(id, i);
}

const live_node* directory_snapshot::find(std::string_view node_rid) const noexcept {
  const auto at = std::lower_bound(nodes_.begin(), nodes_.end(), node_rid, [](const live_node& node, auto rid) {
    return node.descriptor->node.node_rid < rid;
  });
  return at != nodes_.end() && at->descriptor->node.node_rid == node_rid ? &*at : nullptr;
}

const live_node* directory_snapshot::find_entry_spot(std::string_view spot_id) const noexcept {
  const auto at = by_entry_spot_.find(spot_id);
  return at != by_entry_spot_.end() ? &nodes_[at->second] : nullptr;
}

std::vector<candidate> directory_snapshot::candidates(steady_time now) const {
  std::vector<candidate> all;
  all.reserve(nodes_.size() + 1);
  for (const auto& node : nodes_)
    if (!node.lingering)
      all.push_back({node.descriptor.get(), lease_health::live, !node.usable(now)});
  if (damaged_)
    all.push_back({nullptr, lease_health::corrupt, false});
  return all;
}

// -- polling ---------------------------------------------------------------------------------------------------------------

directory::directory(detail::infrastructure& unit, repository& records, std::string mesh_name,
                     const directory_settings& settings)
  : mesh_name_(std::move(mesh_name)),
    settings_(settings),
    calls_(unit, records.location()),
    snapshot_(std::make_shared<const directory_snapshot>()) {}

directory::~directory() = default;

void directory::start() {
  running_ = true;
  detail::start_coroutine(poll(), [this](result<void>) { on_poll_end(); });
}

task<void> directory::poll() {
  while (!calls_.stopped()) {
    const auto began = calls_.now();
    const auto asking = std::exchange(waiting_, {});
    auto reading = read_all(!asking.empty());
    const auto outcome = co_await std::move(reading);
    for (const auto& one : asking)
      one->set(result<refresh_outcome>{outcome});
    if (waiting_.empty()) {
      auto pausing = calls_.pause_until(began + settings_.polling_interval);
      co_await std::move(pausing);
    }
  }
}

void directory::on_poll_end() {
  running_ = false;
  for (auto& one : std::exchange(waiting_, {}))
    one->set(result<refresh_outcome>{refresh_outcome::unavailable});
  for (auto& one : std::exchange(waiting_for_end_, {}))
    one->set(result<void>{});
}

task<void> directory::stop() {
  calls_.stop();
  if (!running_)
    co_return;
  auto ended = detail::new_counted<detail::operation<void>>();
  ended->dispatcher = calls_.unit().unit();
  waiting_for_end_.push_back(ended);
  co_await task<void>{std::move(ended)};
}

task<refresh_outcome> directory::refresh() {
  if (!running_ || calls_.stopped())
    co_return refresh_outcome::unavailable;
  auto asked = detail::new_counted<detail::operation<refresh_outcome>>();
  asked->dispatcher = calls_.unit().unit();
  waiting_.push_back(asked);
  calls_.wake();
  co_return co_await task<refresh_outcome>{std::move(asked)};
}

// -- one complete read -------------------------------------------------------------------------------------------------------

/// Nothing is changed unless all of it was read and can be used (S-52, S-55, S-68).
task<refresh_outcome> directory::read_all(bool every_lease) {
  const auto began = calls_.now();
  listing all;
  auto listed = list(all);
  if (!co_await std::move(listed)) {
    note_failure();
    co_return refresh_outcome::unavailable;
  }
  auto outcome = all.damaged ? refresh_outcome::damaged : refresh_outcome::complete;
  if (!all.damaged) {
    auto judging = judge_leases(all, every_lease);
    outcome = co_await std::move(judging);
  }
  switch (outcome) {
    case refresh_outcome::unavailable: note_failure(); break;
    case refresh_outcome::damaged:
      note_answer();
      install(snapshot()->nodes(), true);
      break;
    case refresh_outcome::complete:
      note_answer();
      apply(all, began);
      break;
  }
  co_return outcome;
}

/// All pages of one snapshot of the store, so that they show one point in time (S-14, S-55). False: no answer.
task<bool> directory::list(listing& into) {
  std::string cursor;
  for (int attempts = 1; attempts <= list_attempts && !calls_.stopped();) {
    const auto until = calls_.now() + settings_.call_timeout;
    auto scanning = calls_.scan(descriptor_prefix(mesh_name_), cursor, settings_.page_items, until);
    const auto page = co_await std::move(scanning);
    if (!page)
      co_return false;
    if (page->expired) {
      into = {};
      cursor.clear();
      ++attempts;
      continue;
    }
    for (const auto& item : page->items)
      take_item(into, item);
    if (page->next.empty())
      co_return true;
    cursor = page->next;
  }
  co_return false;
}

void directory::take_item(listing& into, const store_scan_item& item) const {
  const auto rid = std::string_view{item.key}.substr(descriptor_prefix(mesh_name_).size());
  found_node found;
  found.node.version = item.value.version;
  if (const auto* before = snapshot_->find(rid); before && before->version == item.value.version) {
    found.node.descriptor = before->descriptor;
  } else {
    auto record = decode<descriptor_record>(item.value.bytes);
    const auto* descriptor = std::get_if<descriptor_record>(&record);
    if (!descriptor || descriptor->node.mesh_name != mesh_name_ || descriptor->node.node_rid != rid) {
      into.damaged = true;
      return;
    }
    if (descriptor->state == node_state::claimed)
      return; // no descriptor yet (S-47)
    found.node.descriptor = std::make_shared<const descriptor_record>(*descriptor);
  }
  into.found.push_back(std::move(found));
}

task<refresh_outcome> directory::judge_leases(listing& all, bool every_lease) {
  for (auto& one : all.found) {
    if (!every_lease && is_known(one, calls_.now()))
      continue;
    auto reading = read_lease(one);
    const auto outcome = co_await std::move(reading);
    if (outcome != refresh_outcome::complete)
      co_return outcome;
  }
  co_return refresh_outcome::complete;
}

/// Whether an earlier read of the lease still says enough: usable for some time yet (S-53), or over for good.
bool directory::is_known(found_node& one, steady_time now) const {
  const auto& rid = one.node.descriptor->node.node_rid;
  if (const auto dead = dead_.find(rid); dead != dead_.end() && dead->second == one.node.version)
    return true;
  const auto* before = snapshot_->find(rid);
  const auto ahead = 2 * settings_.polling_interval; // read again before it runs out, not after
  if (!before || before->lingering || before->version != one.node.version || before->usable_until - now <= ahead)
    return false;
  one.node.usable_until = before->usable_until;
  one.live = true;
  return true;
}

/// The live test (S-51).
task<refresh_outcome> directory::read_lease(found_node& one) {
  const auto& owner = one.node.descriptor->owner;
  const auto sent_at = calls_.now();
  auto reading = calls_.read<lease_record>(lease_key(owner.owner), sent_at + settings_.call_timeout);
  const auto outcome = co_await std::move(reading);
  if (std::holds_alternative<store_failure>(outcome))
    co_return refresh_outcome::unavailable;
  const auto* seen = seen_in(outcome);
  const auto health = seen ? judge_lease(*seen, owner) : lease_health::corrupt;
  if (health == lease_health::corrupt)
    co_return refresh_outcome::damaged;
  one.live = health == lease_health::live;
  if (one.live)
    one.node.usable_until =
      local_deadline(sent_at, calls_.now(), *seen->expires_at, seen->now, settings_.lease_margin).value_or(sent_at);
  co_return refresh_outcome::complete;
}

// -- effects -----------------------------------------------------------------------------------------------------------------

/// A list without any node, this host's own included, that follows one with nodes.
bool directory::shows_emptied_store(const listing& all) const {
  return all.found.empty()
         && std::ranges::any_of(snapshot_->nodes(), [](const live_node& one) { return !one.lingering; });
}

void directory::apply(listing& all, steady_time began) {
  if (shows_emptied_store(all)) // hosts notice it, wait for one lease TTL and register again; links stay meanwhile (S-142)
    linger_until_ = began + 2 * settings_.lease_ttl;
  if (linger_until_ && began >= *linger_until_)
    linger_until_.reset();
  dead_.clear();
  std::vector<live_node> nodes;
  for (auto& one : all.found) {
    if (one.live)
      nodes.push_back(std::move(one.node));
    else
      dead_.emplace(one.node.descriptor->node.node_rid, one.node.version);
  }
  const auto by_rid = [](const live_node& a, const live_node& b) {
    return a.descriptor->node.node_rid < b.descriptor->node.node_rid;
  };
  if (linger_until_) {
    // In the order of the keys, thus of the RIDs, both lists are sorted.
    std::vector<live_node> missing;
    std::set_difference(snapshot_->nodes().begin(), snapshot_->nodes().end(), nodes.begin(), nodes.end(),
                        std::back_inserter(missing), by_rid);
    for (auto& node : missing)
      node.lingering = true;
    nodes.insert(nodes.end(), std::make_move_iterator(missing.begin()), std::make_move_iterator(missing.end()));
    std::sort(nodes.begin(), nodes.end(), by_rid);
  }
  install(std::move(nodes), false);
  std::lock_guard guard{mutex_};
  status_.refreshed_at = began;
}

void directory::install(std::vector<live_node> nodes, bool damaged) {
  auto next = std::make_shared<const directory_snapshot>(std::move(nodes), damaged);
  const bool changed = !same_for_listeners(*snapshot_, *next);
  {
    std::lock_guard guard{mutex_};
    snapshot_ = next;
  }
  if (changed)
    for (auto& told : listeners_)
      told(next);
}

void directory::note_failure() {
  if (calls_.stopped())
    return;
  const auto now = calls_.now();
  if (!failing_since_)
    failing_since_ = now;
  std::lock_guard guard{mutex_};
  status_.health = now - *failing_since_ >= settings_.failure_grace ? store_health::failed : store_health::degraded;
}

void directory::note_answer() {
  if (std::exchange(failing_since_, std::nullopt)) {
    linger_until_ = calls_.now() + settings_.lease_ttl;
    if (recovered_)
      recovered_();
  }
  std::lock_guard guard{mutex_};
  status_.health = store_health::healthy;
}

// -- any thread ----------------------------------------------------------------------------------------------------------------

directory::snapshot_ptr directory::snapshot() const {
  std::lock_guard guard{mutex_};
  return snapshot_;
}

std::optional<live_node> directory::find(std::string_view node_rid) const {
  const auto all = snapshot();
  const auto* node = all->find(node_rid);
  return node ? std::optional{*node} : std::nullopt;
}

std::optional<live_node> directory::find_entry_spot(std::string_view spot_id) const {
  const auto all = snapshot();
  const auto* node = all->find_entry_spot(spot_id);
  return node ? std::optional{*node} : std::nullopt;
}

directory_status directory::status() const {
  std::lock_guard guard{mutex_};
  return status_;
}

} // namespace zlink::placement
