// What a lane carries, and what it does not: sums, repeats, records of others, batches that come twice, marks that come late
// (06 sections 1, 8, 9, 11).
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;
using zlink::detail::attempt_note;
using zlink::detail::ready_note;
using zlink::detail::cutover_mark;
using zlink::detail::relayed_message;
using zlink::detail::restore_request;

/// Handled by "a" so far, of that sender.
words handled(mesh& net, const std::string& sender) {
  words all;
  for (const auto& one : look_at(net, 0, "a").entries)
    if (one.starts_with(sender + '/'))
      all.push_back(one);
  return all;
}
void until_moved(mesh& net, const lane_scene& s) {
  net.run_until([&] { return lives(net, s.to, "a") && !lives(net, s.from, "a"); });
}

TEST_CASE("L-96 L-161 bytes that were changed on the way: nothing is restored, nobody tries again, the source goes on in order") {
  for (const int what : {0, 1, 2}) { // a byte flipped, a chunk lost, a shorter one
    CAPTURE(what);
    stage on;
    tampered_wire wire;
    mesh net{{.hosts = 2, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    wire.rule = [&](lane_record& r) {
      if (r.command == control_command::restore_chunk)
        spoil_chunk(r, what);
      return true;
    };
    barrier handler;
    on.hold("handle", handler);
    auto q1 = count(net.host(0), "a", "q", 1);
    net.run_until([&] { return handler.waiting() == 1; });
    auto q2 = count(net.host(0), "a", "q", 2);
    net.run_until_idle();
    auto moving = start_move(net, "a", s.from, s.to);
    handler.open();
    on.during = nullptr;
    auto h1 = count(net.host(0), "a", "q", 3);
    const auto end = net.run(std::move(moving));
    CHECK(!end.left);
    CHECK(end.reason == relocate_reason::relocation_failed);
    CHECK(end.kind == error_kind::data_lost);
    CHECK(net.run(std::move(q1)).number == 1);
    CHECK(net.run(std::move(q2)).number == 2);
    CHECK(net.run(std::move(h1)).number == 3);
    CHECK(handled(net, "q") == words{"q/1", "q/2", "q/3"});
    CHECK(on.count("restore") == 0);
    CHECK(on.count("make a") == 0);
    CHECK(wire.count(control_command::restore) == 1);
    CHECK(wire.count(control_command::relay) == 0);
    CHECK(net.owner_of("a") == s.from);
    CHECK(!row_of(net, "a")->move);
  }
}

TEST_CASE("L-8 L-102 records of another attempt, another move or another node's lane change nothing") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  barrier restore;
  on.hold("restore", restore);
  auto moving = start_move(net, "a", s.from, s.to);
  net.run_until([&] { return restore.waiting() == 1; });
  const auto request = wire.last(control_command::restore);
  const auto attempt = zlink::decode<restore_request>(request.body).attempt;
  const auto speak = [&](std::size_t who, zlink::detail::unique_id move, std::uint64_t number) {
    forge(net, who, s.to, {who, control_command::restore_chunk, move, zlink::detail::encode_chunk({move, number, 7, {}})});
    relayed_message told{number, 9, 0, {}};
    forge(net, who, s.to, {who, control_command::relay, move, zlink::encode(told)});
    forge(net, who, s.to, {who, control_command::cutover, move, zlink::encode(cutover_mark{number, 9, 1, 1})});
    forge(net, who, s.to, {who, control_command::move_abandoned, move, zlink::encode(attempt_note{number})});
    forge(net, who, s.from, {who, control_command::relay_ready, move, zlink::encode(ready_note{number})});
    zlink::detail::restore_refused no{number, 6, 12, "forged"};
    forge(net, who, s.from, {who, control_command::restore_refused, move, zlink::encode(no)});
    net.run_until_idle();
  };
  auto another = request.move;
  another.low ^= 1;
  speak(s.other, request.move, attempt);     // not its lane
  speak(s.other, another, attempt);
  speak(s.other, request.move, attempt + 2); // not the attempt
  CHECK(net.host(s.other).runtime().find_node("m")->links->ready_link(net.host(s.to).runtime().find_node("m")->identity.node_rid));
  CHECK(!moving.ready());
  CHECK(on.count("closing") == 0);
  const auto at_home = net.host(s.from).runtime().objects.find("a");
  REQUIRE(at_home);
  CHECK(row_of(net, "a")->authority == at_home->authority());
  auto held = count(net.host(s.from), "a", "h", 1);
  net.advance(100ms);
  CHECK(on.count("handle") == 0);
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  CHECK(net.run(std::move(held)).number == 1);
  until_moved(net, s);
  CHECK(handled(net, "h") == words{"h/1"});
}

TEST_CASE("L-108 the same Restore request three times: one queue, one instance, and its answer once more") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 2, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  barrier restore;
  on.hold("restore", restore);
  auto moving = start_move(net, "a", s.from, s.to);
  net.run_until([&] { return restore.waiting() == 1; });
  const auto request = wire.last(control_command::restore);
  const auto chunk = wire.last(control_command::restore_chunk);
  send_straight(net, s.from, s.to, "a", {"d", 1}, std::nullopt);
  net.run_until_idle();
  for (int i = 0; i < 2; ++i) {
    forge(net, s.from, s.to, request);
    forge(net, s.from, s.to, chunk);
  }
  net.run_until_idle();
  bool again = true;
  net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::boundary && std::exchange(again, false))
      forge(net, s.from, s.to, request); // behind relay-ready, too
  };
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  until_moved(net, s);
  net.run_until_idle();
  CHECK(on.count("make a") == 1);
  CHECK(on.count("restore a") == 1);
  CHECK(wire.count(control_command::relay_ready) == 2);
  CHECK(handled(net, "d") == words{"d/1"});
}

