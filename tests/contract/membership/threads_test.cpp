// Actors that change their gates under real threads: nothing is lost, overtaken or run twice (J-65, X-10 to X-12).
#include <doctest/doctest.h>
#include <zlink/zlink.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace membership_threads {

using namespace std::chrono_literals;

struct step {
  int sender = 0;
  int number = 0;
};
struct hop {
  std::string to; ///< empty: home
};
struct ask_count {};
struct count {
  int seen = 0;
  int out_of_order = 0;
  int overlaps = 0;
};
ZLINK_PACKET(step, "hopper.step", sender, number)
ZLINK_PACKET(hop, "hopper.hop", to)
ZLINK_PACKET(ask_count, "hopper.ask_count")
ZLINK_PACKET(count, "hopper.count", seen, out_of_order, overlaps)

constexpr int senders = 4;

/// Has no lock: its messages run one at a time wherever it is.
class hopper final : public zlink::actor {
public:
  using actor::actor;
  std::array<int, senders> last{};
  count so_far;
  bool inside = false;
};

template <class Base>
class place : public Base {
public:
  using Base::Base;
  void configure() override {
    this->context()
      .handlers()
      .template add_actor_handler<&place::on_step>()
      .template add_actor_handler<&place::on_hop>()
      .template add_actor_handler<&place::on_count>();
  }
  zlink::task<void> on_joined_actor(hopper&) override { return zlink::task<void>::done(); }
  zlink::task<void> on_leave_actor(hopper&) override { return zlink::task<void>::done(); }

private:
  void on_step(hopper& who, const zlink::message_context&, const step& m) {
    who.so_far.overlaps += who.inside ? 1 : 0;
    who.inside = true;
    auto& last = who.last[static_cast<std::size_t>(m.sender)];
    who.so_far.out_of_order += m.number == last + 1 ? 0 : 1;
    last = m.number;
    ++who.so_far.seen;
    who.inside = false;
  }
  void on_hop(hopper& who, const zlink::message_context&, const hop& m) {
    if (m.to.empty())
      who.context().join_entry_spot().timeout(30s).defer();
    else
      who.context().join_spot(m.to).timeout(30s).defer();
  }
  count on_count(hopper& who, const zlink::message_context&, const ask_count&) { return who.so_far; }
};
using hall = place<zlink::entry_spot<hopper>>;
using room = place<zlink::spot<hopper>>;

TEST_CASE("J-65 J-86 X-10 X-12 an Actor that hops between rooms and home under load handles every message once, in order") {
  zlink::host host;
  host.add_mesh("m")
    .object_server()
    .add_entry_spot<hall>()
    .add_spot_factory<room>("room", [](auto& factory) { factory.disable_relocation(); })
    .add_actor_factory<hopper>("hopper", [](auto& factory) { factory.disable_relocation(); });
  host.start();
  auto actors = host.actors();
  for (const auto* id : {"a", "b"})
    zlink::sync_wait(host.spots().get_or_create(id, "room").submit());
  constexpr int hoppers = 3;
  for (int i = 0; i < hoppers; ++i)
    zlink::sync_wait(actors.create("h" + std::to_string(i), "hopper").submit());

  constexpr int steps = 2'000;
  std::vector<std::thread> threads; // tidy: allow thread: senders outside of the host are what this is about
  for (int sender = 0; sender < senders; ++sender)
    threads.emplace_back([&actors, sender] {
      for (int number = 1; number <= steps; ++number)
        for (int i = 0; i < hoppers; ++i) {
          auto sent = actors.send_to_actor("h" + std::to_string(i), step{sender, number}).submit();
          if (number % 64 == 0)
            zlink::sync_wait(std::move(sent));
        }
    });
  const std::array<std::string, 4> places{"a", "b", "", "a"};
  for (int round = 0; round < 60; ++round)
    for (int i = 0; i < hoppers; ++i) {
      const auto id = "h" + std::to_string(i);
      zlink::sync_wait(actors.send_to_actor(id, hop{places[static_cast<std::size_t>(round + i) % places.size()]}).submit());
      zlink::sync_wait(actors.request_to_actor(id, ask_count{}).timeout(60s).submit<count>()); // behind the Join
    }
  for (auto& thread : threads)
    thread.join();
  for (int i = 0; i < hoppers; ++i) {
    const auto end = zlink::sync_wait(actors.request_to_actor("h" + std::to_string(i), ask_count{}).timeout(60s).submit<count>());
    CHECK(end.seen == senders * steps);
    CHECK(end.out_of_order == 0);
    CHECK(end.overlaps == 0);
  }
}

} // namespace membership_threads
