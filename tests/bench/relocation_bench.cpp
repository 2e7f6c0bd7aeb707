// Live moves between two hosts of one process over transport tcp and a redis-server of its own: many idle Spots, the pause that
// a busy one sees, a room with 1,000 members, a large state beside other traffic.
//   bench_relocation_bench [part of a row's title]
#include "figures.hpp"

#include "tests/redis/redis_server.hpp"

#include "zlink/host/host_runtime.hpp"
#include <zlink/zlink.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct touch {
  std::uint64_t n = 0;
};
struct touched {
  std::uint64_t n = 0;
};
struct enter {};
ZLINK_PACKET(touch, "bench.touch", n)
ZLINK_PACKET(touched, "bench.touched", n)
ZLINK_PACKET(enter, "bench.enter")

namespace {

using namespace std::chrono_literals;
using clk = std::chrono::steady_clock;
using zlink::sync_wait;

/// Time in which nothing is measured.
void let_pass(clk::duration time) {
  std::mutex mutex;
  std::condition_variable nobody;
  std::unique_lock guard{mutex};
  nobody.wait_for(guard, time, [] { return false; });
}

double seconds(clk::duration time) { return std::chrono::duration<double>(time).count(); }
double ms(clk::duration time) { return 1000 * seconds(time); }

/// When handlers of the busy Spot began and ended, on whichever host.
std::atomic<clk::rep> last_handler{0};
std::atomic<clk::rep> longest_gap{0};
std::atomic<std::uint64_t> last_instance{0};

class idle_spot final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&idle_spot::on_touch>(); }
  zlink::bytes state;

private:
  touched on_touch(const touch& t, const zlink::message_context&) {
    if (context().spot_id() == "busy") {
      const auto now = clk::now().time_since_epoch().count();
      const auto before = last_handler.exchange(now);
      const auto self = reinterpret_cast<std::uint64_t>(this);
      if (last_instance.exchange(self) != self)
        longest_gap.store(now - before);
    }
    return {t.n};
  }
};

class idle_adapter final : public zlink::spot_adapter<idle_spot> {
public:
  zlink::task<zlink::bytes> capture(idle_spot& from, std::stop_token) const override { co_return from.state; }
  zlink::task<void> restore(idle_spot& into, zlink::byte_view state, std::stop_token) const override {
    into.state.assign(state.begin(), state.end());
    co_return;
  }
};

class member final : public zlink::actor {
public:
  using actor::actor;
};
class lobby final : public zlink::entry_spot<member> {
public:
  using entry_spot::entry_spot;
  void configure() override { context().handlers().add_actor_handler<&lobby::on_enter>(); }
  zlink::task<void> on_joined_actor(member&) override { co_return; }
  zlink::task<void> on_leave_actor(member&) override { co_return; }

private:
  void on_enter(member& who, const zlink::message_context&, const enter&) { who.context().join_spot("room").defer(); }
};
class room final : public zlink::spot<member> {
public:
  using spot::spot;
  void configure() override { context().handlers().add_packet<&room::on_touch>(); }
  zlink::task<zlink::actor_join_response> on_actor_join(std::string, const zlink::message&) override { co_return zlink::accept(); }
  zlink::task<void> on_joined_actor(member&) override { co_return; }
  zlink::task<void> on_leave_actor(member&) override { co_return; }

private:
  touched on_touch(const touch&, const zlink::message_context&) { return {members().size()}; }
};

std::size_t state_bytes = 1024;

void serve(zlink::host& host) {
  auto& node = host.add_mesh("bench");
  node.transport(zlink::mesh_transport::tcp);
  auto server = node.object_server();
  server.add_entry_spot<lobby>();
  server.add_instance_spot_factory<idle_spot>("idle", [](auto& factory) {
    factory.preserve_state_with(idle_adapter{}).construct_with([](zlink::instance_spot_context context) {
      auto made = std::make_unique<idle_spot>(std::move(context));
      made->state.resize(state_bytes);
      return made;
    });
  });
  server.add_spot_factory<room>("room", [](auto& factory) { factory.recreate_on_relocation(); });
  server.add_actor_factory<member>("member", [](auto& factory) { factory.recreate_on_relocation(); });
}

