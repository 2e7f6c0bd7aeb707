// How many units are under way at once beside an application that needs the processors too (06 section 18).
#include "tests/contract/relocation/move_scene.hpp"
#include "zlink/execution/gate.hpp"

namespace relocation_test {
namespace {

/// Serial units whose threads wait for processors as long as somebody says.
class sharing_unit final : public zlink::detail::serial_executor {
public:
  sharing_unit(std::shared_ptr<serial_executor> inner, const unsigned& percent) : inner_(std::move(inner)), percent_(percent) {}
  void post(zlink::unique_function<void()> job) override { inner_->post(std::move(job)); }
  bool running_here() const noexcept override { return inner_->running_here(); }
  void alarm_at(zlink::steady_time when) override { inner_->alarm_at(when); }
  void on_alarm(zlink::unique_function<void()> handler) override { inner_->on_alarm(std::move(handler)); }
  unsigned waited_for_processor() override { return percent_; }
  void stop() override { inner_->stop(); }

private:
  std::shared_ptr<serial_executor> inner_;
  const unsigned& percent_;
};
class sharing_environment final : public zlink::execution_environment {
public:
  sharing_environment(std::shared_ptr<execution_environment> inner, const unsigned& percent) : inner_(std::move(inner)), percent_(percent) {}
  std::shared_ptr<zlink::detail::serial_executor> make_serial(std::string name, std::shared_ptr<const zlink::clock> time) override {
    return std::make_shared<sharing_unit>(inner_->make_serial(std::move(name), std::move(time)), percent_);
  }
  std::shared_ptr<zlink::detail::worker_pool> make_workers(zlink::worker_options options) override { return inner_->make_workers(options); }

private:
  std::shared_ptr<execution_environment> inner_;
  const unsigned& percent_;
};
std::function<void(std::size_t, zlink::host_options&)> sharing(const std::vector<unsigned>& percent) {
  return [&percent](std::size_t host, zlink::host_options& options) {
    options.environment = std::make_shared<sharing_environment>(options.environment, percent[host]);
  };
}

/// Units of a host that need nothing but 2 ms each.
struct paced_units {
  explicit paced_units(zlink::host& of) : host(of.runtime()) {}

