// A Join that is registered: what it keeps, how long it may be registered, and its one deadline (05 section 4, X-54).
#include "tests/contract/membership/join_scene.hpp"

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace membership_test {
namespace {

using words = std::vector<std::string>;

template <class... Ts>
concept joins_with = requires(const zlink::actor_context& context, Ts... inputs) {
  context.join_spot(std::string{}, inputs...);
};
template <class... Ts>
concept goes_home_with = requires(const zlink::actor_context& context, Ts... inputs) {
  context.join_entry_spot(inputs...);
};
template <class TCall>
concept has_other_terminal = requires(TCall call) {
  call.submit();
}
|| requires(TCall call) { call.yield(); }
|| requires(TCall call) { call.send(); }
|| requires(TCall call) { std::move(call).operator co_await(); };
template <class TCall>
concept takes_place = requires(TCall call) {
  call.in_mesh(std::string{});
}
|| requires(TCall call) { call.on_node(std::string{}); }
|| requires(TCall call) { call.adapter(0); }
|| requires(TCall call) { call.owner(0); };

TEST_CASE("J-51 J-50 X-54 a Join names a Spot and a request, nothing of the place, and is deferred only") {
  static_assert(joins_with<> && joins_with<ticket> && goes_home_with<> && goes_home_with<ticket>);
  static_assert(!joins_with<std::string> && !goes_home_with<std::string>); // the id of a node
  static_assert(!joins_with<ticket, std::string> && !goes_home_with<ticket, std::string>);
  static_assert(!joins_with<zlink::spot_ref> && !joins_with<zlink::actor_ref> && !joins_with<ticket, zlink::spot_ref>);
  static_assert(!goes_home_with<zlink::spot_ref> && !joins_with<int> && !joins_with<ticket, int>);
  static_assert(!joins_with<zlink::detail::relocation_policy> && !joins_with<ticket, zlink::detail::relocation_policy>);
  static_assert(!has_other_terminal<zlink::join_call> && !takes_place<zlink::join_call>);
  static_assert(std::same_as<decltype(std::declval<zlink::join_call&>().defer()), void>);
  static_assert(
    std::same_as<decltype(std::declval<const zlink::actor_context&>().join_entry_spot()), zlink::join_call>);
}

TEST_CASE("X-54 J-53 J-62 J-65 registering keeps gate and claim until the handler ends, then the barrier holds") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  net.run(make_person(net.host(0), "bob"));
  for (const auto* id : {"ada", "bob"})
    move_person(net, on, id, "r");
  open_room(net, "other");
  on.trace.clear();
  barrier rest;
  barrier gate;
  on.during = [&](const std::string& step) {
    return step.starts_with("gate") ? gate.passed() : zlink::task<void>::done();
  };
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    if (word != "go")
      co_return;
    who.context().join_spot("other").timeout(10s).defer();
    on.trace.push_back("deferred");
    auto waiting = rest.passed();
    co_await std::move(waiting);
    on.trace.push_back("handler ends");
  };
  auto going = talk(net.host(0), "ada", "go", 60s);
  net.run_until([&] { return rest.waiting() == 1; });
  net.run(tell_person(net.host(0), "ada", "behind"));
  auto other = talk(net.host(0), "bob", "beside", 60s);
  net.advance(1s);
  // Neither bob, nor her next message, nor the gate of "other".
  CHECK(on.trace == words{"handle ada go in r", "deferred"});
  rest.open();
  net.run(std::move(going));
  CHECK(net.run(std::move(other)).spot == "r");
  net.run_until([&] { return gate.waiting() == 1; });
  net.run(tell_person(net.host(0), "ada", "later"));
  net.advance(1s);
  CHECK(on.count("handle ada behind") == 0);
  gate.open();
  net.run_until([&] { return on.count("handle ada later") == 1; });
  net.run_until_idle();
  words seen;
  for (const auto& one : on.trace)
    if (!one.starts_with("left") && !one.starts_with("handle bob"))
      seen.push_back(one);
  CHECK(seen
        == words{"handle ada go in r", "deferred", "handler ends", "gate other ada", "joined other ada",
                 "completed ada accepted", "handle ada behind in other", "handle ada later in other"});
}

