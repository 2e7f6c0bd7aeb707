// An embedded store with hosts and nodes in it, for tests of placement. Everything runs on the test's thread, in
// rounds.
#pragma once

#include "tests/core/store/manual_clock.hpp"
#include "tests/core/store/store_under_test.hpp"
#include "tests/sim/faulty_store.hpp"
#include "zlink/placement/lease.hpp"
#include "zlink/placement/record_codec.hpp"
#include "zlink/placement/record_keys.hpp"
#include "zlink/placement/transition_batcher.hpp"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zlink::placement::test {

using namespace zlink::test;
using namespace std::chrono_literals;

/// Numbers that are random enough and the same in every run.
class counting_random final : public random_source {
public:
  explicit counting_random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override { // splitmix64
    auto z = state_ += 0x9e37'79b9'7f4a'7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t limit) { return next() % limit; }

private:
  std::uint64_t state_;
};

/// Answers as an owner's loop sees them: posted, one after the other.
class posting_store final : public location_store {
public:
  explicit posting_store(std::shared_ptr<location_store> real) : real_(std::move(real)) {}
  void read(std::string key, store_completion<store_read_result> done) override {
    real_->read(std::move(key), post(std::move(done)));
  }
  void write(store_batch batch, store_completion<store_write_result> done) override {
    real_->write(std::move(batch), post(std::move(done)));
  }
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            store_completion<store_scan_result> done) override {
    real_->scan(std::move(prefix), std::move(cursor), limit, post(std::move(done)));
  }
  bool process_local() const noexcept override { return true; }

  bool run_one() {
    if (posted_.empty())
      return false;
    auto next = std::move(posted_.front());
    posted_.pop_front();
    next();
    return true;
  }
  void run() {
    while (run_one())
      ;
  }

private:
  template <class T>
  store_completion<T> post(store_completion<T> done) {
    return [this, done = std::move(done)](store_outcome<T> outcome) mutable {
      posted_.push_back([done = std::move(done), outcome = std::move(outcome)]() mutable { done(std::move(outcome)); });
    };
  }
  std::shared_ptr<location_store> real_;
  std::deque<unique_function<void()>> posted_;
};

/// One host with one node, its lease held and its descriptor published.
struct test_node {
  owner_token owner;
  descriptor_record descriptor;
  descriptor_stamp stamp;
};

class world {
public:
  std::shared_ptr<manual_clock> time = std::make_shared<manual_clock>();
  embedded_store stores{time};
  std::shared_ptr<store_faults> faults = std::make_shared<store_faults>();
  std::shared_ptr<location_store> faulty = std::make_shared<faulty_location_store>(stores.location(), faults);
  std::shared_ptr<posting_store> posting = std::make_shared<posting_store>(faulty);
  int stalls = 0;
  transition_batcher batcher{posting, [this] { ++stalls; }};
  counting_random random{1};
  std::uint64_t next_lease = 1;

  location_store& store() { return *stores.location(); }

  /// A new host run with a node "rid" of mesh "m". Limits 0: none.
  test_node add_node(const std::string& rid, std::uint32_t actor_limit = 0, std::uint32_t spot_limit = 0,
                     std::uint32_t type_limit = 0) {
    test_node node;
    node.owner = {random.next_id(), detail::lease_generation{next_lease++}};
    auto& d = node.descriptor;
    d.node = {"m", rid, detail::lifecycle_generation{random.next() | 1}};
    d.owner = node.owner;
    d.state = node_state::serving;
    d.role = object_role::server;
    d.revision = detail::descriptor_revision{1};
    d.entry_spot_id = rid + "-entry";
    d.actor_limit = actor_limit;
    d.spot_limit = spot_limit;
    for (auto kind : {object_kind::actor, object_kind::user_spot, object_kind::instance_spot})
      d.capabilities.push_back({kind, "type", relocation_policy::recreate, false, type_limit, {}});
    hold_lease(node, 15s);
    zlink::test::put_one(store(), spot_key(d.entry_spot_id), encode(entry_claim{d.node, node.owner}));
    zlink::test::put_one(store(), capacity_key(d.node), encode(capacity_record{d.node.lifecycle, {}, {}, {}}));
    publish(node);
    return node;
  }
  void hold_lease(const test_node& node, std::chrono::milliseconds ttl) {
    store_batch batch;
    batch.mutations.push_back(puts(lease_key(node.owner.owner), encode(lease_record{node.owner}), ttl));
    zlink::test::write(store(), std::move(batch));
  }
  void publish(test_node& node) {
    const auto version = zlink::test::put_one(store(), descriptor_key(node.descriptor.node), encode(node.descriptor));
    node.stamp = {node.descriptor.node, version};
  }