  void begin(int count, zlink::steady_duration within, zlink::steady_duration each = 2ms) {
    host.infra->post([this, count, until = host.time->now() + within, each] {
      for (int i = 0; i < count; ++i)
        zlink::detail::start_coroutine(one(until, each), [](zlink::result<void>) {});
    });
  }
  zlink::task<void> one(zlink::steady_time until, zlink::steady_duration each) {
    auto entering = host.moving.pace.enter(until);
    co_await std::move(entering);
    most = std::max(most, ++inside);
    host.infra->post_after(each, [this] {
      --inside;
      ++ended;
      host.moving.pace.leave();
    });
  }
  /// So long, with so many messages served in each millisecond.
  void pass(mesh& net, std::chrono::milliseconds time, unsigned served, bool told = false) {
    most = inside;
    for (; time > 0ms; time -= 1ms) {
      host.domain.counters.served += served;
      if (told)
        host.infra->post([this] { host.moving.pace.target_is_crowded(); });
      net.advance(1ms);
    }
  }
  zlink::detail::host_runtime& host;
  int inside = 0;
  int most = 0;
  int ended = 0;
};

TEST_CASE("L-222 units go side by side in growing numbers while nobody else runs, or there are processors for all") {
  for (const bool runs : {false, true}) {
    std::vector<unsigned> percent{runs ? 20u : 90u};
    mesh net{{.hosts = 1, .adjust = sharing(percent)}};
    net.start([](zlink::host&) {});
    paced_units units{net.host(0)};
    units.begin(20'000, 30s);
    units.pass(net, 200ms, runs ? 100 : 0);
    CHECK(units.most > 200);
    units.pass(net, 800ms, runs ? 100 : 0);
    CHECK(units.ended == 20'000);
  }
}

TEST_CASE("L-222 beside handlers that wait for processors few units go at a time, and more again when they do not") {
  std::vector<unsigned> percent{90};
  mesh net{{.hosts = 1, .adjust = sharing(percent)}};
  net.start([](zlink::host&) {});
  paced_units units{net.host(0)};
  units.begin(100'000, 1000s);
  units.pass(net, 100ms, 5);
  units.pass(net, 500ms, 5);
  CHECK(units.most == 1);
  CHECK(units.ended >= 250); // but never none
  percent[0] = 10;
  units.pass(net, 500ms, 5);
  CHECK(units.most > 20);
  CHECK(units.most < 80); // carefully
  units.pass(net, 3s, 5);
  CHECK(units.most > 500);
  units.pass(net, 5s, 0);
  CHECK(units.ended == 100'000);
}

TEST_CASE("L-222 a target whose handlers wait for processors says so") {
  std::vector<unsigned> percent{0};
  mesh net{{.hosts = 1, .adjust = sharing(percent)}};
  net.start([](zlink::host&) {});
  paced_units units{net.host(0)};
  units.begin(20'000, 120s);
  units.pass(net, 100ms, 0, true);
  units.pass(net, 100ms, 0, true);
  CHECK(units.most == 1);
  units.pass(net, 20s, 0);
  CHECK(units.ended == 20'000);
}

TEST_CASE("L-222 L-48 who would come too late does not wait for others' sake") {
  std::vector<unsigned> percent{90};
  mesh net{{.hosts = 1, .adjust = sharing(percent)}};
  net.start([](zlink::host&) {});
  paced_units units{net.host(0)};
  units.begin(5'000, 2s); // one by one they take 10 s
  units.pass(net, 2s, 5);
  CHECK(units.ended == 5'000);
}

TEST_CASE("L-222 a slow unit holds nobody, however few go at a time") {
  std::vector<unsigned> percent{90};
  mesh net{{.hosts = 1, .adjust = sharing(percent)}};
  net.start([](zlink::host&) {});
  paced_units units{net.host(0)};
  units.begin(100, 600s);
  units.pass(net, 200ms, 5);
  units.begin(10, 600s, 300s);
  units.begin(100, 600s);
  units.pass(net, 10s, 5);
  CHECK(units.ended == 200);
  units.pass(net, 300s, 0);
  CHECK(units.ended == 210);
}

TEST_CASE("L-127 L-222 what a target says of its processors reaches the source, with units that really move") {
  int most[2] = {0, 0};
  for (const bool crowded : {false, true}) {
    stage on;
    std::vector<unsigned> percent{0, crowded ? 90u : 0u};
    mesh net{{.hosts = 2, .max_store_delay = 1ms, .adjust = sharing(percent)}};
    net.start(serve(on));
    int homes = 0;
    for (int i = 0; homes < 400; ++i) {
      const auto id = "p" + std::to_string(i);
      net.run(rouse(net.host(0), id));
      homes += net.owner_of(id) == 0;
    }
    auto& target = net.host(1).runtime();
    int begun = 0;
    int inside = 0;
    net.host(0).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::sealed && ++begun && ++inside > most[crowded] && begun > 200)
        most[crowded] = inside;
      if (step == move_step::cutover_sent) {
        --inside;
        target.domain.counters.served += 50; // others' there
      }
    };
    CHECK(net.run(net.host(0).relocate({.deadline = 600s})).outcome == zlink::relocate_outcome::relocated);
    CHECK(begun == 400);
  }
  CHECK(most[true] <= 4);
  CHECK(most[false] > 10);
}

TEST_CASE("messages that objects were given are counted where they are served") {
  stage on;
  mesh net{{.hosts = 2}};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto there = net.owner_of("a");
  auto& served = net.host(there).runtime().domain.counters.served;
  const auto before = served.load();
  for (std::uint64_t i = 1; i <= 100; ++i)
    net.run(count(net.host(0), "a", "x", i));
  CHECK(served.load() - before == 100);
}

} // namespace
} // namespace relocation_test
