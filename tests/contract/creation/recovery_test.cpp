// What an activation or creation leaves behind when the store, a link or a node fails in the middle of it.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/node_runtime.hpp"
#include "zlink/placement/digest.hpp"

namespace creation_test {
namespace {

using trace = std::vector<std::string>;
using zlink::placement::allocation_state;

auto serve_hastily(stage& on) {
  return [&on](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").request_timeout(2s); // what an activation has, too
  };
}
zlink::task<void> close_instance(const zlink::common_spot_context& context) {
  auto closing = static_cast<const zlink::instance_spot_context&>(context).close();
  co_await std::move(closing);
}
zlink::task<void> close_room(const zlink::common_spot_context& context, std::string& end) {
  auto closing = zlink::as_result(static_cast<const zlink::spot_context&>(context).close());
  const auto closed = co_await std::move(closing);
  end = closed ? *closed ? "true" : "false" : to_string(closed.error().kind());
}
/// While on: no write that names the row of "a" gets through once it is reserved.
void lose_commits(mesh& net, bool& lost) {
  net.faults(0).set_rule([&net, &lost](const store_call& call) {
    const bool names = call.what == store_operation::write && call.touches(zlink::placement::spot_key("a"));
    return lost && names && row_of(net, "a") ? store_fault::vanish : store_fault::none;
  });
}
/// Lets the first activation of "a" give up with its row still reserved; its generation.
std::uint64_t interrupt(mesh& net, stage& on, bool& lost) {
  lost = true;
  lose_commits(net, lost);
  CHECK(failure(net, rouse(net.host(0), "a", "1", 1s)) == error_kind::deadline_exceeded);
  net.advance(8s);
  CHECK(net.host(0).status().spots == 0);
  CHECK(on.alive == 0);
  CHECK(on.count("handle") == 0);
  REQUIRE(row_of(net, "a"));
  CHECK(row_of(net, "a")->state == allocation_state::reserved);
  CHECK(row_of(net, "a")->root);
  on.trace.clear();
  return row_of(net, "a")->generation.value;
}

TEST_CASE("C-98 S-116 an activation that could not end goes on by itself, as the same incarnation, with its first message") {
  stage on;
  mesh net{1};
  net.start(serve_hastily(on));
  bool lost = false;
  const auto generation = interrupt(net, on, lost);
  lost = false;
  net.advance(4min); // met in two passes over the store
  CHECK(on.trace == trace{"factory a", "configure a", "initialize a", "handle a 1"});
  REQUIRE(row_of(net, "a"));
  CHECK(row_of(net, "a")->generation.value == generation);
  CHECK(row_of(net, "a")->state == allocation_state::active);
  CHECK_FALSE(row_of(net, "a")->root);
  CHECK(net.run(rouse(net.host(0), "a", "2")).generation == generation);
  CHECK(spots_on(net, 0) == zlink::placement::slot_bucket{1, 0});
  net.advance(3min);
  CHECK(on.count("factory") == 1);
  CHECK(on.count("handle a 1") == 1);
}

TEST_CASE("C-98 a Ready Spot whose node dies is gone on with by nobody") {
  stage on;
  barrier never;
  mesh net{3};
  net.start(serve(on));
  on.hold("handle", never);
  auto first = rouse(net.host(0), "a", "1", 2s);
  net.run_until([&] { return never.waiting() == 1; });
  const auto owner = net.owner_of("a");
  REQUIRE(row_of(net, "a")->root); // the first message is still pointed at
  net.kill(owner);
  net.restart(owner);
  on.trace.clear();
  on.during = nullptr;
  for (int i = 0; i < 4; ++i) {
    net.advance(45s);
    for (std::size_t host = 0; host < 3; ++host)
      CHECK(failure(net, rouse(net.host(host), "a", "2", 2s)) == error_kind::unavailable);
  }
  CHECK(on.trace.empty());
  never.open();
}

TEST_CASE("C-98 C-74 creations of User Spots are not gone on with") {
  stage on;
  barrier open;
  mesh net{2};
  net.start(serve_beside_client(on));
  on.hold("create", open);
  auto call = open_room(net.host(0), "a", "x", 3s);
  net.run_until([&] { return open.waiting() == 1; });
  net.kill(1);
  net.restart(1);
  net.advance(3min);
  CHECK(on.count("create") == 1);
  CHECK_FALSE(row_of(net, "a")); // released (C-79)
  on.during = nullptr;
  CHECK(net.run(open_room(net.host(0), "a")).state == zlink::spot_create_state::created);
  open.open();
}

TEST_CASE("C-79 S-156 a reservation whose caller never learned of it frees its id again") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  net.faults(0).once(store_operation::write, zlink::placement::spot_key("a"), store_fault::late);
  CHECK(failure(net, open_room(net.host(0), "a")) == error_kind::internal_failure);
  net.faults(0).release_all(); // it happens after all
  net.run_until_idle();
  REQUIRE(row_of(net, "a"));
  CHECK(row_of(net, "a")->state == allocation_state::reserved);
  net.advance(6min);
  CHECK_FALSE(row_of(net, "a"));
  CHECK(spots_on(net, 1) == zlink::placement::slot_bucket{});
  CHECK(on.trace.empty());
  CHECK(net.run(open_room(net.host(0), "a")).state == zlink::spot_create_state::created);
}

TEST_CASE("S-83 C-75 a reservation stands as long as its creator waits") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto rid = net.host(1).mesh("m").rid();
  net.mute(0, 1); // the reservation is made, the target hears nothing of it
  auto call = open_room(net.host(0), "a", "x", 10min);
  net.run_until([&] { return row_of(net, "a").has_value(); });
  net.advance(5min); // met in several passes over the store
  REQUIRE(row_of(net, "a"));
  CHECK(row_of(net, "a")->state == allocation_state::reserved);
  CHECK(spots_on(net, 1) == zlink::placement::slot_bucket{0, 1});
  net.heal();
  const auto made = net.run(std::move(call));
  CHECK(made.state == zlink::spot_create_state::created);
  CHECK(made.spot.node_rid == rid);
  CHECK(on.count("factory") == 1);
}