/// Hosts that meet at one Redis.
class pair_of_hosts {
public:
  explicit pair_of_hosts(const zlink::test::redis_server& server) : server_(server) {
    a = make();
    b = make();
    sync_wait(a->mesh("bench").until_peers_ready(1));
    sync_wait(b->mesh("bench").until_peers_ready(1));
  }
  std::unique_ptr<zlink::host> make() {
    zlink::host_options options;
    if (const char* chosen_chunk = std::getenv("CHUNK"))
      options.relocation_chunk_bytes = static_cast<std::uint32_t>(std::atoi(chosen_chunk));
    auto host = std::make_unique<zlink::host>(std::move(options));
    host->use_location_store(zlink::make_redis_location_store(server_.options("bench:location")))
      .use_relocation_store(zlink::make_redis_relocation_store(server_.options("bench:relocation")));
    serve(*host);
    host->start();
    return host;
  }
  std::unique_ptr<zlink::host> a;
  std::unique_ptr<zlink::host> b;

private:
  const zlink::test::redis_server& server_;
};

zlink::detail::unit_end move_one(zlink::host& from, zlink::host& to, const std::string& id, zlink::detail::unit_kind kind) {
  auto& source = from.runtime();
  for (int i = 0; !source.objects.find(id); ++i) {
    if (i > 5000)
      std::abort();
    let_pass(1ms);
  }
  zlink::detail::relocation_unit unit;
  unit.kind = kind;
  unit.node = source.find_node("bench");
  unit.lead = zlink::detail::counted_ptr<zlink::detail::hosted_object>{source.objects.find(id)};
  auto ended = zlink::detail::new_counted<zlink::detail::operation<zlink::detail::unit_end>>();
  ended->dispatcher = source.dispatcher;
  source.infra->post([&source, unit = std::move(unit), target = to.runtime().find_node("bench")->identity, ended] {
    zlink::detail::start_coroutine(source.moving.move(unit, target, source.time->now() + 20s),
                                   [ended](zlink::result<zlink::detail::unit_end> end) { ended->set(std::move(end)); });
  });
  return sync_wait(zlink::task<zlink::detail::unit_end>{ended});
}
bool is_at(zlink::host& host, const std::string& id) { return static_cast<bool>(host.runtime().objects.find(id)); }

bool chosen(const char* title) { return std::string{title}.find(bench::chosen_rows()) != std::string::npos; }
void report(const char* title, const char* unit, std::vector<double> values) {
  const auto f = bench::summarise(std::move(values));
  std::printf("%-70s %10.4g %s (%.4g..%.4g)\n", title, f.median, unit, f.lowest, f.highest);
  std::fflush(stdout);
}
double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

/// All of one host to the other one by host Relocate, then its replacement comes.
void many_idle(const zlink::test::redis_server& server, int count) {
  const char* title = "idle Instance Spots with 1 KiB, host Relocate";
  if (!chosen(title))
    return;
  pair_of_hosts hosts{server};
  for (int i = 0; i < count; i += 250) {
    std::vector<zlink::task<touched>> calls;
    for (int j = i; j < std::min(count, i + 250); ++j)
      calls.push_back(hosts.a->spots().request_to_spot("idle" + std::to_string(j), touch{1}).instance_spot("idle").submit<touched>());
    for (auto& call : calls)
      sync_wait(std::move(call));
  }
  let_pass(500ms); // first messages are retired
  std::vector<double> rates;
  for (int run = 0; run < 5; ++run) {
    const auto here = hosts.a->status().spots - 1;
    const auto began = clk::now();
    const auto moved = sync_wait(hosts.a->relocate({.deadline = 120s}));
    const auto took = clk::now() - began;
    if (moved.outcome != zlink::relocate_outcome::relocated)
      std::printf("blocked: %s\n", zlink::to_string(moved.reason));
    std::printf("  %zu in %.2f s\n", here, seconds(took));
    rates.push_back(static_cast<double>(here) / seconds(took));
    sync_wait(hosts.a->shutdown());
    hosts.a = hosts.make();
    sync_wait(hosts.a->mesh("bench").until_peers_ready(1));
    sync_wait(hosts.b->mesh("bench").until_peers_ready(1));
    std::swap(hosts.a, hosts.b);
  }
  report(title, "/s", rates);
}

