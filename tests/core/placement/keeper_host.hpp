// Hosts with their keepers (lease, nodes, directory, sweep) on one thread, over one embedded store that a test may spoil or
// empty.
#pragma once

#include "tests/core/placement/world.hpp"
#include "tests/sim/manual_executor.hpp"
#include "zlink/placement/ownership.hpp"
#include "zlink/placement/registration.hpp"

#include <optional>
#include <string>
#include <vector>

namespace zlink::placement::test {

/// A store that can be emptied like a server restarted without its data.
class replaceable_store final : public location_store {
public:
  explicit replaceable_store(std::shared_ptr<location_store> first) : real(std::move(first)) {}
  void read(std::string key, store_completion<store_read_result> done) override {
    real->read(std::move(key), std::move(done));
  }
  void write(store_batch batch, store_completion<store_write_result> done) override {
    real->write(std::move(batch), std::move(done));
  }
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            store_completion<store_scan_result> done) override {
    real->scan(std::move(prefix), std::move(cursor), limit, std::move(done));
  }
  bool process_local() const noexcept override { return true; }

  std::shared_ptr<location_store> real;
};

/// What hosts share: the clock, the thread, the data.
class shared_world {
public:
  std::shared_ptr<manual_clock> time = std::make_shared<manual_clock>();
  manual_executor executor{time};
  std::shared_ptr<replaceable_store> data = std::make_shared<replaceable_store>(embedded_store{time}.location());
  counting_random random{7};

  steady_time now() const { return time->now(); }
  /// Versions never repeat after that, as S-132 demands of a provider.
  void wipe() {
    data->real = embedded_store{time}.location();
    for (int i = 0; i < 500; ++i)
      put_one(*data, "~", "burns a version");
    write({{}, {deletes("~")}});
  }
  store_write_result write(store_batch batch) { return zlink::test::write(*data, std::move(batch)); }
  void put(std::string key, std::string bytes) { put_one(*data, std::move(key), std::move(bytes)); }
  template <class Record>
  observed<Record> see(const std::string& key) {
    auto seen = observe<Record>(zlink::test::read(*data, key));
    REQUIRE(std::holds_alternative<observed<Record>>(seen));
    return std::get<observed<Record>>(seen);
  }
};

/// One host run: its infrastructure unit, its own way to the store, and its lease keeper with a log of what it reported.
class keeper_host {
public:
  explicit keeper_host(shared_world& w, lease_settings settings = {}) : world(w) {
    ownership_events events;
    events.deadline = [this](auto end) {
      deadline = end;
      log.push_back(end ? "deadline" : "blocked");
    };
    events.lost = [this](const owner_token& token) {
      lost = token;
      log.push_back("lost");
    };
    events.regained = [this](const owner_token&) { log.push_back("regained"); };
    events.failed = [this](std::string mistake) { log.push_back("failed: " + mistake); };
    owner.emplace(infra, records, settings, world.random, std::move(events));
  }
  keeper_host(const keeper_host&) = delete;
  keeper_host& operator=(const keeper_host&) = delete;
  /// Begins what `make()` returns inside the unit; `into` gets its end.
  template <class Make, class T>
  void begin(Make make, std::optional<result<T>>& into) {
    infra.post([make = std::move(make), &into]() mutable {
      detail::start_coroutine(make(), [&into](result<T> end) { into.emplace(std::move(end)); });
    });
  }
  /// Runs it to its end, moving the clock as far as it takes.
  template <class Make>
  auto run(Make make, steady_duration limit = 60s) {
    using value = typename std::invoke_result_t<Make>::value_type;
    std::optional<result<value>> end;
    begin(std::move(make), end);
    REQUIRE(world.executor.run_until([&] { return end.has_value(); }, limit));
    return std::move(*end).value();
  }
  ~keeper_host() {
    faults->set_rule({});
    run([this] { return owner->stop(); });
    faults->release_all();
    world.executor.run();
  }

  ownership_start start() {
    return run([this] { return owner->start(); }).what;
  }
  /// Starts and has the lease.
  keeper_host& started() {
    REQUIRE(start() == ownership_start::held);
    return *this;
  }
  std::string lease() const { return lease_key(owner->owner()); }
  owner_token token() const {
    REQUIRE(owner->token());
    return *owner->token();
  }
  /// From now on until `recover` the store does not answer for certain.
  void lose_store() {
    faults->set_rule([](const store_call&) { return store_fault::vanish; });
  }
  void recover() { faults->set_rule({}); }
  std::size_t writes() const { return faults->count(store_operation::write); }

  shared_world& world;
  std::shared_ptr<store_faults> faults = std::make_shared<store_faults>();
  std::shared_ptr<location_store> store = std::make_shared<faulty_location_store>(world.data, faults);
  detail::infrastructure infra{world.executor.make_serial("host", world.time), world.time};
  repository records{infra, store, embedded_store{world.time}.relocation()};
  std::optional<steady_time> deadline;
  std::optional<owner_token> lost;
  std::vector<std::string> log;
  std::optional<ownership> owner;
};

/// A node of a host.
struct test_registration {
  test_registration(keeper_host& h, const std::string& rid, std::string entry = {})
    : host(h),
      node{"m", rid, detail::lifecycle_generation{h.world.random.next() | 1}},
      entry_spot_id(entry.empty() ? rid + "-entry" : std::move(entry)),
      records(h.infra, h.records, *h.owner) {}

  steady_time in(steady_duration time) const { return host.world.now() + time; }
  registration_outcome claim(steady_duration time = 5s) {
    return host.run([&] { return records.claim(node, entry_spot_id, in(time)); });
  }
  descriptor_record content(node_state state = node_state::serving) const {
    descriptor_record d;
    d.state = state;
    d.role = object_role::server;
    d.endpoint = "127.0.0.1:4711";
    d.channels.push_back({"news", 10});
    d.capabilities.push_back({object_kind::instance_spot, "cart", relocation_policy::recreate, false, 0, {}});
    d.activation_limit = 128;
    return d;
  }
  registration_outcome publish(descriptor_record d, steady_duration time = 5s) {
    return host.run([&] { return records.publish(d, in(time)); });
  }
  registration_outcome change(std::function<void(descriptor_record&)> edit, steady_duration time = 5s) {
    return host.run([&] { return records.change(edit, in(time)); });
  }
  registration_outcome register_again(steady_duration time = 5s) {
    return host.run([&] { return records.register_again(in(time)); });
  }
  registration_outcome withdraw(steady_duration time = 5s) {
    return host.run([&] { return records.withdraw(in(time)); });
  }
  test_registration& published() {
    REQUIRE(claim() == registration_outcome::done);
    REQUIRE(publish(content()) == registration_outcome::done);
    return *this;
  }
  observed_descriptor stored() { return host.world.see<descriptor_record>(descriptor_key(node)); }
  observed_object stored_entry() { return host.world.see<object_record>(spot_key(entry_spot_id)); }
  observed<capacity_record> stored_capacity() { return host.world.see<capacity_record>(capacity_key(node)); }

  keeper_host& host;
  node_identity node;
  std::string entry_spot_id;
  node_registration records;
};

} // namespace zlink::placement::test