TEST_CASE("C-79 C-72 a creation that could not be ended while the store was away is ended afterwards") {
  for (const bool accepted : {true, false}) {
    stage on;
    mesh net{2};
    net.start(serve_beside_client(on));
    on.answer = [&](const std::string&) { return accepted ? zlink::accept() : zlink::reject(); };
    bool away = false;
    on.at = [&](const std::string& step, const std::string&) { away = away || step == "create"; };
    net.faults(1).set_rule([&](const store_call& call) {
      const bool names = call.what == store_operation::write && call.touches(zlink::placement::spot_key("a"));
      return away && names ? store_fault::vanish : store_fault::none;
    });
    auto call = open_room(net.host(0), "a", "x", 20s);
    net.advance(30s);
    CHECK(row_of(net, "a"));
    away = false;
    on.at = nullptr;
    on.answer = nullptr;
    const auto end = net.run(zlink::as_result(std::move(call)));
    CHECK((!end || end->state == zlink::spot_create_state::rejected));
    net.advance(4min);
    CHECK_FALSE(row_of(net, "a"));
    CHECK(on.alive == 0);
    CHECK(net.run(open_room(net.host(0), "a")).state == zlink::spot_create_state::created);
  }
}

TEST_CASE("C-113 S-156 a close that the store does not carry out is no false") {
  stage on;
  mesh net{1};
  net.start(serve_hastily(on));
  const auto made = net.run(open_room(net.host(0), "a")).spot;
  bool away = true;
  net.faults(0).set_rule([&](const store_call& call) {
    const bool names = call.what == store_operation::write && call.touches(zlink::placement::spot_key("a"));
    return away && names ? store_fault::vanish : store_fault::none;
  });
  std::string own; // of the Spot itself, so that no caller's deadline answers in its place
  on.handler = [&own](const zlink::common_spot_context& context, const std::string& word) {
    return word == "close" ? close_room(context, own) : zlink::task<void>::done();
  };
  net.run(ask(net.host(0), "a", "close"));
  CHECK(own == "unavailable");
  CHECK(on.count("closing") == 0);
  CHECK(net.run(ask(net.host(0), "a", "still here")).word == "still here");
  net.advance(100ms);
  away = false;
  CHECK(net.run(net.host(0).spots().close(made)));
  CHECK_FALSE(row_of(net, "a"));
}

TEST_CASE("C-115 S-156 a row that could not be removed while the store was away is removed afterwards") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  const auto made = net.run(open_room(net.host(0), "a")).spot;
  bool away = false;
  on.at = [&](const std::string& step, const std::string&) { away = away || step == "closing"; };
  net.faults(0).set_rule([&](const store_call& call) {
    const bool names = call.what == store_operation::write && call.touches(zlink::placement::spot_key("a"));
    return away && names ? store_fault::vanish : store_fault::none;
  });
  auto call = net.host(0).spots().close(made);
  net.advance(8s);
  CHECK(row_of(net, "a"));
  CHECK_FALSE(call.ready());
  away = false;
  on.at = nullptr;
  CHECK(net.run(std::move(call)));
  CHECK_FALSE(row_of(net, "a"));
  CHECK(net.run(open_room(net.host(0), "a")).state == zlink::spot_create_state::created);
}