void pause_of_a_busy_spot(const zlink::test::redis_server& server) {
  const char* title = "pause of a busy Spot with 1 KiB";
  if (!chosen(title))
    return;
  pair_of_hosts hosts{server};
  sync_wait(hosts.a->spots().request_to_spot("busy", touch{1}).instance_spot("idle").submit<touched>());
  let_pass(200ms);
  std::atomic<bool> stop{false};
  std::thread caller{[&] {
    while (!stop)
      sync_wait(hosts.b->spots().request_to_spot("busy", touch{1}).submit<touched>());
  }};
  auto* from = is_at(*hosts.a, "busy") ? hosts.a.get() : hosts.b.get();
  auto* to = from == hosts.a.get() ? hosts.b.get() : hosts.a.get();
  std::vector<double> pauses;
  for (int run = 0; run < 220; ++run) {
    longest_gap = 0;
    if (!move_one(*from, *to, "busy", zlink::detail::unit_kind::instance_spot).left)
      std::abort();
    while (longest_gap == 0)
      let_pass(200us);
    if (run >= 20)
      pauses.push_back(ms(clk::duration{longest_gap.load()}));
    std::swap(from, to);
    let_pass(5ms);
  }
  stop = true;
  caller.join();
  std::printf("%-70s p50 %.2f ms, p99 %.2f ms, longest %.2f ms\n", title, quantile(pauses, 0.5), quantile(pauses, 0.99), quantile(pauses, 1));
}

void room_with_members(const zlink::test::redis_server& server, int count) {
  const char* title = "SpotWide room with 1,000 members, seal to first handler";
  if (!chosen(title))
    return;
  pair_of_hosts hosts{server};
  const auto made = sync_wait(hosts.a->spots().get_or_create("room", "room").submit());
  auto* from = is_at(*hosts.a, "room") ? hosts.a.get() : hosts.b.get();
  auto* to = from == hosts.a.get() ? hosts.b.get() : hosts.a.get();
  for (int i = 0; i < count; ++i) {
    sync_wait(from->actors().create("m" + std::to_string(i), "member").submit());
    sync_wait(from->actors().send_to_actor("m" + std::to_string(i), enter{}).submit());
  }
  for (;;) {
    const auto here = sync_wait(from->spots().request_to_spot("room", touch{}).submit<touched>()).n;
    if (here == static_cast<std::uint64_t>(count))
      break;
    let_pass(10ms);
  }
  std::vector<double> times;
  for (int run = 0; run < 6; ++run) {
    clk::time_point sealed;
    from->runtime().moving.on_step = [&](zlink::detail::move_step step, const std::string&) {
      if (step == zlink::detail::move_step::sealed)
        sealed = clk::now();
    };
    const auto end = move_one(*from, *to, "room", zlink::detail::unit_kind::spot_wide);
    if (!end.left) {
      std::printf("stays: %s %s\n", zlink::to_string(end.reason), end.why.c_str());
      std::abort();
    }
    sync_wait(to->spots().request_to_spot("room", touch{}).submit<touched>());
    if (run > 0)
      times.push_back(ms(clk::now() - sealed));
    from->runtime().moving.on_step = nullptr;
    std::swap(from, to);
    let_pass(1s); // its rows stand for themselves again
  }
  report(title, "ms", times);
  static_cast<void>(made);
}

/// Requests of others by the same link, with one outstanding, in microseconds.
std::vector<double> request_times(zlink::host& by, const std::string& id, const std::function<bool()>& goes_on) {
  std::vector<double> times;
  while (goes_on()) {
    const auto began = clk::now();
    sync_wait(by.spots().request_to_spot(id, touch{1}).submit<touched>());
    times.push_back(1000 * ms(clk::now() - began));
  }
  return times;
}