  template <class Record>
  observed<Record> see(const std::string& key) {
    auto seen = observe<Record>(zlink::test::read(store(), key));
    REQUIRE(std::holds_alternative<observed<Record>>(seen));
    return std::get<observed<Record>>(seen);
  }
  observed_object see(object_kind kind, const std::string& id) { return see<object_record>(object_key(kind, id)); }
  capacity_record capacity_of(const test_node& node) {
    return see<capacity_record>(capacity_key(node.descriptor.node)).record.value_or(capacity_record{});
  }

  reserve_request wish(object_kind kind, const std::string& id, const test_node& target) {
    reserve_request r;
    r.kind = kind;
    r.id = id;
    r.stable_type = "type";
    r.reservation = random.next_id();
    r.target_owner = target.owner;
    r.target = target.stamp;
    r.limits = limits_of(target.descriptor, slots_of(kind, "type"));
    if (kind == object_kind::instance_spot)
      r.content = recovery_root{"root of " + id, {}, 100, 0};
    else
      r.content = request_content{"request", 7, {}};
    return r;
  }
  static std::optional<spot_membership> first_membership(object_kind kind, const test_node& node) {
    if (kind != object_kind::actor)
      return std::nullopt;
    return spot_membership{node.descriptor.entry_spot_id, {}};
  }

  /// Brings one fragment to the store and waits.
  fragment_result apply(fragment what) {
    std::optional<fragment_result> result;
    batcher.add(std::move(what), [&](fragment_result r) { result = std::move(r); });
    batcher.flush();
    posting->run();
    REQUIRE(result);
    return *result;
  }
  template <class Decision>
  fragment_result apply(Decision decision) {
    REQUIRE(std::holds_alternative<fragment>(decision));
    return apply(std::get<fragment>(std::move(decision)));
  }

  /// Through Reserve and Commit, whatever is needed.
  detail::unique_id reserve_object(object_kind kind, const std::string& id, const test_node& node) {
    const auto request = wish(kind, id, node);
    REQUIRE(apply(reserve(see(kind, id), request)).what == fragment_outcome::applied);
    return request.reservation;
  }
  void create_object(object_kind kind, const std::string& id, const test_node& node) {
    const reservation_end end{id, reserve_object(kind, id, node), node.owner, node.stamp, {}};
    REQUIRE(apply(commit(see(kind, id), end, first_membership(kind, node))).what == fragment_outcome::applied);
  }

  /// All that is stored, key to version and bytes.
  std::map<std::string, std::pair<std::string, std::string>> dump() {
    std::map<std::string, std::pair<std::string, std::string>> all;
    for (auto page = zlink::test::scan(store(), "", "", 1000);;
         page = zlink::test::scan(store(), "", page.next, 1000)) {
      for (auto& item : page.items)
        all[item.key] = {item.value.version, item.value.bytes};
      if (page.next.empty())
        return all;
    }
  }

  /// S-81: what the capacity records say is what the rows take, where their aggregates say they are.
  bool counters_match_rows() {
    std::map<std::string, capacity_record> sums;
    const auto all = dump();
    std::map<detail::unique_id, aggregate_record> aggregates;
    for (const auto& [key, value] : all) {
      const auto decoded_aggregate = decode<aggregate_record>(value.second);
      if (!std::holds_alternative<aggregate_record>(decoded_aggregate))
        continue;
      const auto& one = std::get<aggregate_record>(decoded_aggregate);
      aggregates[one.id] = one;
      if (one.move && one.move->stage == move_stage::prepared)
        add_slots(sums, one.move->target, one.move->slots, false);
    }
    for (const auto& [key, value] : all) {
      const auto decoded_row = decode<object_record>(value.second);
      if (!std::holds_alternative<object_record>(decoded_row))
        continue;
      const auto* row = std::get_if<row_record>(&std::get<object_record>(decoded_row));
      if (!row)
        continue;
      const auto by = aggregates.find(row->aggregate);
      add_slots(sums, by == aggregates.end() ? row->node : by->second.node, row->slots, row->state == allocation_state::active);
      if (row->move && row->move->stage == move_stage::prepared)
        add_slots(sums, row->move->target, row->move->slots, false);
    }
    bool match = true;
    for (const auto& [key, value] : all) {
      const auto record = decode<capacity_record>(value.second);
      if (!std::holds_alternative<capacity_record>(record))
        continue;
      auto stored = std::get<capacity_record>(record);
      auto& sum = sums[key];
      sum.lifecycle = stored.lifecycle;
      match = match && sum == stored;
    }
    return match;
  }

private:
  static void add_slots(std::map<std::string, capacity_record>& sums, const node_identity& node,
                        const slot_bundle& slots, bool active) {
    auto& sum = sums[capacity_key(node)];
    zlink::placement::apply(sum, {node, slots, slot_step::reserve, {}});
    if (active)
      zlink::placement::apply(sum, {node, slots, slot_step::activate, {}});
  }
};

} // namespace zlink::placement::test
