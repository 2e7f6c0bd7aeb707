// What is begun through the contexts of a unit that has left, and closes that meet a move (06 section 17).
#include "tests/contract/relocation/room_scene.hpp"

namespace relocation_test {
namespace {

/// How operations ended: nothing, if one was carried out.
struct ended_operations {
  std::vector<std::pair<std::string, std::optional<error_kind>>> all;

  template <class T>
  zlink::task<void> note(std::string what, zlink::task<T> started) {
    auto waiting = zlink::as_result(std::move(started));
    const auto end = co_await std::move(waiting);
    all.emplace_back(std::move(what), end || end.is_cancelled() ? std::optional<error_kind>{} : end.error().kind());
  }
  void all_unavailable(std::size_t expected) const {
    CHECK(all.size() == expected);
    for (const auto& one : all)
      CHECK_MESSAGE(one.second == error_kind::unavailable, one.first << ": " << std::string{one.second ? zlink::to_string(*one.second) : "carried out"});
  }
};

/// Everything that a Spot or an Actor may send.
template <class Context>
zlink::task<void> send_all(ended_operations& ends, const Context& context) {
  const auto out = context.outbound();
  auto one = ends.note("send to spot", out.send_to_spot("b", note{"old", 1}).submit());
  co_await std::move(one);
  one = ends.note("request to spot", out.request_to_spot("b", count_up{"old", 2}).template submit<count_up>());
  co_await std::move(one);
  one = ends.note("waking request", out.request_to_spot("new", count_up{"old", 2}).instance_spot("ledger").template submit<count_up>());
  co_await std::move(one);
  one = ends.note("send to actor", out.send_to_actor("eve", play{"old"}).submit());
  co_await std::move(one);
  one = ends.note("request to actor", out.request_to_actor("eve", play{"old"}).template submit<played>());
  co_await std::move(one);
  one = ends.note("send to channel", out.send_to_channel("press", note{"old", 3}).submit());
  co_await std::move(one);
  one = ends.note("request to channel", out.request_to_channel("press", count_up{"old", 4}).template submit<count_up>());
  co_await std::move(one);
  one = ends.note("publish", out.publish("press", "news", note{"old", 5}).submit());
  co_await std::move(one);
}
/// Everything else that any Spot may do.
template <class Context>
zlink::task<void> work_all(ended_operations& ends, const Context& context) {
  auto one = ends.note("cpu worker", context.run_cpu_worker([](std::stop_token) { return 1; }).submit());
  co_await std::move(one);
  one = ends.note("io worker", context.run_io_worker([](std::stop_token) { return zlink::detail::make_ready_task(zlink::result<int>{1}); }).submit());
  co_await std::move(one);
  one = ends.note("ask", context.template ask<int>(caf::actor{}, 1s, 1));
  co_await std::move(one);
  one = ends.note("close", context.close());
  co_await std::move(one);
}
constexpr std::size_t sends = 8;
constexpr std::size_t works = 4;

/// A room that does what a test says when it closes.
class leaving_room final : public place<zlink::spot<player>> {
public:
  leaving_room(zlink::spot_context context, stage& on, std::function<zlink::task<void>(leaving_room&)>& last)
    : place(std::move(context), on), last_(last) {}
  zlink::task<zlink::actor_join_response> on_actor_join(std::string, const zlink::message&) override { co_return zlink::accept(); }
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token) override {
    on.happened("closing", name(), to_string(why.reason));
    if (last_ && why.reason == zlink::spot_close_reason::relocation_out)
      co_await last_(*this);
  }
  void on_tick(const zlink::timer_tick&) {}
  using place::members;

private:
  std::function<zlink::task<void>(leaving_room&)>& last_;
};
class ticking_ledger final : public zlink::instance_spot {
public:
  ticking_ledger(zlink::instance_spot_context context, std::function<zlink::task<void>(ticking_ledger&)>& last)
    : instance_spot(std::move(context)), last_(last) {}
  void configure() override { context().handlers().add_packet<&ticking_ledger::on_count>(); }
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token) override {
    if (last_ && why.reason == zlink::spot_close_reason::relocation_out)
      co_await last_(*this);
  }
  void on_tick(const zlink::timer_tick&) {}

private:
  count_up on_count(const count_up& m, const zlink::message_context&) { return m; }
  std::function<zlink::task<void>(ticking_ledger&)>& last_;
};