TEST_CASE("S-44 C-113 a Spot whose lease is lost while its close waits for the store goes, and its closer hears why") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  const auto made = net.run(open_room(net.host(0), "a")).spot;
  net.faults(0).set_rule([](const store_call& call) {
    const bool names = call.what == store_operation::write && call.touches(zlink::placement::spot_key("a"));
    return names ? store_fault::vanish : store_fault::none;
  });
  auto closed = net.host(0).spots().close(made);
  net.advance(100ms);
  net.cut_store(0);
  net.advance(18s); // longer than the lease lives, shorter than the close may take
  net.heal();
  net.advance(8s);
  CHECK(on.alive == 0);
  CHECK(net.host(0).status().spots == 0);
  CHECK(on.count("closing") == 0);
  CHECK(failure(net, std::move(closed)) == error_kind::unavailable);
}

TEST_CASE("C-117 S-156 a next incarnation that the store does not take at once comes all the same, in place of a removal") {
  for (const auto fault : {store_fault::vanish, store_fault::lose_reply, store_fault::late}) {
    CAPTURE(static_cast<int>(fault));
    stage on;
    barrier closing;
    mesh net{2};
    net.start(serve(on));
    const auto old = net.run(rouse(net.host(0), "a", "0"));
    const auto owner = net.owner_of("a");
    net.run_until_idle();
    on.handler = [](const zlink::common_spot_context& context, const std::string& word) {
      return word == "close" ? close_instance(context) : zlink::task<void>::done();
    };
    on.hold("closing", closing);
    net.run(ask(net.host(owner), "a", "close"));
    net.run_until([&] { return closing.waiting() == 1; });
    auto next = rouse(net.host(owner), "a", "1");
    net.run_until_idle();
    int removals = 0;
    net.faults(owner).set_rule([&](const store_call& call) {
      if (call.what == store_operation::write && call.touches(zlink::placement::spot_key("a")))
        removals += call.batch->mutations.front().put ? 0 : 1;
      return store_fault::none;
    });
    net.faults(owner).once(store_operation::write, zlink::placement::spot_key("a"), fault);
    closing.open();
    if (fault == store_fault::late) {
      net.run_until([&] { return net.faults(owner).held() == 1; });
      net.run_until_idle(); // it is not there, so it is tried again a moment later
      net.faults(owner).release_all();
    }
    const auto fresh = net.run(std::move(next));
    CHECK(fresh.rid == old.rid);
    CHECK(fresh.generation > old.generation);
    CHECK(removals == 0);
    CHECK(net.faults(owner).script_done());
    net.faults(owner).set_rule({});
  }
}

