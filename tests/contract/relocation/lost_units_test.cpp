// The commit and what comes of it when store, target or source fail: committed once, lost for good, and the way out
// (06 sections 12, 14 and 17).
#include "tests/contract/relocation/move_scene.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;
using zlink::placement::spot_key;
using zlink::testing::store_call;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

/// "a" on host `from` of three; `to` is where it goes.
struct commit_scene {
  commit_scene(mesh& net, stage& on) {
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    from = net.owner_of("a");
    to = (from + 1) % net.size();
    other = (from + 2) % net.size();
    on.trace.clear();
  }
  /// Does that when the target is about to commit.
  void at_commit(mesh& net, std::function<void()> what) const {
    net.host(to).runtime().moving.on_step = [what = std::move(what)](move_step step, const std::string&) {
      if (step == move_step::committing)
        what();
    };
  }
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t other = 0;
};

TEST_CASE("L-145 L-149 L-4 a commit whose answer is lost is found, not repeated; nothing runs before it is known") {
  for (const auto fault : {store_fault::lose_reply, store_fault::vanish, store_fault::hold_reply}) {
    CAPTURE(static_cast<int>(fault));
    stage on;
    mesh net{3};
    const commit_scene s{net, on};
    s.at_commit(net, [&] { net.faults(s.to).once(store_operation::write, spot_key("a"), fault); });
    const auto before = row_of(net, "a")->authority;
    CHECK(net.run(start_move(net, "a", s.from, s.to)).left);
    auto q = count(net.host(s.other), "a", "q", 1);
    if (fault == store_fault::hold_reply) {
      net.run_until([&] { return net.faults(s.to).held() == 1; });
      net.advance(300ms);
      CHECK(on.count("handle") == 0);
      net.faults(s.to).release_all();
    }
    CHECK(net.run(std::move(q)).number == 1);
    CHECK(row_of(net, "a")->authority.value == before.value + 1);
    CHECK(on.count("make a") == 1);
  }
}

TEST_CASE("L-150 L-149 the store is away for less than the lease: the target goes on asking, and owns it in the end") {
  stage on;
  mesh net{3};
  const commit_scene s{net, on};
  s.at_commit(net, [&] { net.cut_store(s.to); });
  CHECK(net.run(start_move(net, "a", s.from, s.to, 25s)).left);
  auto q = count(net.host(s.other), "a", "q", 1);
  net.advance(5s);
  CHECK(on.count("handle") == 0);
  net.heal();
  CHECK(net.run(std::move(q)).number == 1);
  CHECK(net.owner_of("a") == s.to);
}

TEST_CASE("L-150 L-163 the store is away for longer than the target's lease: nothing runs anywhere, and no late answer revives it") {
  stage on;
  mesh net{3};
  const commit_scene s{net, on};
  s.at_commit(net, [&] { net.cut_store(s.to); });
  CHECK(net.run(start_move(net, "a", s.from, s.to, 60s)).left);
  auto q = count(net.host(s.from), "a", "q", 1, 90s);
  net.advance(30s);
  net.heal();
  const auto end = net.run(zlink::as_result(std::move(q)));
  REQUIRE(!end);
  CHECK(end.error().kind() == error_kind::unavailable);
  net.advance(60s);
  CHECK(on.count("handle") == 0);
  CHECK(on.count("closing") == 0);
  CHECK(home_of(net, "a") == net.size());
  REQUIRE(row_of(net, "a"));
  CHECK(row_of(net, "a")->node.node_rid == net.host(s.from).runtime().find_node("m")->identity.node_rid);
}

TEST_CASE("L-226 L-224 S-44 the store is away for longer than the lease of a host that is emptied: its units are lost, and it is not Relocated") {
  for (const bool late : {false, true}) { // the handler ends behind the deadline
    CAPTURE(late);
    stage on;
    barrier handler;
    mesh net{3};
    const commit_scene s{net, on};
    on.hold("handle", handler);
    auto q = count(net.host(s.other), "a", "q", 1, 90s);
    net.run_until([&] { return handler.waiting() == 1; });
    zlink::relocate_options how;
    how.deadline = 60s;
    auto leaving = net.host(s.from).relocate(how);
    net.advance(1s);
    CHECK(net.host(s.from).status().state == zlink::host_state::relocating);
    net.cut_store(s.from);
    net.advance(30s);
    net.heal();
    if (!late)
      handler.open();
    const auto end = net.run(std::move(leaving));
    CHECK(end.outcome == zlink::relocate_outcome::blocked);
    CHECK(end.reason == relocate_reason::store_unavailable);
    CHECK(net.host(s.from).status().state == zlink::host_state::serving);
    CHECK(row_of(net, "a")->node.node_rid == net.host(s.from).runtime().find_node("m")->identity.node_rid);
    if (late)
      handler.open();
    const auto lost = net.run(zlink::as_result(std::move(q)));
    CHECK(!lost);
    net.run_until_idle();
    CHECK(home_of(net, "a") == net.size());
  }
}