TEST_CASE("J-60 a handler may register as long as it runs, also when it has yielded, and never afterwards") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  open_room(net, "helper");
  open_room(net, "other");
  move_person(net, on, "ada", "r");
  std::optional<zlink::join_call> kept;
  zlink::actor* ada = nullptr;
  words kinds;
  const auto defer = [&kinds](zlink::join_call& call) {
    try {
      call.defer();
      kinds.push_back("fine");
    } catch (const zlink::operation_failed& failed) {
      kinds.push_back(to_string(failed.kind()));
    }
  };
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    ada = &who;
    if (word == "yield") {
      auto before = who.context().join_spot("other");
      auto asking = who.context().outbound().request_to_spot("helper", say{"list"}).yield<said>();
      co_await std::move(asking);
      kept.emplace(who.context().join_entry_spot());
      defer(before);
    } else if (word == "late") {
      defer(*kept); // of a handler that has ended
    }
  };
  net.run(talk(net.host(0), "ada", "yield"));
  net.run_until([&] { return on.ends.size() == 2; });
  CHECK(kinds == words{"fine"});
  CHECK(net.run(talk(net.host(0), "ada", "late")).spot == "other");
  defer(*kept); // outside of everything
  auto fresh = ada->context().join_entry_spot();
  defer(fresh);
  CHECK(kinds == words{"fine", "invalid_operation", "invalid_operation", "invalid_operation"});
  net.advance(10s);
  CHECK(on.ends.size() == 2);
  CHECK(net.run(talk(net.host(0), "ada", "x")).spot == "other");
}

TEST_CASE("J-68 J-55 one deadline, counted from defer, wherever the Join is then, and told once") {
  for (const std::string where : {"in the handler", "at the gate", "before the gate", "at rest", "at the store", "at the look-up", "at the rows"}) {
    CAPTURE(where);
    scene s;
    auto& net = s.net;
    auto& on = s.on;
    open_room(net, "helper");
    barrier open;
    std::chrono::nanoseconds deferred{};
    std::vector<std::chrono::nanoseconds> told;
    on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
      deferred = net.elapsed();
      who.context().join_spot(where == "at the look-up" ? "elsewhere" : "r").timeout(3s).defer();
      if (where == "at rest") { // the handler ends before what it has started
        auto asking = who.context().outbound().request_to_spot("helper", say{"wait"}).timeout(60s).submit<said>();
        std::move(asking).then([](zlink::result<said>) {});
      }
      auto waiting = where == "in the handler" ? open.passed() : zlink::task<void>::done();
      co_await std::move(waiting);
    };
    on.during = [&](const std::string& step) {
      const bool here = (where == "at the gate" && step.starts_with("gate")) || step == "list";
      return here ? open.passed() : zlink::task<void>::done();
    };
    on.at = [&](const std::string& step) {
      if (step.starts_with("completed"))
        told.push_back(net.elapsed());
    };
    std::optional<zlink::task<said>> busy;
    if (where == "before the gate") { // the room is at something else
      busy.emplace(net.host(0).spots().request_to_spot("r", say{"wait"}).timeout(60s).submit<said>());
      net.run_until([&] { return open.waiting() == 1; });
    }
    if (where == "at the store")
      net.faults(0).set_rule([](const store_call& call) {
        const bool hers = call.what == store_operation::write && call.touches(zlink::placement::actor_key("ada"));
        return hers ? store_fault::conflict : store_fault::none;
      });
    if (where == "at the look-up" || where == "at the rows") // a store that is silent for longer than that
      net.faults(0).set_rule([key = zlink::placement::spot_key(where == "at the rows" ? "r" : "elsewhere")](const store_call& call) {
        return call.what == store_operation::read && call.key == key ? store_fault::hold_reply : store_fault::none;
      });
    auto asked = talk(net.host(0), "ada", "go", 60s);
    net.advance(2'999ms);
    CHECK(told.empty());
    CHECK((net.faults(0).held() == 1) == (where == "at the look-up" || where == "at the rows"));
    if (where == "in the handler") {
      net.advance(2s);
      CHECK(told.empty());
      open.open();
    }
    net.run_until([&] { return !told.empty(); });
    open.open();
    net.faults(0).set_rule({});
    net.run(std::move(asked));
    on.handler = nullptr;
    CHECK(net.run(talk(net.host(0), "ada", "on")).word == "on"); // held up by nobody
    if (where == "at the rows") // the other answer comes with the end of the host, or never
      net.faults(0).release_all();
    net.advance(10s);
    REQUIRE(told.size() == 1);
    REQUIRE(on.ends.size() == 1);
    REQUIRE(on.ends[0].error);
    CHECK(on.ends[0].error->kind() == error_kind::deadline_exceeded);
    CHECK(told[0] - deferred == (where == "in the handler" ? 4'999ms : 3s));
    CHECK(on.count("joined") == 0);
    CHECK(person_row(net, "ada")->member_of->spot_id == net.host(0).mesh("m").entry_spot_id());
    if (busy)
      net.run(std::move(*busy));
  }
}

} // namespace
} // namespace membership_test
