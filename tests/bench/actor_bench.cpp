// Actors and multicast beside plain CAF actors: messages in a room, Joins, memory, one event for a thousand Spots.
#include "figures.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <zlink/zlink.hpp>

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

struct nudge {
  std::uint64_t n = 0;
};
struct nudged {};
struct walk {
  std::string to; ///< empty: home
};
struct bulletin {
  std::string text;
};
ZLINK_PACKET(nudge, "bench.nudge", n)
ZLINK_PACKET(nudged, "bench.nudged")
ZLINK_PACKET(walk, "bench.walk", to)
ZLINK_PACKET(bulletin, "bench.bulletin", text)

namespace {

using namespace std::chrono_literals;
using clk = std::chrono::steady_clock;

std::atomic<std::uint64_t> seen{0};
std::atomic<std::uint64_t> arrived{0};

void wait_for(std::atomic<std::uint64_t>& counter, std::uint64_t wanted) {
  for (auto now = counter.load(); now < wanted; now = counter.load())
    counter.wait(now);
}
void count(std::atomic<std::uint64_t>& counter) {
  counter.fetch_add(1);
  counter.notify_all();
}

double seconds_since(clk::time_point t0) { return std::chrono::duration<double>(clk::now() - t0).count(); }

double resident_bytes() {
  malloc_trim(0);
  std::ifstream statm{"/proc/self/statm"};
  double pages = 0;
  double resident = 0;
  statm >> pages >> resident;
  return resident * 4096;
}

/// What the rows take by themselves: the same keys and values in a store of its own.
double bytes_of_rows(zlink::location_store& of) {
  zlink::embedded_store apart;
  const auto before = resident_bytes();
  std::string cursor;
  do {
    std::optional<zlink::store_scan_result> page;
    of.scan("", cursor, 1000, [&](auto outcome) { page = std::move(*outcome); });
    for (auto& item : page->items) {
      zlink::store_batch batch;
      batch.mutations.push_back({item.key, item.value.bytes, std::nullopt});
      apart.location()->write(std::move(batch), [](auto) {});
    }
    cursor = page->next;
  } while (!cursor.empty());
  return resident_bytes() - before;
}

class guest final : public zlink::actor {
public:
  using actor::actor;
  std::uint64_t nudges = 0;
  zlink::task<void> on_join_completed(const zlink::join_completion& join) override {
    if (join.outcome == zlink::join_outcome::accepted)
      count(arrived);
    co_return;
  }
};

template <class Base>
class place : public Base {
public:
  using Base::Base;
  void configure() override {
    this->context()
      .handlers()
      .template add_actor_handler<&place::on_nudge>()
      .template add_actor_handler<&place::on_walk>()
      .template add_subscribe<&place::on_bulletin>("bench", "all");
  }
  zlink::task<void> on_joined_actor(guest&) override { return zlink::task<void>::done(); }
  zlink::task<void> on_leave_actor(guest&) override { return zlink::task<void>::done(); }

private:
  void on_nudge(guest& who, const zlink::message_context&, const nudge&) {
    ++who.nudges;
    seen.fetch_add(1, std::memory_order_relaxed);
  }
  void on_walk(guest& who, const zlink::message_context&, const walk& m) {
    if (m.to.empty())
      who.context().join_entry_spot().timeout(60s).defer();
    else
      who.context().join_spot(m.to).timeout(60s).defer();
  }
  void on_bulletin(const bulletin&, const zlink::message_context&) { seen.fetch_add(1, std::memory_order_relaxed); }
};
using hall = place<zlink::entry_spot<guest>>;
using room = place<zlink::spot<guest>>;

/// Polls: a counter that is not waited for costs the handlers nothing.
void await_seen(std::uint64_t wanted) {
  while (seen.load(std::memory_order_relaxed) < wanted)
    std::this_thread::yield();
}

std::string name_of(std::uint64_t n) { return "guest-" + std::to_string(n); }

struct config : caf::actor_system_config {
  config() { zlink::configure(*this); }
};

caf::behavior raw_guest(caf::event_based_actor*) {
  return {
    [](const nudge&) { seen.fetch_add(1, std::memory_order_relaxed); },
    [](const bulletin&) { seen.fetch_add(1, std::memory_order_relaxed); },
  };
}

constexpr std::uint64_t guests = 10'000;
constexpr std::uint64_t at_once = 100; // while they are made and come in
constexpr std::uint64_t listeners = 1'000;

} // namespace