/// The target dies behind the boundary, before its commit.
void lose(mesh& net, stage& on, const commit_scene& s, std::chrono::milliseconds limit = 3s) {
  net.host(s.to).runtime().moving.on_step = nullptr;
  bool reached = false;
  net.host(s.from).runtime().moving.on_step = [&reached, &net, s](move_step step, const std::string&) {
    if (step == move_step::boundary)
      net.mute(s.from, s.to); // so that it waits for the mark
    if (step == move_step::cutover_sent)
      reached = true;
  };
  const bool left = net.run(start_move(net, "a", s.from, s.to, limit)).left;
  CHECK(left);
  net.run_until([&] { return reached; });
  net.kill(s.to);
  net.heal();
  net.host(s.from).runtime().moving.on_step = nullptr;
  static_cast<void>(on);
}

TEST_CASE("L-131 L-163 L-161 the target dies behind the boundary: each held request ends once, the source never runs it, the row stays") {
  stage on;
  mesh net{3};
  const commit_scene s{net, on};
  lose(net, on, s);
  int ends = 0;
  for (std::uint64_t i = 0; i < 3; ++i)
    count(net.host(i == 0 ? s.from : s.other), "a", "h", i).then([&](zlink::result<count_up> end) {
      ++ends;
      CHECK(!end);
      if (!end)
        CHECK(end.error().kind() == error_kind::unavailable);
    });
  net.run_until([&] { return ends == 3; });
  net.run_until([&] { return !lives(net, s.from, "a"); });
  CHECK(on.count("handle") == 0);
  CHECK(on.count("closing") == 0);
  for (const auto host : {s.from, s.other})
    CHECK(failure(net, count(net.host(host), "a", "x", 1)) == error_kind::unavailable);
  CHECK(failure(net, rouse(net.host(s.other), "a")) == error_kind::unavailable);
  CHECK(failure(net, rouse(net.host(s.from), "a")) == error_kind::unavailable);
  REQUIRE(row_of(net, "a"));
  CHECK(!row_of(net, "a")->move);
}

TEST_CASE("L-163 L-164 nobody takes a lost Spot's row away by himself; whoever closes it by its exact ref does, and its id is free") {
  stage on;
  mesh net{3};
  const commit_scene s{net, on};
  const auto ref = net.run(net.host(0).spots().find("a"));
  REQUIRE(ref);
  lose(net, on, s);
  net.run_until([&] { return !lives(net, s.from, "a"); });
  net.advance(10min); // several passes over the store
  REQUIRE(row_of(net, "a"));
  CHECK(failure(net, count(net.host(s.other), "a", "x", 1)) == error_kind::unavailable);
  auto wrong = *ref;
  ++wrong.object_generation;
  static_cast<void>(net.run(zlink::as_result(net.host(s.other).spots().close(wrong))));
  CHECK(row_of(net, "a"));
  const auto before = creation_test::spots_on(net, s.from);
  CHECK(net.run(net.host(s.other).spots().close(*ref)));
  CHECK(!row_of(net, "a"));
  CHECK(creation_test::spots_on(net, s.from).active == before.active - 1);
  on.trace.clear();
  CHECK(net.run(rouse(net.host(s.other), "a")).number == 0);
  CHECK(row_of(net, "a")->generation.value > ref->object_generation);
}

TEST_CASE("L-164 the shutdown of the source's host releases the row of what was lost on its way") {
  stage on;
  mesh net{3};
  const commit_scene s{net, on};
  lose(net, on, s);
  net.run_until([&] { return !lives(net, s.from, "a"); });
  REQUIRE(row_of(net, "a"));
  net.run(net.host(s.from).shutdown());
  CHECK(!row_of(net, "a"));
  CHECK(on.count("closing") == 0);
}

TEST_CASE("L-146 L-148 somebody else writes the row before the commit: the target removes what it has, and nothing of it ran") {
  stage on;
  mesh net{3};
  const commit_scene s{net, on};
  bool committing = false;
  s.at_commit(net, [&] {
    committing = true;
    net.faults(s.to).once(store_operation::write, spot_key("a"), store_fault::hold_call);
  });
  auto moving = start_move(net, "a", s.from, s.to, 2s);
  CHECK(net.run(std::move(moving)).left);
  auto q = count(net.host(s.other), "a", "q", 1);
  net.run_until([&] { return committing; });
  // The source settles: it has seen no commit when the time is over. Then the held write comes through.
  net.run_until([&] { return !lives(net, s.from, "a"); });
  net.faults(s.to).release_all();
  CHECK(failure_of(net.run(zlink::as_result(std::move(q)))) == error_kind::unavailable);
  net.run_until_idle();
  CHECK(home_of(net, "a") == net.size());
  CHECK(on.count("handle") == 0);
  REQUIRE(row_of(net, "a"));
  CHECK(row_of(net, "a")->node.node_rid == net.host(s.from).runtime().find_node("m")->identity.node_rid);
  net.advance(30s);
  CHECK(on.count("handle") == 0);
}

