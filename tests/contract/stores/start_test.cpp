// How hosts begin with their stores: who is accepted as a provider, how long it is kept, what a restart finds.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

#include <atomic>

namespace stores_test {

using namespace creation_test;

/// A provider that passes everything on, and counts its lives and calls.
class passing_store : public zlink::location_store {
public:
  explicit passing_store(std::shared_ptr<zlink::location_store> real, std::atomic<int>& released)
    : real_(std::move(real)), released_(released) {}
  ~passing_store() override { ++released_; }
  void read(std::string key, zlink::store_completion<zlink::store_read_result> done) override {
    real_->read(std::move(key), std::move(done));
  }
  void write(zlink::store_batch batch, zlink::store_completion<zlink::store_write_result> done) override {
    real_->write(std::move(batch), std::move(done));
  }
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            zlink::store_completion<zlink::store_scan_result> done) override {
    real_->scan(std::move(prefix), std::move(cursor), limit, std::move(done));
  }
  bool process_local() const noexcept override { return true; }

private:
  std::shared_ptr<zlink::location_store> real_;
  std::atomic<int>& released_;
};

/// Takes every batch, whatever its conditions.
class careless_store final : public passing_store {
public:
  using passing_store::passing_store;
  void write(zlink::store_batch batch, zlink::store_completion<zlink::store_write_result> done) override {
    batch.conditions.clear();
    passing_store::write(std::move(batch), std::move(done));
  }
};

/// Forgets retentions, so that no lease would ever end.
class timeless_store final : public passing_store {
public:
  using passing_store::passing_store;
  void write(zlink::store_batch batch, zlink::store_completion<zlink::store_write_result> done) override {
    for (auto& mutation : batch.mutations)
      mutation.retention.reset();
    passing_store::write(std::move(batch), std::move(done));
  }
};

/// Refuses everybody for a setting that is wrong.
class locked_store final : public passing_store {
public:
  using passing_store::passing_store;
  void read(std::string, zlink::store_completion<zlink::store_read_result> done) override { done(refusal()); }
  void write(zlink::store_batch, zlink::store_completion<zlink::store_write_result> done) override { done(refusal()); }

private:
  static zlink::store_failure refusal() {
    return {zlink::store_failure_class::not_applied, "the server refuses the password", true};
  }
};

/// What `start()` has against the provider; empty: nothing.
template <class Store>
std::string start_with() {
  std::atomic<int> released{0};
  zlink::embedded_store real;
  std::string mistake;
  bool bound = false;
  {
    zlink::host host;
    host.use_location_store(std::make_shared<Store>(real.location(), released)).use_relocation_store(real.relocation());
    host.add_mesh("m").object_client();
    try {
      host.start();
    } catch (const zlink::configuration_error& what) {
      mistake = what.what();
    }
    bound = !host.mesh("m").endpoint().empty();
  }
  CHECK(bound == mistake.empty());
  CHECK(released == 1);
  return mistake;
}

TEST_CASE("S-20 a provider that answers wrongly is a configuration error before anything is bound") {
  CHECK(start_with<passing_store>().empty());
  CHECK(start_with<careless_store>().find("condition is false") != std::string::npos);
  CHECK_FALSE(start_with<timeless_store>().empty());
}

TEST_CASE("O-152 S-20 a provider that answers and refuses us is a configuration error before anything is bound") {
  CHECK(start_with<locked_store>().find("refuses the password") != std::string::npos);
}

TEST_CASE("S-20 S-43 a provider that does not answer is probed when it does") {
  stage on;
  bool down = true;
  std::size_t probes = 0;
  mesh net{1};
  net.faults(0).set_rule([&](const store_call& call) {
    probes += call.touches("probe/");
    return down ? store_fault::refuse : store_fault::none;
  });
  net.start(serve(on));
  CHECK(net.host(0).status().state == zlink::host_state::serving);
  down = false;
  probes = 0;
  net.advance(30s);
  CHECK(probes >= 4);
  CHECK(net.run(rouse(net.host(0), "a", "1")).word == "1");
  probes = 0;
  net.freeze(0); // a lease that is lost later is no reason to probe again
  net.advance(1min);
  net.thaw(0);
  net.advance(1min);
  CHECK(probes == 0);
  bool left_over = false;
  net.store().location()->scan("probe/", "", 10, [&](auto page) { left_over = !page->items.empty(); });
  CHECK_FALSE(left_over);
}