/// What the Spots of a test do at their end. Outlives the mesh.
struct last_acts {
  std::function<zlink::task<void>(leaving_room&)> of_room;
  std::function<zlink::task<void>(ticking_ledger&)> of_ledger;
};
auto serve_leaving(stage& on, last_acts& last) {
  return [&](zlink::host& host) {
    auto& node = host.add_mesh("m");
    node.add_channel_server("press");
    auto server = node.object_server();
    add_ledgers(server, on);
    server.add_instance_spot_factory<ticking_ledger>("ticking", [&](auto& factory) {
      factory.recreate_on_relocation().construct_with(
        [&last](zlink::instance_spot_context context) { return std::make_unique<ticking_ledger>(std::move(context), last.of_ledger); });
    });
    server.add_entry_spot<hall>([&on](zlink::entry_spot_context context) { return std::make_unique<hall>(std::move(context), on); });
    server.add_spot_factory<leaving_room>("room", [&](auto& factory) {
      factory.recreate_on_relocation().construct_with(
        [&](zlink::spot_context context) { return std::make_unique<leaving_room>(std::move(context), on, last.of_room); });
    });
    server.add_actor_factory<player>("player", [&on](auto& factory) {
      factory.preserve_state_with(player_adapter{}).construct_with([&on](zlink::actor_context context) { return std::make_unique<player>(std::move(context), on); });
    });
  };
}

TEST_CASE("L-204 L-198 X-172 M-24 in OnClosing(RelocationOut) of an Instance Spot every operation of its context is unavailable, its identity readable") {
  stage on;
  ended_operations ends;
  last_acts last;
  std::string name;
  std::string rid;
  std::uint64_t generation = 0;
  last.of_ledger = [&](ticking_ledger& spot) -> zlink::task<void> {
    auto sending = send_all(ends, spot.context());
    co_await std::move(sending);
    auto working = work_all(ends, spot.context());
    co_await std::move(working);
    auto timing = ends.note("timer", spot.context().add_timer<&ticking_ledger::on_tick>("late", 100ms));
    co_await std::move(timing);
    name = spot.context().spot_id();
    rid = spot.context().node_rid();
    generation = spot.context().object_generation();
  };
  mesh net{3};
  net.start(serve_leaving(on, last));
  net.run(rouse(net.host(0), "b"));
  net.run(net.host(0).actors().create("eve", "player").submit());
  net.run(net.host(0).spots().request_to_spot("a", count_up{"x", 0}).instance_spot("ticking").submit<count_up>());
  const auto from = net.owner_of("a");
  const auto to = (from + 1) % 3;
  CHECK(net.run(start_move(net, "a", from, to)).left);
  net.run_until([&] { return !name.empty(); });
  net.run_until_idle();
  ends.all_unavailable(sends + works + 1);
  CHECK(name == "a");
  CHECK(rid == rid_of(net, from));
  CHECK(generation == row_of(net, "a")->generation.value);
  CHECK(look_at(net, 0, "b").entries == std::vector<std::string>{"first/0"});
  CHECK(!row_of(net, "new"));
  CHECK(on.count("handle eve") == 0);
  CHECK(net.owner_of("a") == to); // the close was none of the Spot that lives there
  CHECK(!row_of(net, "a")->closing);
  last = {};
}

TEST_CASE("L-204 X-172 M-24 the same of a SpotWide room, and of its members' contexts; who they are stays readable") {
  stage on;
  ended_operations ends;
  last_acts last;
  std::vector<std::string> names;
  last.of_room = [&](leaving_room& room) -> zlink::task<void> {
    auto sending = send_all(ends, room.context());
    co_await std::move(sending);
    auto working = work_all(ends, room.context());
    co_await std::move(working);
    auto timing = ends.note("timer", room.context().add_timer<&leaving_room::on_tick>("late", 100ms));
    co_await std::move(timing);
    for (player* who : room.members()) {
      auto leaving = ends.note("leave", room.context().leave_actor(*who));
      co_await std::move(leaving);
      auto of_actor = send_all(ends, who->context());
      co_await std::move(of_actor);
      try {
        who->context().join_entry_spot().timeout(5s).defer();
        ends.all.emplace_back("join", std::nullopt);
      } catch (const zlink::operation_failed& why) {
        ends.all.emplace_back("join", why.kind());
      }
      names.push_back(who->context().actor_id() + ' ' + who->context().spot_id() + ' ' + who->context().node_rid());
    }
    names.push_back(room.context().spot_id() + ' ' + room.context().node_rid());
  };
  mesh net{2};
  net.start(serve_leaving(on, last));
  net.run(rouse(net.host(0), "b"));
  net.run(net.host(0).actors().create("eve", "player").submit());
  const table t{net, on, "r", {"ada"}};
  on.trace.clear();
  const auto to = 1 - t.home;
  CHECK(net.run(start_move(net, t.room, t.home, to)).left);
  net.run_until([&] { return names.size() == 2; });
  net.run_until_idle();
  ends.all_unavailable(sends + works + 1 + 1 + sends + 1);
  CHECK(names == std::vector<std::string>{"ada " + t.room + ' ' + rid_of(net, t.home), t.room + ' ' + rid_of(net, t.home)});
  CHECK(on.count("handle eve") == 0);
  CHECK(on.count("left") == 0);
  CHECK(lives(net, to, t.room));
  CHECK(net.run(say(net.host(0), "ada", "here")).room == t.room);
  last = {};
}

