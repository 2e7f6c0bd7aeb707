// Cold activations of distinct Instance Spots over the embedded store, and the memory that idle ones hold.
//   bench_activation_bench [count]     default 200,000
#include "figures.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <zlink/host/host_runtime.hpp>
#include <zlink/zlink.hpp>

#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

struct touch {
  std::uint64_t n = 0;
};
struct start_touching {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};
ZLINK_PACKET(touch, "bench.touch", n)
ZLINK_PACKET(start_touching, "bench.start_touching", first, last)

namespace {

using clk = std::chrono::steady_clock;

/// Counts what reaches the store.
class counting_store final : public zlink::location_store {
public:
  explicit counting_store(std::shared_ptr<zlink::location_store> store) : store_(std::move(store)) {}
  void read(std::string key, zlink::store_completion<zlink::store_read_result> done) override {
    ++reads;
    store_->read(std::move(key), std::move(done));
  }
  void write(zlink::store_batch batch, zlink::store_completion<zlink::store_write_result> done) override {
    ++writes;
    mutations += batch.mutations.size();
    store_->write(std::move(batch), std::move(done));
  }
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            zlink::store_completion<zlink::store_scan_result> done) override {
    store_->scan(std::move(prefix), std::move(cursor), limit, std::move(done));
  }
  bool process_local() const noexcept override { return true; }

  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> mutations{0};

private:
  std::shared_ptr<zlink::location_store> store_;
};

class idle_spot final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  caf::behavior make_behavior() override {
    return {[this](const touch& t) { seen_ += t.n; }};
  }

private:
  std::uint64_t seen_ = 0;
};

/// Wakes Spots from inside a turn, so that the calls cost what calls of Spots cost.
class waker final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&waker::on_start>(); }

private:
  void on_start(const start_touching& s, const zlink::message_context&) {
    for (auto n = s.first; n < s.last; ++n) {
      char id[32];
      std::snprintf(id, sizeof id, "cart/eu/%012llu", static_cast<unsigned long long>(n));
      context().outbound().send_to_spot(id, touch{n}).instance_spot("idle").submit();
    }
  }
};

long resident_bytes() {
  std::ifstream statm{"/proc/self/statm"};
  long all = 0;
  long resident = 0;
  statm >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

struct config : caf::actor_system_config {
  config() { zlink::configure(*this); }
};

} // namespace

int main(int argc, char** argv) {
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
  config cfg;
  caf::actor_system system{cfg};
  zlink::embedded_store embedded;
  auto counting = std::make_shared<counting_store>(embedded.location());
  zlink::host host{system};
  host.use_location_store(counting).use_relocation_store(embedded.relocation());
  host.add_mesh("bench")
    .object_server()
    .add_instance_spot_factory<waker>("waker", [](auto& f) { f.disable_relocation(); })
    .add_instance_spot_factory<idle_spot>("idle", [](auto& f) { f.disable_relocation(); });
  host.start();
  auto& activated = host.runtime().activations.activated;
  zlink::sync_wait(
    host.spots().send_to_spot("waker", start_touching{0, 1}).instance_spot("waker").submit());
  while (activated.load() < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds{1}); // tidy: allow sleep: the benchmark must not take the processor

  const std::uint64_t chunk = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 2000; // outstanding at once
  std::vector<double> rates;
  const auto before_bytes = resident_bytes();
  const auto reads = counting->reads.load();
  const auto writes = counting->writes.load();
  std::uint64_t next = 1;
  constexpr int parts = 5;
  for (int part = 0; part < parts; ++part) {
    const auto t0 = clk::now();
    const auto end = 1 + count * (part + 1) / parts;
    const auto begun = next;
    while (next < end) {
      const auto last = std::min(next + chunk, end);
      zlink::sync_wait(host.spots().send_to_spot("waker", start_touching{next, last}).submit());
      next = last;
      while (activated.load() + chunk < next + 1)
        std::this_thread::sleep_for(std::chrono::milliseconds{1}); // tidy: allow sleep: the benchmark must not take the processor
    }
    while (activated.load() < end + 1)
      std::this_thread::sleep_for(std::chrono::milliseconds{1}); // tidy: allow sleep: the benchmark must not take the processor
    rates.push_back(static_cast<double>(end - begun) / std::chrono::duration<double>(clk::now() - t0).count());
  }
  const auto r = bench::summarise(rates);
  const double each = static_cast<double>(count);
  std::printf("cold activations, embedded store: %.0f a second (%.0f..%.0f); store calls for each: %.2f reads, %.2f writes\n",
              r.median, r.lowest, r.highest, static_cast<double>(counting->reads.load() - reads) / each,
              static_cast<double>(counting->writes.load() - writes) / each);
  // tidy: allow sleep: nothing tells when the last root is retired
  std::this_thread::sleep_for(std::chrono::seconds{2});
  malloc_trim(0);
  const auto all = static_cast<double>(resident_bytes() - before_bytes) / each;
  // What the rows of the store take, by themselves: the same keys and values in a store of its own.
  zlink::embedded_store apart;
  const auto rows_before = resident_bytes();
  std::string cursor;
  std::uint64_t copied = 0;
  do {
    std::optional<zlink::store_scan_result> page;
    embedded.location()->scan("", cursor, 1000, [&](auto outcome) { page = std::move(*outcome); });
    for (auto& item : page->items) {
      zlink::store_batch batch;
      batch.mutations.push_back({item.key, item.value.bytes, std::nullopt});
      apart.location()->write(std::move(batch), [](auto) {});
      ++copied;
    }
    cursor = page->next;
  } while (!cursor.empty());
  malloc_trim(0);
  const auto rows = static_cast<double>(resident_bytes() - rows_before) / static_cast<double>(copied);
  std::printf("memory of an idle Instance Spot: %.0f bytes with its row, the row alone %.0f, the Spot %.0f\n", all, rows,
              all - rows);
  std::fflush(stdout);
  std::_Exit(0);
}