TEST_CASE("S-19 each store is chosen once, both independently, and let go once after the last call") {
  std::atomic<int> released{0};
  zlink::embedded_store real;
  {
    zlink::host host;
    const auto twice = std::make_shared<passing_store>(real.location(), released);
    host.use_location_store(twice);
    CHECK_THROWS_AS(host.use_location_store(twice), zlink::configuration_error);
    CHECK_THROWS_AS(host.use_store(real), zlink::configuration_error);
    CHECK_THROWS_AS(host.without_stores(), zlink::configuration_error);
    host.use_relocation_store(real.relocation());
    CHECK_THROWS_AS(host.use_relocation_store(real.relocation()), zlink::configuration_error);
    host.add_mesh("m").object_client();
    host.start();
    CHECK_THROWS_AS(host.use_location_store(twice), zlink::configuration_error);
    zlink::sync_wait(host.shutdown());
  }
  CHECK(released == 1);
}

TEST_CASE("S-151 S-74 a node that restarts in the process during a creation finds a dead reservation only") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  barrier never;
  on.hold("initialize", never);
  auto lost = rouse(net.host(0), "a", "1", 5min);
  net.run_until([&] { return never.waiting() == 1; });
  const auto first = row_of(net, "a");
  REQUIRE(first);
  net.kill(0);
  net.restart(0);
  net.advance(2min);
  CHECK_FALSE(row_of(net, "a")); // released by the new life's pass over the store, and not resumed
  CHECK(on.count("handle") == 0);
  CHECK(on.count("factory") == 1);
  on.during = nullptr;
  CHECK(net.run(rouse(net.host(0), "a", "2")).generation > first->generation.value);
  CHECK(on.count("handle") == 1);
  never.open();
}

TEST_CASE("C-9 a routing id of one's own choice is for nodes without object role, discovery and prefix") {
  const auto mistake_of = [](auto configure) {
    zlink::host host;
    try {
      configure(host);
      host.start();
    } catch (const zlink::configuration_error& what) {
      return std::string{what.what()};
    }
    CHECK_FALSE(host.mesh("m").endpoint().empty());
    return std::string{};
  };
  CHECK(mistake_of([](zlink::host& h) { h.add_mesh("m").fixed_rid("x").object_client(); }).find("fixed_rid")
        != std::string::npos);
  CHECK(mistake_of([](zlink::host& h) { h.add_mesh("m").fixed_rid("x").object_server(); }).find("fixed_rid")
        != std::string::npos);
  CHECK(mistake_of([](zlink::host& h) { h.add_mesh("m").fixed_rid("x"); }).find("fixed_rid") != std::string::npos);
  CHECK(mistake_of([](zlink::host& h) {
          h.without_stores();
          h.add_mesh("m").fixed_rid("x").rid_prefix("p");
        }).find("exclude") != std::string::npos);
  for (const auto& bad : {std::string{}, std::string(256, 'x'), std::string{"\xff"}})
    CHECK_FALSE(mistake_of([&](zlink::host& h) {
                  h.without_stores();
                  h.add_mesh("m").fixed_rid(bad);
                }).empty());
  zlink::host host;
  host.without_stores();
  host.add_mesh("m").fixed_rid("my own/1");
  host.start();
  CHECK(host.mesh("m").rid() == "my own/1");
  CHECK_THROWS_AS(host.mesh("m").fixed_rid("other"), zlink::configuration_error);
}

} // namespace stores_test