void large_state(const zlink::test::redis_server& server) {
  const char* title = "64 MiB state: p99 of others' requests on that link";
  if (!chosen(title))
    return;
  pair_of_hosts hosts{server};
  sync_wait(hosts.a->spots().request_to_spot("other", touch{1}).instance_spot("idle").submit<touched>());
  state_bytes = 64 << 20;
  sync_wait(hosts.a->spots().request_to_spot("large", touch{1}).instance_spot("idle").submit<touched>());
  let_pass(300ms);
  auto* from = is_at(*hosts.a, "large") ? hosts.a.get() : hosts.b.get();
  auto* to = from == hosts.a.get() ? hosts.b.get() : hosts.a.get();
  auto& asking = is_at(*hosts.a, "other") ? *hosts.b : *hosts.a;
  std::vector<double> ratios;
  std::vector<double> durations;
  for (int run = 0; run < 5; ++run) {
    const auto until = clk::now() + 500ms;
    const auto without = quantile(request_times(asking, "other", [&] { return clk::now() < until; }), 0.99);
    std::atomic<bool> over{false};
    std::thread mover{[&] {
      const auto began = clk::now();
      if (!move_one(*from, *to, "large", zlink::detail::unit_kind::instance_spot).left)
        std::abort();
      durations.push_back(ms(clk::now() - began));
      over = true;
    }};
    const auto with = quantile(request_times(asking, "other", [&] { return !over; }), 0.99);
    mover.join();
    std::printf("  p99 without %.0f us, with %.0f us\n", without, with);
    ratios.push_back(with / without);
    std::swap(from, to);
    let_pass(300ms);
  }
  report(title, "x of without the move", ratios);
  report("64 MiB state: until it has left", "ms", durations);
  state_bytes = 1024;
}

/// Requests to a Spot of the target that does not move, while host Relocate runs.
double others_meanwhile(const zlink::test::redis_server& server, int count) {
  pair_of_hosts hosts{server};
  std::vector<std::string> at_b;
  for (int i = 0; i < count; ++i) {
    const auto id = "idle" + std::to_string(i);
    sync_wait(hosts.a->spots().request_to_spot(id, touch{1}).instance_spot("idle").submit<touched>());
    if (is_at(*hosts.b, id))
      at_b.push_back(id);
  }
  let_pass(300ms);
  const auto run_for = [&](const std::function<bool()>& goes_on) {
    int done = 0;
    const auto began = clk::now();
    while (goes_on()) {
      sync_wait(hosts.b->spots().request_to_spot(at_b.front(), touch{1}).submit<touched>());
      ++done;
    }
    return done / seconds(clk::now() - began);
  };
  const auto until = clk::now() + 1s;
  const auto before = run_for([&] { return clk::now() < until; });
  const auto began = clk::now();
  auto moving = hosts.a->relocate({.deadline = 120s});
  const auto during = run_for([&] { return !moving.ready(); });
  sync_wait(std::move(moving));
  std::printf("  %zu in %.2f s; others %.0f/s before, %.0f/s meanwhile\n", static_cast<std::size_t>(count) - at_b.size(),
              seconds(clk::now() - began), before, during);
  return during / before;
}

} // namespace

int main(int argc, char** argv) {
  bench::choose_rows(argc, argv);
  const auto fresh = [](const auto& row) {
    zlink::test::redis_server server;
    row(server);
  };
  fresh([](auto& s) { pause_of_a_busy_spot(s); });
  fresh([](auto& s) { room_with_members(s, 1000); });
  fresh([](auto& s) { many_idle(s, 10'000); });
  fresh([](auto& s) { large_state(s); });
  if (const char* title = "others' requests during host Relocate"; chosen(title)) {
    std::vector<double> ratios;
    for (int run = 0; run < 5; ++run)
      fresh([&](auto& s) { ratios.push_back(others_meanwhile(s, 3000)); });
    report(title, "of before", ratios);
  }
}