TEST_CASE("C-70 a stored request that is not what was reserved builds nothing and frees its places") {
  for (const bool apart : {false, true}) {
    CAPTURE(apart);
    stage on;
    mesh net{2};
    net.start(serve_beside_client(on));
    net.mute(0, 1); // reserved, and the target not asked yet
    auto call = open_room(net.host(0), "a", std::string(apart ? 20'000 : 10, 'x'), 60s);
    net.advance(1s);
    auto row = row_of(net, "a");
    REQUIRE(row);
    if (apart) {
      put(net, zlink::placement::content_key(row->pending->reservation), "something else");
    } else {
      row->pending->request->bytes[5] ^= 1;
      put(net, zlink::placement::spot_key("a"), encode(zlink::placement::object_record{*row}));
    }
    net.lose_links(0, 1);
    net.heal();
    const auto end = failure(net, std::move(call));
    CHECK(end == (apart ? error_kind::internal_failure : error_kind::unavailable)); // another version of the row
    CHECK(on.trace.empty());
    net.advance(6min);
    CHECK_FALSE(row_of(net, "a"));
    CHECK(spots_on(net, 1) == zlink::placement::slot_bucket{});
  }
}

TEST_CASE("C-76 who stops asking a target, and how that is told") {
  stage on;
  barrier never;
  mesh net{2};
  net.start(serve_beside_client(on));
  on.hold("create", never);
  SUBCASE("its lifecycle has ended") {
    auto call = open_room(net.host(0), "a", "x", 10min);
    net.run_until([&] { return never.waiting() == 1; });
    net.kill(1);
    CHECK(failure(net, std::move(call)) == error_kind::unavailable);
    CHECK(net.elapsed() < 2min);
  }
  SUBCASE("no attempt ever got there") {
    net.partition({0}, {1});
    CHECK(failure(net, open_room(net.host(0), "a", "x", 5s)) == error_kind::unavailable);
    CHECK(on.trace.empty());
  }
  SUBCASE("an attempt got there") {
    auto call = open_room(net.host(0), "a", "x", 5s);
    net.run_until([&] { return never.waiting() == 1; });
    net.partition({0}, {1});
    CHECK(failure(net, std::move(call)) == error_kind::deadline_exceeded);
  }
  never.open();
}

TEST_CASE("C-88 a message that sees the Spot Ready is never told that it is missing") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  net.faults(1).set_rule([&](const store_call& call) {
    const bool commits = call.what == store_operation::write && call.touches(zlink::placement::spot_key("a"))
                         && row_of(net, "a") && row_of(net, "a")->state == allocation_state::reserved;
    return commits ? store_fault::hold_reply : store_fault::none;
  });
  auto first = rouse(net.host(0), "a", "1");
  auto create = open_room(net.host(0), "b");
  net.run_until([&] { return row_of(net, "a") && row_of(net, "a")->state == allocation_state::active; });
  auto plain = ask(net.host(0), "a", "2"); // the store says Ready, its node does not know yet
  net.advance(100ms);
  CHECK(on.count("handle") == 0);
  net.faults(1).release_all();
  CHECK(net.run(std::move(plain)).word == "2");
  CHECK(net.run(std::move(first)).word == "1");
  CHECK(net.run(std::move(create)).state == zlink::spot_create_state::created);
  std::erase_if(on.trace, [](const auto& one) { return !one.starts_with("handle a"); });
  CHECK(on.trace == trace{"handle a 1", "handle a 2"});
}

TEST_CASE("C-95 there is no reservation of an Instance Spot without the receipt of its first message") {
  zlink::placement::reserve_request wish;
  wish.kind = zlink::placement::object_kind::instance_spot;
  wish.id = "a";
  wish.stable_type = "cell";
  wish.reservation = {1, 1};
  wish.target_owner = {{1, 1}, {1}};
  wish.target = {{"m", "r", {1}}, "v"};
  const auto decided = [&] { return zlink::placement::reserve({}, wish); };
  CHECK(std::get<zlink::placement::refusal>(decided()) == zlink::placement::refusal::impossible); // no receipt
  wish.content = zlink::placement::request_content{};
  CHECK(std::get<zlink::placement::refusal>(decided()) == zlink::placement::refusal::impossible); // a request is none
  wish.content = zlink::placement::recovery_root{"root/1", {}, 10, 0};
  const auto step = std::get<zlink::placement::fragment>(decided());
  const auto row = zlink::placement::reserved_row(wish, {{1}, {1}});
  REQUIRE(row.root);
  CHECK(row.root->reference == "root/1");
  CHECK(step.capacity.size() == 1);   // in the same step
  CHECK(step.conditions.size() == 3); // nobody has the id, the lease, the node's very descriptor
}

TEST_CASE("O-91 what becomes of Spots is reported under the category spot-instance, without ids of owners or payload") {
  std::vector<std::string> told_by;
  stage on;
  mesh net{{.hosts = 1, .adjust = [&](std::size_t, zlink::host_options& options) {
              options.on_trace = [&](const zlink::trace_record& told) {
                if (told.event.starts_with("zlink.runtime.host."))
                  return; // of no Spot (L-272)
                CHECK(told.category == zlink::trace_category::spot_instance);
                CHECK(std::string{to_string(told.category)} == "spot-instance");
                CHECK(told.mesh_name == "m");
                CHECK(told.node_rid == net.host(0).mesh("m").rid());
                told_by.push_back(std::string{told.event} + ' ' + to_string(told.kind) + ' ' + std::string{told.spot_id}
                                  + (told.reason.empty() ? "" : ' ' + std::string{told.reason}));
                throw std::runtime_error{"whoever writes logs may fail"};
              };
            }}};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").instance_spot_idle_timeout(1s);
  });
  CHECK(std::string{to_string(zlink::trace_category::actor_relocation)} == "actor-relocation");
  net.run(rouse(net.host(0), "a", "secret"));
  net.advance(3s);
  CHECK(told_by
        == trace{"activating instance a", "created instance a", "closing instance a idle_evicted",
                 "closed instance a idle_evicted"});
  told_by.clear();
  const auto made = net.run(open_room(net.host(0), "u")).spot;
  net.run(net.host(0).spots().close(made));
  CHECK(told_by == trace{"created user u", "closing user u explicit_close", "closed user u explicit_close"});
  told_by.clear();
  on.answer = [](const std::string&) { return zlink::reject(); };
  net.run(open_room(net.host(0), "v"));
  CHECK(told_by == trace{"rejected user v"});
  told_by.clear();
  on.at = [](const std::string& step, const std::string&) {
    if (step == "initialize")
      throw std::runtime_error{"not today"};
  };
  failure(net, rouse(net.host(0), "b", "secret"));
  CHECK(told_by == trace{"activating instance b", "failed instance b internal_failure"});
  told_by.clear();
  on.at = nullptr;
  on.answer = nullptr;
  net.run(open_room(net.host(0), "w"));
  told_by.clear();
  net.cut_store(0);
  net.advance(40s);
  net.heal();
  net.advance(10s); // now it learns that its lease is over
  CHECK(told_by == trace{"abandoned user w"});
}

} // namespace
} // namespace creation_test
