// What a message costs, and what an idle Spot holds, as their number grows from 1,000 to 1,000,000: ids at random, so that
// every message finds its Spot cold. Beside it plain CAF actors found by the same ids in a plain table.
//   bench_scale_bench [most]     default 1,000,000
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
#include <unordered_map>

struct touch {
  std::uint64_t n = 0;
};
struct wake_range {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};
struct touch_some {
  std::uint64_t count = 0;
  std::uint64_t spots = 0;
  std::uint64_t seed = 0;
};
ZLINK_PACKET(touch, "bench.touch", n)
ZLINK_PACKET(wake_range, "bench.wake_range", first, last)
ZLINK_PACKET(touch_some, "bench.touch_some", count, spots, seed)

namespace {

using clk = std::chrono::steady_clock;

constexpr std::uint64_t chunk = 2'000; // outstanding at once

std::atomic<std::uint64_t> touched{0};

std::string id_of(std::uint64_t n) {
  char id[32];
  std::snprintf(id, sizeof id, "cart/eu/%012llu", static_cast<unsigned long long>(n));
  return id;
}

/// Numbers below `limit`, the same for the same seed.
class draw {
public:
  explicit draw(std::uint64_t seed) noexcept : state_(seed * 0x9e37'79b9'7f4a'7c15ULL + 1) {}
  std::uint64_t below(std::uint64_t limit) noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % limit;
  }

private:
  std::uint64_t state_;
};

class idle_spot final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&idle_spot::on_touch>(); }

private:
  void on_touch(const touch& t, const zlink::message_context&) {
    seen_ += t.n;
    touched.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t seen_ = 0;
};

class sender final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&sender::on_wake>().add_packet<&sender::on_touch>(); }

private:
  void on_wake(const wake_range& range, const zlink::message_context&) {
    for (auto n = range.first; n < range.last; ++n)
      context().outbound().send_to_spot(id_of(n), touch{0}).instance_spot("idle").submit();
  }
  void on_touch(const touch_some& some, const zlink::message_context&) {
    draw random{some.seed};
    for (std::uint64_t i = 0; i < some.count; ++i)
      context().outbound().send_to_spot(id_of(random.below(some.spots)), touch{1}).submit();
  }
};

struct config : caf::actor_system_config {
  config() { zlink::configure(*this); }
};

