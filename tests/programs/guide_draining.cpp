// docs/guide/draining.md: an auction house whose first version hands its running auctions over to the second.
#include <zlink/zlink.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <iostream>
#include <stop_token>
#include <string>
#include <utility>

#include <poll.h>

using namespace std::chrono_literals;
using zlink::sync_wait;

struct bid { int amount = 0; };
struct standing { int highest = 0; int bids = 0; };
struct ring_up { int amount = 0; };
struct receipt { int total = 0; };
struct go_home {};
struct hammer {};
ZLINK_PACKET(bid, "house.bid", amount)
ZLINK_PACKET(standing, "house.standing", highest, bids)
ZLINK_PACKET(ring_up, "house.ring_up", amount)
ZLINK_PACKET(receipt, "house.receipt", total)
ZLINK_PACKET(go_home, "house.go_home")
ZLINK_PACKET(hammer, "house.hammer")

/// Its state travels.
class auction final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  void configure() override { context().handlers().add_packet<&auction::on_bid>(); }

  standing now;

  zlink::task<void> on_closing(const zlink::spot_closing_context& closing, std::stop_token) override {
    if (closing.reason != zlink::spot_close_reason::relocation_out) // else it lives on elsewhere
      std::cout << context().spot_id() << " goes to " << now.highest << '\n';
    co_return;
  }

private:
  standing on_bid(const bid& m, const zlink::message_context&) {
    ++now.bids;
    now.highest = std::max(now.highest, m.amount);
    return now;
  }
};

class auction_adapter final : public zlink::spot_adapter<auction> {
public:
  zlink::task<zlink::bytes> capture(auction& from, std::stop_token) const override {
    co_return zlink::encode(from.now);
  }
  zlink::task<void> restore(auction& into, zlink::byte_view state, std::stop_token) const override {
    into.now = zlink::decode<standing>(state); // after on_initialize
    co_return;
  }
};

/// Made anew where it arrives: what it knows it can find out again.
class catalogue final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  void configure() override { context().handlers().add_packet<&catalogue::on_bid>(); }

private:
  standing on_bid(const bid&, const zlink::message_context&) { return {0, ++asked_}; }
  int asked_ = 0;
};

/// Stays: there is a drawer with money under it.
class till final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  void configure() override {
    context().handlers().add_packet<&till::on_ring_up>().add_packet<&till::on_go_home>();
  }

private:
  receipt on_ring_up(const ring_up& m, const zlink::message_context&) { return {total_ += m.amount}; }
  zlink::task<receipt> on_go_home(const go_home&, const zlink::message_context&) {
    co_await context().close();
    co_return receipt{total_};
  }
  int total_ = 0;
};

/// Lots come up one after the other, and nobody is to be sent elsewhere in the middle of one.
class sale final : public zlink::spot<> {
public:
  using spot::spot;

  void configure() override { context().handlers().add_packet<&sale::on_hammer>(); }

  // Here if there was no reason to move, else on the target, with everything in place. What came meanwhile runs behind it.
  zlink::task<void> on_relocation_ready_completed(const zlink::spot_relocation_ready_completion& completion) override {
    if (completion.outcome == zlink::spot_relocation_ready_outcome::relocated)
      std::cout << context().spot_id() << " goes on after lot " << lots << '\n';
    co_return;
  }

  int lots = 0;

private:
  standing on_hammer(const hammer&, const zlink::message_context&) {
    ++lots;
    context().relocation_ready().defer(); // now would be a good time; nothing else is started in this turn
    return {0, lots};
  }
};

class sale_adapter final : public zlink::spot_adapter<sale> {
public:
  zlink::task<zlink::bytes> capture(sale& from, std::stop_token) const override {
    co_return zlink::encode(standing{0, from.lots});
  }
  zlink::task<void> restore(sale& into, zlink::byte_view state, std::stop_token) const override {
    into.lots = zlink::decode<standing>(state).bids;
    co_return;
  }
};

