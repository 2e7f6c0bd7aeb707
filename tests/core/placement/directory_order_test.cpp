// What a directory knows never goes back in time, in whatever order and however late the answers of the store come.
#include "tests/core/placement/watcher.hpp"

#include <map>
#include <memory>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

std::uint32_t weight_of(const watcher& all, const std::string& rid) {
  const auto known = all.nodes.find(rid);
  REQUIRE(known);
  return known->descriptor->placement_weight;
}

void put_weight(serving_host& of, std::uint32_t weight) {
  REQUIRE(of.node.change([weight](auto& d) { d.placement_weight = weight; }) == registration_outcome::done);
}

/// Three nodes that change, one that watches them, and a way to the store that a seed spoils.
struct spoilt_watch {
  explicit spoilt_watch(std::uint64_t seed) : random(seed) {
    for (const char* rid : {"a", "b", "c"})
      served.push_back(std::make_unique<serving_host>(w, rid));
    directory_settings settings;
    settings.page_items = 1 + random.below(3);
    all.emplace(w, settings);
    all->on_change = [this](const directory_snapshot& now) { look(now); };
    all->host.faults->set_rule([this](const store_call& call) { return next_fault(call); });
  }
  /// Nothing is older than it was before.
  void look(const directory_snapshot& now) {
    for (const auto& node : now.nodes()) {
      auto& newest = seen[node.descriptor->node.node_rid];
      went_back = went_back || node.descriptor->revision < newest;
      newest = std::max(newest, node.descriptor->revision);
    }
  }
  store_fault next_fault(const store_call& call) {
    switch (random.below(24)) {
      case 0: return store_fault::hold_call;
      case 1:
      case 2: return store_fault::hold_reply;
      case 3: return call.what == store_operation::scan ? store_fault::conflict : store_fault::none; // its snapshot is lost
      case 4: return store_fault::vanish;
      default: return store_fault::none;
    }
  }
  void step() {
    switch (random.below(6)) {
      case 0:
      case 1: put_weight(*served[random.below(served.size())], static_cast<std::uint32_t>(1 + random.below(1000))); break;
      case 2: ask(); break;
      case 3:
        if (all->host.faults->held() > 0)
          all->host.faults->release();
        break;
      default: w.executor.run_for(std::chrono::milliseconds{random.below(2'500)});
    }
  }
  /// A complete refresh shows what was stored when it was asked for.
  void ask() {
    std::map<std::string, detail::descriptor_revision> stored;
    for (const auto& one : served)
      stored[one->node.node.node_rid] = one->node.stored().record->revision;
    all->host.infra.post([this, stored = std::move(stored)]() mutable {
      detail::start_coroutine(all->nodes.refresh(), [this, stored = std::move(stored)](result<refresh_outcome> end) {
        if (*end != refresh_outcome::complete)
          return;
        ++refreshed;
        for (const auto& [rid, revision] : stored) {
          const auto known = all->nodes.find(rid);
          missed = missed || !known || known->descriptor->revision < revision;
        }
      });
    });
    w.executor.run();
  }

  shared_world w;
  counting_random random;
  std::vector<std::unique_ptr<serving_host>> served;
  std::optional<watcher> all;
  std::map<std::string, detail::descriptor_revision> seen;
  bool went_back = false;
  bool missed = false;
  int refreshed = 0;
};

} // namespace

TEST_CASE("S-55 S-159 S-68 the answer to a list that was given up comes too late to bring back what has changed since") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  all.host.faults->once(store_operation::scan, descriptor_prefix("m"), store_fault::hold_reply);
  w.executor.run_for(1s); // a poll whose list has the former weight
  REQUIRE(all.host.faults->held() == 1);
  put_weight(a, 0);
  w.executor.run_for(7s); // it was given up, and later ones have shown the change
  REQUIRE(weight_of(all, "a") == 0);
  const auto changes = all.changes;
  all.host.faults->release_all();
  w.executor.run();
  CHECK(weight_of(all, "a") == 0);
  CHECK(all.changes == changes);
}

TEST_CASE("S-55 S-51 a list that waits for a lease holds back the next one, so that it cannot come behind it") {
  shared_world w;
  serving_host a{w, "a"};
  watcher all{w};
  all.host.faults->set_rule([&](const store_call& call) {
    return call.what == store_operation::read && call.key == a.host.lease() ? store_fault::hold_reply : store_fault::none;
  });
  std::optional<result<refresh_outcome>> first, second;
  all.host.begin([&] { return all.nodes.refresh(); }, first);
  w.executor.run();
  REQUIRE(all.host.faults->held() == 1); // its list has the former weight
  put_weight(a, 0);
  all.host.begin([&] { return all.nodes.refresh(); }, second);
  w.executor.run();
  CHECK(all.host.faults->held() == 1);
  all.host.faults->set_rule({});
  all.host.faults->release_all();
  w.executor.run();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(**second == refresh_outcome::complete);
  CHECK(weight_of(all, "a") == 0);
}

TEST_CASE("S-55 S-56 S-68 however late, lost and mixed up the answers are, no node goes back to a former revision") {
  int refreshed = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed ", seed);
    spoilt_watch run{seed};
    for (int i = 0; i < 120; ++i)
      run.step();
    run.all->host.recover();
    run.all->host.faults->release_all();
    run.w.executor.run_for(7s);
    CHECK(!run.went_back);
    CHECK(!run.missed);
    for (const auto& one : run.served)
      CHECK(run.all->nodes.find(one->node.node.node_rid)->stamp().version == one->node.stored().version);
    refreshed += run.refreshed;
  }
  CHECK(refreshed > 200);
}