double resident_bytes() {
  malloc_trim(0);
  std::ifstream statm{"/proc/self/statm"};
  long all = 0;
  long resident = 0;
  statm >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void wait_touched(std::uint64_t until) {
  while (touched.load() < until)
    std::this_thread::sleep_for(std::chrono::microseconds{200}); // tidy: allow sleep: the benchmark must not take the processor
}

/// Nanoseconds for each of `count` messages, median of 5.
template <class Send>
bench::figure cost(std::uint64_t count, Send send) {
  std::vector<double> values;
  for (std::uint64_t run = 0; run < 5; ++run) {
    const auto t0 = clk::now();
    const auto before = touched.load();
    for (std::uint64_t done = 0; done < count; done += chunk) {
      send(chunk, run * count + done);
      wait_touched(before + done);
    }
    wait_touched(before + count);
    values.push_back(std::chrono::duration<double, std::nano>(clk::now() - t0).count() / static_cast<double>(count));
  }
  return bench::summarise(values);
}

struct point {
  std::uint64_t objects;
  bench::figure cost;
  double bytes;
};

constexpr std::uint64_t messages = 200'000;

std::vector<point> measure_spots(const std::vector<std::uint64_t>& sizes) {
  config cfg;
  caf::actor_system system{cfg};
  zlink::embedded_store store;
  zlink::host host{system};
  host.use_location_store(store.location()).use_relocation_store(store.relocation());
  host.add_mesh("bench")
    .object_server()
    .add_instance_spot_factory<sender>("sender", [](auto& f) { f.disable_relocation(); })
    .add_instance_spot_factory<idle_spot>("idle", [](auto& f) { f.disable_relocation(); });
  host.start();
  const auto tell = [&](auto what) {
    zlink::sync_wait(host.spots().send_to_spot("sender", std::move(what)).instance_spot("sender").submit());
  };
  std::vector<point> points;
  std::uint64_t awake = 0;
  const auto empty = resident_bytes();
  for (const auto size : sizes) {
    while (awake < size) {
      const auto last = std::min(awake + chunk, size);
      const auto before = touched.load();
      tell(wake_range{awake, last});
      wait_touched(before + last - awake);
      awake = last;
    }
    // tidy: allow sleep: nothing tells when the last root is retired
    std::this_thread::sleep_for(std::chrono::seconds{2});
    const auto bytes = (resident_bytes() - empty) / static_cast<double>(size);
    points.push_back({size, cost(messages, [&](std::uint64_t n, std::uint64_t seed) { tell(touch_some{n, size, seed}); }),
                      bytes});
  }
  // The rows by themselves: the same keys and values in a store of its own.
  zlink::embedded_store apart;
  const auto rows_before = resident_bytes();
  std::string cursor;
  do {
    std::optional<zlink::store_scan_result> page;
    store.location()->scan("", cursor, 1000, [&](auto outcome) { page = std::move(*outcome); });
    for (auto& item : page->items) {
      zlink::store_batch batch;
      batch.mutations.push_back({item.key, item.value.bytes, std::nullopt});
      apart.location()->write(std::move(batch), [](auto) {});
    }
    cursor = page->next;
  } while (!cursor.empty());
  const auto rows = (resident_bytes() - rows_before) / static_cast<double>(awake);
  for (auto& p : points)
    p.bytes -= rows;
  std::printf("a row of the embedded store: %.0f bytes\n", rows);
  return points;
}

std::vector<point> measure_actors(const std::vector<std::uint64_t>& sizes) {
  config cfg;
  caf::actor_system system{cfg};
  std::unordered_map<std::string, caf::actor> table;
  std::vector<point> points;
  const auto empty = resident_bytes();
  auto sending = system.spawn([&table](caf::event_based_actor*) -> caf::behavior {
    return {[&table](const touch_some& some) {
      draw random{some.seed};
      for (std::uint64_t i = 0; i < some.count; ++i)
        caf::anon_send(table.find(id_of(random.below(some.spots)))->second, touch{1});
    }};
  });
  for (const auto size : sizes) {
    for (auto n = table.size(); n < size; ++n)
      table.emplace(id_of(n), system.spawn([](caf::event_based_actor*) -> caf::behavior {
        return {[seen = std::uint64_t{0}](const touch& t) mutable {
          seen += t.n;
          touched.fetch_add(1, std::memory_order_relaxed);
        }};
      }));
    const auto bytes = (resident_bytes() - empty) / static_cast<double>(size);
    points.push_back({size, cost(messages, [&](std::uint64_t n, std::uint64_t seed) {
                        caf::anon_send(sending, touch_some{n, size, seed});
                      }), bytes});
  }
  for (auto& [id, one] : table)
    caf::anon_send_exit(one, caf::exit_reason::kill);
  caf::anon_send_exit(sending, caf::exit_reason::kill);
  return points;
}

} // namespace

int main(int argc, char** argv) {
  const std::uint64_t most = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t n = 1'000; n <= most; n *= 10)
    sizes.push_back(n);
  const auto actors = measure_actors(sizes);
  const auto spots = measure_spots(sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    std::printf("%9llu objects: plain CAF %5.0f ns a message (%.0f..%.0f), %5.0f bytes each; Spots %5.0f ns (%.0f..%.0f), "
                "%5.0f bytes each without rows\n",
                static_cast<unsigned long long>(sizes[i]), actors[i].cost.median, actors[i].cost.lowest,
                actors[i].cost.highest, actors[i].bytes, spots[i].cost.median, spots[i].cost.lowest, spots[i].cost.highest,
                spots[i].bytes);
  std::printf("cost of a message, %llu to %llu objects: plain CAF x %.1f, Spots x %.1f (wanted: at most 4)\n",
              static_cast<unsigned long long>(sizes.front()), static_cast<unsigned long long>(sizes.back()),
              actors.back().cost.median / actors.front().cost.median, spots.back().cost.median / spots.front().cost.median);
  std::fflush(stdout);
  std::_Exit(0);
}