int main(int argc, char** argv) {
  bench::choose_rows(argc, argv);
  config cfg;
  caf::actor_system system{cfg};
  zlink::host_options options;
  options.application_lane_records = 100'000;
  zlink::embedded_store store;
  zlink::host host{system, options};
  host.use_location_store(store.location()).use_relocation_store(store.relocation());
  auto& node = host.add_mesh("bench");
  node.activation_concurrency(64);
  node.add_channel_server("bench");
  node.object_server()
    .add_entry_spot<hall>()
    .add_spot_factory<room>("room", [](auto& factory) { factory.disable_relocation(); })
    .add_actor_factory<guest>("guest", [](auto& factory) { factory.disable_relocation(); });
  host.start();
  auto actors = host.actors();
  for (const auto* id : {"a", "b"})
    zlink::sync_wait(host.spots().get_or_create(id, "room").submit());

  const auto before = resident_bytes();
  const auto created_at = clk::now();
  for (std::uint64_t n = 0; n < guests; n += at_once) {
    std::vector<zlink::task<zlink::actor_create_result>> created;
    for (auto i = n; i < n + at_once; ++i)
      created.push_back(actors.create(name_of(i), "guest").timeout(120s).submit());
    for (auto& one : created)
      zlink::sync_wait(std::move(one));
  }
  std::printf("%-58s %11.4g /s\n", "creation of Actors, embedded store, 100 at once",
              static_cast<double>(guests) / seconds_since(created_at));
  const auto walk_some = [&](std::uint64_t first, std::uint64_t count, const std::string& to) {
    const auto from = arrived.load();
    for (auto n = first; n < first + count; ++n)
      actors.send_to_actor(name_of(n), walk{to}).submit();
    wait_for(arrived, from + count);
  };
  const auto walk_all = [&](const std::string& to) {
    const auto t0 = clk::now();
    walk_some(0, guests, to);
    return static_cast<double>(guests) / seconds_since(t0);
  };
  for (std::uint64_t n = 0; n < guests; n += at_once)
    walk_some(n, at_once, "a");
  const auto held = (resident_bytes() - before) / static_cast<double>(guests);
  const auto rows = bytes_of_rows(*store.location()) / static_cast<double>(guests);
  std::printf("%-58s %11.0f bytes each%s, besides %.0f of the embedded store's rows\n", "10,000 Actors in one room", held - rows,
              held - rows <= 2048 ? "  reached" : "  MISSED", rows);
  std::vector<double> rates;
  for (int run = 0; run < 5; ++run)
    rates.push_back(walk_all(run % 2 == 0 ? "b" : "a"));
  const auto joins = bench::summarise(rates);
  std::printf("%-58s %11.4g /s (%.4g..%.4g)%s\n", "Joins on one node", joins.median, joins.lowest, joins.highest,
              joins.median >= 50'000 ? "  reached" : "  MISSED");

  std::vector<caf::actor> raw;
  for (std::uint64_t n = 0; n < guests; ++n)
    raw.push_back(system.spawn(raw_guest));
  constexpr std::uint64_t messages = 500'000;
  constexpr std::uint64_t some = 64; // that are spoken to in turn
  std::vector<std::string> names;
  for (std::uint64_t n = 0; n < some; ++n)
    names.push_back(name_of(n));
  bench::compare(
    "one-way to an Actor in a SpotWide room", "/s",
    [&] {
      const auto from = seen.load();
      const auto t0 = clk::now();
      for (std::uint64_t n = 0; n < messages; ++n)
        caf::anon_send(raw[n % some], nudge{n});
      await_seen(from + messages);
      return static_cast<double>(messages) / seconds_since(t0);
    },
    [&] {
      const auto from = seen.load();
      const auto t0 = clk::now();
      for (std::uint64_t n = 0; n < messages; ++n)
        actors.send_to_actor(names[n % some], nudge{n}).submit();
      await_seen(from + messages);
      return static_cast<double>(messages) / seconds_since(t0);
    },
    0.5);

  for (std::uint64_t n = 0; n + 3 < listeners; ++n) // with the hall and two rooms: 1,000 subscribers
    zlink::sync_wait(host.spots().get_or_create("listener-" + std::to_string(n), "room").submit());
  const bulletin event{std::string(100, 'x')};
  constexpr std::uint64_t events = 200;
  bench::compare_times(
    "one event to 1,000 Spots beside 1,000 sends", "us",
    [&] {
      const auto from = seen.load();
      const auto t0 = clk::now();
      for (std::uint64_t n = 0; n < events; ++n)
        for (std::uint64_t i = 0; i < listeners; ++i)
          caf::anon_send(raw[i], event);
      await_seen(from + events * listeners);
      return seconds_since(t0) * 1e6 / events;
    },
    [&] {
      const auto from = seen.load();
      const auto t0 = clk::now();
      for (std::uint64_t n = 0; n < events; ++n)
        zlink::sync_wait(host.channels().publish("bench", "all", event).submit());
      await_seen(from + events * listeners);
      return seconds_since(t0) * 1e6 / events;
    },
    1.5);
  for (auto& one : raw)
    caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
  raw.clear();
  std::fflush(stdout);
  std::_Exit(0);
}