void open_house(zlink::host& host, const zlink::embedded_store& store) {
  host.use_store(store);
  host.add_mesh("house")
    .object_server()
    .add_instance_spot_factory<auction>("auction", [](auto& factory) { factory.preserve_state_with(auction_adapter{}); })
    .add_instance_spot_factory<catalogue>("catalogue", [](auto& factory) { factory.recreate_on_relocation(); })
    .add_instance_spot_factory<till>("till", [](auto& factory) { factory.disable_relocation(); })
    .add_spot_factory<sale>("sale", [](auto& factory) {
      factory.preserve_state_with(sale_adapter{});
      factory.application_signaled();
    });
}

void watch(const zlink::trace_record& what) {
  if (what.event == "zlink.runtime.host.relocation_changed")
    std::cout << "host: " + std::string{what.state} + '\n';
  else if (what.event == "zlink.runtime.relocation.changed" && what.interruption_target_exceeded)
    std::cerr << "a " + std::string{what.unit_kind} + " stood still for " << what.interruption.count() << " ms\n";
}

zlink::host_options settings(std::uint64_t version) {
  zlink::host_options options;
  options.application_version = version;
  options.on_trace = watch;
  options.route_cache_max_age = 0ms; // the defaults suit a deploy, and are too long for a program that ends soon
  options.message_follow_duration = 300ms;
  return options;
}

/// True: the host is empty and has ended. False: it serves on.
bool drain(zlink::host& host, std::uint64_t to_version) {
  auto moved = sync_wait(host.relocate(
    {.mode = zlink::relocate_mode::rolling_update, .target_version = to_version, .deadline = 20s}));
  if (moved.outcome == zlink::relocate_outcome::blocked) {
    std::cout << "blocked: " << zlink::to_string(moved.reason) << '\n';
    return false;
  }
  while (!host.status().safe_to_shutdown) // late messages are passed on, until nobody can know the old place
    ::poll(nullptr, 0, 50);
  return sync_wait(host.shutdown()).outcome == zlink::shutdown_outcome::stopped;
}

int main() {
  zlink::embedded_store store;
  zlink::host first{settings(1)};
  open_house(first, store);
  first.start();

  auto spots = first.spots();
  sync_wait(spots.request_to_spot("vase", bid{40}).instance_spot("auction").submit<standing>());
  sync_wait(spots.request_to_spot("list", bid{}).instance_spot("catalogue").submit<standing>());
  sync_wait(spots.request_to_spot("desk", ring_up{5}).instance_spot("till").submit<receipt>());
  sync_wait(spots.get_or_create("evening", "sale").submit());

  zlink::host second{settings(2)};
  open_house(second, store);
  second.start();
  sync_wait(second.mesh("house").until_peers_ready(1));

  if (drain(first, 2)) // the till may not move
    return 1;
  std::cout << sync_wait(second.spots().request_to_spot("desk", go_home{}).submit<receipt>()).total << " in the drawer\n";
  while (first.status().spots > 3) // it closes when it has answered
    ::poll(nullptr, 0, 10);

  // Everybody goes on meanwhile. A hammer that falls is the sale's signal.
  auto gone = std::async(std::launch::async, [&] { return drain(first, 2); });
  int fallen = 0;
  while (gone.wait_for(1ms) != std::future_status::ready) {
    auto lot = sync_wait(second.spots().request_to_spot("evening", hammer{}).submit<standing>());
    if (lot.bids != ++fallen)
      return 1; // one was lost, or came twice
  }
  if (!gone.get())
    return 1;

  auto vase = sync_wait(second.spots().request_to_spot("vase", bid{30}).submit<standing>());
  auto list = sync_wait(second.spots().request_to_spot("list", bid{}).submit<standing>());
  std::cout << "vase: " << vase.highest << " after " << vase.bids << " bids\n"; // 40 after 2: the state came along
  std::cout << "list: asked " << list.bids << " times\n";                       // 1: it is a new one, with the same id
}