TEST_CASE("L-204 M-24 what an Actor's context gave out is unavailable from its commit on, and not before") {
  stage on;
  ended_operations ends;
  last_acts last;
  std::optional<zlink::spot_outbound> kept;
  mesh net{2};
  net.start(serve_leaving(on, last));
  net.run(rouse(net.host(0), "b"));
  net.run(net.host(0).actors().create("ada", "player").submit());
  net.run_until_idle();
  const auto from = home_of_player(net, "ada");
  kept = static_cast<player*>(net.host(from).runtime().objects.find_actor("ada")->application())->context().outbound();
  bool seen = false;
  std::optional<zlink::task<void>> before;
  net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::sealed)
      before = kept->send_to_spot("b", note{"before", 1}).submit();
    seen = seen || step == move_step::source_closed;
  };
  CHECK(net.run(start_actor_move(net, "ada", from, 1 - from)).left);
  net.run_until([&] { return seen; });
  REQUIRE(before);
  CHECK_NOTHROW(net.run(std::move(*before)));
  net.run(ends.note("send", kept->send_to_spot("b", note{"old", 1}).submit()));
  net.run(ends.note("request", kept->request_to_spot("b", count_up{"old", 2}).submit<count_up>()));
  ends.all_unavailable(2);
  net.run_until_idle();
  CHECK(look_at(net, 0, "b").entries == std::vector<std::string>{"first/0", "before/1"});
  kept.reset();
}

TEST_CASE("L-198 a move that came first: whoever closes meets unavailable before and behind the commit, and is not retried") {
  for (const auto at : {move_step::sealing, move_step::captured, move_step::cutover_sent, move_step::commit_seen, move_step::source_closed}) {
    CAPTURE(std::string{to_string(at)});
    stage on;
    std::optional<zlink::result<bool>> closed;
    mesh net{2};
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    const auto from = net.owner_of("a");
    auto spot = net.host(from).runtime().objects.find("a");
    const auto& context = static_cast<ledger*>(spot->application())->context();
    net.host(from).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == at && step != move_step::source_closed)
        context.close().then([&](zlink::result<bool> end) { closed = std::move(end); });
    };
    if (at == move_step::source_closed)
      on.acts = [&](const zlink::instance_spot_context& own, const std::string& word) -> zlink::task<void> {
        if (word != "closing" || closed)
          co_return;
        auto closing = zlink::as_result(own.close());
        closed = co_await std::move(closing);
      };
    CHECK(net.run(start_move(net, "a", from, 1 - from)).left);
    net.run_until([&] { return closed && lives(net, 1 - from, "a") && !lives(net, from, "a"); });
    REQUIRE(!*closed);
    CHECK(closed->error().kind() == error_kind::unavailable);
    net.advance(30s); // it would have been retried by then
    CHECK(lives(net, 1 - from, "a"));
    CHECK(!row_of(net, "a")->closing);
    CHECK(on.count("closing a explicit_close") == 0);
    CHECK(net.run(count(net.host(0), "a", "x", 1)).number == 1);
    on.acts = nullptr;
    spot = nullptr;
  }
}

TEST_CASE("L-198 a close that has marked the row came first, also while its answer is on its way: there is no move") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  net.run_until_idle();
  const auto from = net.owner_of("a");
  net.faults(from).once(zlink::testing::store_operation::write, zlink::placement::spot_key("a"), zlink::testing::store_fault::hold_reply);
  auto closing = static_cast<ledger*>(net.host(from).runtime().objects.find("a")->application())->context().close();
  net.run_until([&] { return net.faults(from).held() == 1; });
  REQUIRE(row_of(net, "a")->closing);
  const auto end = net.run(start_move(net, "a", from, 1 - from, 2s));
  CHECK(!end.left);
  CHECK(on.count("capture") == 0);
  net.faults(from).release_all();
  CHECK(net.run(std::move(closing)));
  CHECK(!row_of(net, "a"));
  CHECK(on.count("closing a explicit_close") == 1);
}

} // namespace
} // namespace relocation_test
