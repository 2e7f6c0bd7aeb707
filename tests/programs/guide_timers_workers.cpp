// docs/guide/timers_and_workers.md: ticks in turns, work beside them.
#include <zlink/zlink.hpp>

#include <chrono>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <stop_token>
#include <utility>

using namespace std::chrono_literals;

struct count_primes { std::int64_t below = 0; };
struct primes { std::int64_t count = 0; };

ZLINK_PACKET(count_primes, "mill.count_primes", below)
ZLINK_PACKET(primes, "mill.primes", count)

// Costly, and knows nothing of Spots.
std::int64_t sieve(std::int64_t below, const std::stop_token& stop) {
  std::int64_t found = 0;
  for (std::int64_t n = 2; n < below && !stop.stop_requested(); ++n) {
    bool prime = true;
    for (std::int64_t d = 2; d * d <= n && prime; ++d)
      prime = n % d != 0;
    found += prime ? 1 : 0;
  }
  return found;
}

class mill final : public zlink::instance_spot {
public:
  mill(zlink::instance_spot_context context, std::promise<std::uint64_t>& third)
    : instance_spot(std::move(context)), third_(third) {}

  void configure() override { context().handlers().add_packet<&mill::on_count>(); }

  zlink::task<void> on_initialize() override {
    zlink::timer_options options{.overrun = zlink::timer_overrun::catch_up_bounded, .max_catch_up_ticks = 3};
    wheel_ = co_await context().add_timer<&mill::on_turn>("wheel", 20ms, options);
  }

private:
  // An ordinary turn of this Spot: no other message runs beside it.
  void on_turn(const zlink::timer_tick& tick) {
    if (tick.delivery_index != 3)
      return;
    wheel_.cancel(); // otherwise this Spot would never be idle
    third_.set_value(tick.delivery_index);
  }

  // The body runs on the host's worker pool, outside of any turn, and touches nothing of the Spot. With yield the Spot
  // serves others until the result is there.
  zlink::task<primes> on_count(const count_primes& m, const zlink::message_context&) {
    auto counting = context().run_cpu_worker([below = m.below](std::stop_token stop) { return sieve(below, stop); });
    counting.timeout(10s);
    const auto count = co_await counting.yield();
    co_return primes{count};
  }

  std::promise<std::uint64_t>& third_;
  zlink::timer wheel_;
};

int main() {
  std::promise<std::uint64_t> third;
  zlink::host host;
  host.add_mesh("valley").object_server().add_instance_spot_factory<mill>("mill", [&third](auto& factory) {
    factory.construct_with(
      [&third](zlink::instance_spot_context context) { return std::make_unique<mill>(std::move(context), third); });
    factory.disable_relocation();
  });
  host.start();

  auto count = zlink::sync_wait(
    host.spots().request_to_spot("mill-1", count_primes{10'000}).instance_spot("mill").submit<primes>());
  std::cout << count.count << " primes\n";
  std::cout << "tick " << third.get_future().get() << '\n';
}