TEST_CASE("L-97 one identity with two contents: a conflict with a name; neither is used, and the Spot is at one place") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 2, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  barrier restore;
  on.hold("restore", restore);
  auto moving = start_move(net, "a", s.from, s.to);
  net.run_until([&] { return restore.waiting() == 1; });
  auto request = wire.last(control_command::restore);
  change<restore_request>(request, [](restore_request& r) { r.sum ^= 5; });
  forge(net, s.from, s.to, request);
  net.run_until_idle();
  restore.open();
  const auto end = net.run(std::move(moving));
  CHECK(!end.left);
  CHECK(end.reason == relocate_reason::relocation_failed);
  CHECK(end.kind == error_kind::data_lost);
  CHECK(net.run(count(net.host(0), "a", "x", 1)).number == 1);
  CHECK(net.owner_of("a") == s.from);
  CHECK(on.count("closing") == 0);
}

TEST_CASE("L-102 L-109 a newer attempt takes the place of an older one, whose late records enter no queue") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 2, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  barrier first;
  on.hold("restore", first);
  auto moving = start_move(net, "a", s.from, s.to, 500ms);
  net.run_until([&] { return first.waiting() == 1; });
  const auto old = wire.last(control_command::restore);
  const auto old_chunk = wire.last(control_command::restore_chunk);
  CHECK(!net.run(std::move(moving)).left);
  barrier second;
  on.hold("restore", second);
  on.trace.clear();
  auto again = start_move(net, "a", s.from, s.to);
  net.run_until([&] { return second.waiting() == 1; });
  CHECK(wire.last(control_command::restore).move != old.move);
  const auto attempt = zlink::decode<restore_request>(old.body).attempt;
  auto held = count(net.host(s.from), "a", "h", 1);
  relayed_message told{attempt, 1, 0, {}};
  forge(net, s.from, s.to, {s.from, control_command::relay, old.move, zlink::encode(told)});
  forge(net, s.from, s.to, old);
  forge(net, s.from, s.to, old_chunk);
  forge(net, s.from, s.to, {s.from, control_command::cutover, old.move, zlink::encode(cutover_mark{attempt, 1, 0, 0})});
  net.run_until_idle();
  first.open();
  net.run_until_idle();
  second.open();
  CHECK(net.run(std::move(again)).left);
  CHECK(net.run(std::move(held)).number == 1);
  until_moved(net, s);
  CHECK(on.count("make a") == 1);
  CHECK(on.count("handle a") == 1);
  CHECK(look_at(net, 0, "a").entries == words{"first/0", "h/1"});
}

TEST_CASE("L-100 L-101 L-103 L-105 what comes straight to the target waits in its queue from the Restore request on, in order, behind the rest") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  barrier restore;
  on.hold("restore", restore);
  net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::restore_sent) // right behind it
      send_straight(net, s.from, s.to, "a", {"d", 1}, std::nullopt);
  };
  auto moving = start_move(net, "a", s.from, s.to);
  net.run_until([&] { return restore.waiting() == 1; });
  send_straight(net, s.other, s.to, "a", {"e", 1}, std::nullopt);
  send_straight(net, s.other, s.to, "a", {"e", 2}, std::nullopt);
  auto h1 = count(net.host(s.from), "a", "h", 1);
  net.run_until_idle();
  CHECK(on.count("handle") == 0);
  CHECK(wire.count(control_command::relay) == 0); // before relay-ready nothing is passed on (L-133)
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  CHECK(net.run(std::move(h1)).number == 1);
  until_moved(net, s);
  CHECK(look_at(net, 0, "a").entries == words{"first/0", "h/1", "d/1", "e/1", "e/2"});
  CHECK(wire.count(control_command::cutover) == 1);
}