TEST_CASE("L-197 no OnClosing before the commit is seen; afterwards once, with relocation_out") {
  stage on;
  mesh net{3};
  const commit_scene s{net, on};
  s.at_commit(net, [&] { net.faults(s.to).once(store_operation::write, spot_key("a"), store_fault::hold_call); });
  CHECK(net.run(start_move(net, "a", s.from, s.to)).left);
  net.run_until([&] { return net.faults(s.to).held() == 1; });
  net.advance(3s);
  CHECK(on.count("closing") == 0);
  net.faults(s.to).release_all();
  net.run_until([&] { return on.count("closing a relocation_out") == 1; });
  net.advance(60s);
  CHECK(on.count("closing") == 1);
}

TEST_CASE("L-197 a shutdown before the commit is seen: the row decides between relocation_out and host_shutdown") {
  for (const bool committed : {false, true}) {
    CAPTURE(committed);
    stage on;
    mesh net{3};
    const commit_scene s{net, on};
    s.at_commit(net, [&] {
      net.faults(s.to).once(store_operation::write, spot_key("a"), committed ? store_fault::hold_reply : store_fault::hold_call);
    });
    bool sent = false;
    net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::cutover_sent) {
        sent = true;
        net.faults(s.from).set_rule([](const store_call& call) { // it does not see it by itself
          return call.what == store_operation::read && call.key.starts_with(spot_key("a")) ? store_fault::vanish : store_fault::none;
        });
      }
    };
    CHECK(net.run(start_move(net, "a", s.from, s.to, 60s)).left);
    net.run_until([&] { return sent && net.faults(s.to).held() == 1; });
    auto ending = net.host(s.from).shutdown();
    net.advance(5s);
    net.faults(s.from).set_rule({});
    net.run(std::move(ending));
    net.run_until_idle();
    CHECK(on.count("closing a relocation_out") == (committed ? 1 : 0));
    CHECK(on.count("closing a host_shutdown") == (committed ? 0 : 1));
    net.faults(s.to).release_all();
    net.run_until_idle();
  }
}

TEST_CASE("L-200 a source that fails to end its instance moves no ownership back") {
  stage on;
  mesh net{3};
  const commit_scene s{net, on};
  on.at = [](const std::string& step, const std::string&) {
    if (step == "closing")
      throw std::runtime_error{"no"};
  };
  CHECK(net.run(start_move(net, "a", s.from, s.to)).left);
  net.run_until([&] { return on.count("closing a") == 1 && lives(net, s.to, "a") && !lives(net, s.from, "a"); });
  CHECK(net.run(count(net.host(s.from), "a", "x", 1)).number == 1);
  net.advance(60s);
  CHECK(net.owner_of("a") == s.to);
  CHECK(on.count("closing a") == 1);
}

TEST_CASE("L-204 L-165 from the commit on the old context does nothing any more, but says who it was") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  net.run(rouse(net.host(0), "b"));
  const auto from = net.owner_of("a");
  std::vector<error_kind> ends;
  std::string name;
  on.acts = [&](const zlink::instance_spot_context& context, const std::string&) -> zlink::task<void> {
    const auto note_end = [&](const auto& end) { ends.push_back(end ? error_kind::already_exists : end.error().kind()); };
    auto sending = zlink::as_result(context.outbound().send_to_spot("b", note{"old", 1}).submit());
    note_end(co_await std::move(sending));
    auto asking = zlink::as_result(context.outbound().request_to_spot("b", count_up{"old", 3}).submit<count_up>());
    note_end(co_await std::move(asking));
    auto working = zlink::as_result(context.run_cpu_worker([](std::stop_token) { return 1; }).submit());
    note_end(co_await std::move(working));
    name = context.spot_id();
  };
  CHECK(net.run(start_move(net, "a", from, (from + 1) % 3)).left);
  net.run_until([&] { return !name.empty(); });
  CHECK(name == "a");
  for (const auto end : ends)
    CHECK(end == error_kind::unavailable);
  CHECK(ends.size() == 3);
  net.run_until_idle();
  on.acts = nullptr;
  CHECK(look_at(net, 0, "b").entries == words{"first/0"});
  CHECK(net.owner_of("a") == (from + 1) % 3);
}

} // namespace
} // namespace relocation_test