TEST_CASE("L-101 without a registration a message goes the normal way: it is refused, and does not wait for a move") {
  stage on;
  mesh net{3};
  const lane_scene s{net, on};
  const auto row = *row_of(net, "a");
  send_straight(net, s.other, s.to, "a", {"d", 1}, zlink::detail::message_fence{row.generation, row.authority});
  net.run_until_idle();
  CHECK(net.run(start_move(net, "a", s.from, s.to)).left);
  until_moved(net, s);
  CHECK(look_at(net, 0, "a").entries == words{"first/0"});
}

TEST_CASE("L-102 a message for another incarnation enters no queue") {
  stage on;
  mesh net{3};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  const auto first = row_of(net, "a")->generation;
  on.acts = [](const zlink::instance_spot_context& context, const std::string&) -> zlink::task<void> { co_await context.close(); };
  net.run(bid(net.host(0), "a", "close"));
  net.run_until([&] { return !row_of(net, "a"); });
  net.run(rouse(net.host(0), "a"));
  REQUIRE(row_of(net, "a")->generation > first);
  lane_scene s;
  s.look(net);
  barrier restore;
  on.hold("restore", restore);
  auto moving = start_move(net, "a", s.from, s.to);
  net.run_until([&] { return restore.waiting() == 1; });
  const auto row = *row_of(net, "a");
  for (const int off : {1, -1}) {
    const zlink::detail::object_generation other{row.generation.value + static_cast<std::uint64_t>(off)};
    send_straight(net, s.other, s.to, "a", {"wrong", static_cast<std::uint64_t>(off + 1)}, zlink::detail::message_fence{other, row.authority});
  }
  send_straight(net, s.other, s.to, "a", {"right", 1}, zlink::detail::message_fence{row.generation, row.authority});
  net.run_until_idle();
  restore.open();
  CHECK(net.run(std::move(moving)).left);
  until_moved(net, s);
  net.run_until_idle();
  CHECK(look_at(net, s.to, "a").entries == words{"first/0", "right/1"}); // who asks elsewhere may still know the first one's route
}

TEST_CASE("L-64 L-95 L-107 L-137 a held message that is larger than a frame may be ends alone, with a name; the link and all others go on") {
  for (const bool behind_the_mark : {false, true}) {
    CAPTURE(behind_the_mark);
    stage on;
    tampered_wire wire;
    wire.frame_limit = 4096;
    mesh net{{.hosts = 3, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    const auto node_of = [&](std::size_t host) { return net.host(host).runtime().find_node("m"); };
    const auto link_now = [&] { return node_of(s.from)->links->ready_link(node_of(s.to)->identity.node_rid).get(); };
    const auto* link = link_now();
    const std::string large(5000, 'x');
    barrier handler;
    barrier restore;
    on.during = [&](const std::string& step, const std::string&) {
      return step == "handle" ? handler.passed() : step == "restore" ? restore.passed() : zlink::task<void>::done();
    };
    auto running = count(net.host(s.from), "a", "q", 1);
    net.run_until([&] { return handler.waiting() == 1; });
    net.run(jot(net.host(s.from), "a", "q" + large, 2)); // captured: it goes in chunks
    net.run_until_idle();
    auto moving = start_move(net, "a", s.from, s.to);
    net.advance(5ms);
    handler.open();
    net.run_until([&] { return restore.waiting() == 1; });
    CHECK(on.count("handle a q" + large) == 0);
    std::vector<zlink::task<count_up>> asked;
    const auto ask_all = [&] {
      asked.push_back(count(net.host(s.from), "a", "h", 1));
      asked.push_back(count(net.host(s.from), "a", large, 2));
      asked.push_back(count(net.host(s.from), "a", "h", 3));
      static_cast<void>(jot(net.host(s.from), "a", large, 4));
    };
    net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::committing && behind_the_mark)
        net.cut_store(s.to);
    };
    if (!behind_the_mark)
      ask_all();
    net.run_until_idle();
    restore.open();
    CHECK(net.run(std::move(moving)).left);
    if (behind_the_mark) {
      net.advance(100ms);
      ask_all();
      net.run_until_idle();
      net.heal();
    }
    CHECK(net.run(std::move(running)).number == 1);
    CHECK(net.run(std::move(asked[0])).number == 1);
    CHECK(failure(net, std::move(asked[1])) == error_kind::invalid_operation);
    CHECK(net.run(std::move(asked[2])).number == 3);
    until_moved(net, s);
    CHECK(on.count("handle a q" + large) == 1);
    CHECK(on.count("handle a h/1") == 1);
    CHECK(on.count("handle a h/3") == 1);
    CHECK(on.count("handle a x") == 0);
    CHECK(link_now() == link);
    std::size_t most = 0;
    for (const auto& r : wire.sent)
      most = std::max(most, payload_of(r).size());
    CHECK(most <= wire.frame_limit);
  }
}

} // namespace
} // namespace relocation_test
