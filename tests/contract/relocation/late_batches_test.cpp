// Batches that come twice, in part or late, marks that never come, and silence of the target (06 section 11).
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using words = std::vector<std::string>;
using zlink::detail::cutover_mark;
using zlink::detail::relayed_message;

words entries(mesh& net, const std::string& sender) {
  words all;
  for (const auto& one : look_at(net, 0, "a").entries)
    if (one.starts_with(sender + '/'))
      all.push_back(one);
  return all;
}

/// A move that has been held at its restore until five requests of host `from` are held by the source.
struct held_batch {
  held_batch(mesh& net, stage& on, const lane_scene& s) {
    on.hold("restore", restore);
    moving.emplace(start_move(net, "a", s.from, s.to));
    net.run_until([&] { return restore.waiting() == 1; });
    for (std::uint64_t i = 1; i <= 5; ++i)
      asked.push_back(count(net.host(s.from), "a", "h", i));
    net.run_until_idle();
    CHECK(on.count("handle") == 0);
  }
  barrier restore;
  std::optional<zlink::task<zlink::detail::unit_end>> moving;
  std::vector<zlink::task<count_up>> asked;
};

TEST_CASE("L-137 L-142 L-106 a link that breaks in the middle of the batch: all of it goes again, as one, each record runs once") {
  for (const std::size_t lost_from : {0U, 1U, 3U, 5U}) { // records of the first batch that arrive; 5: the mark is lost
    CAPTURE(lost_from);
    stage on;
    tampered_wire wire;
    mesh net{{.hosts = 3, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    held_batch b{net, on, s};
    std::size_t seen = 0;
    bool broken = false;
    wire.rule = [&](lane_record& r) {
      if (broken || (r.command != control_command::relay && r.command != control_command::cutover))
        return true;
      broken = r.command == control_command::cutover;
      return r.command == control_command::relay && seen++ < lost_from;
    };
    b.restore.open();
    CHECK(net.run(std::move(*b.moving)).left);
    net.run_until([&] { return broken; });
    net.lose_links(s.from, s.to);
    for (std::uint64_t i = 0; i < 5; ++i)
      CHECK(net.run(std::move(b.asked[i])).number == i + 1);
    CHECK(entries(net, "h") == words{"h/1", "h/2", "h/3", "h/4", "h/5"});
    // Never just the tail: the second batch has all of them, and a mark of its own.
    std::map<std::uint32_t, std::uint64_t> sizes;
    for (const auto& r : wire.sent)
      if (r.command == control_command::relay)
        ++sizes[zlink::decode<relayed_message>(r.body).batch];
    CHECK(sizes[1] == 5);
    CHECK(sizes[2] == 5);
    const auto mark = zlink::decode<cutover_mark>(wire.last(control_command::cutover).body);
    CHECK(mark.batch == 2);
    CHECK(mark.records == 5);
  }
}

TEST_CASE("L-8 L-137 records of a batch that was replaced come too late: they replace nothing") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  held_batch b{net, on, s};
  bool broken = false;
  std::vector<lane_record> late;
  wire.rule = [&](lane_record& r) {
    if (r.command != control_command::relay && r.command != control_command::cutover)
      return true;
    if (!broken) {
      late.push_back(r);
      broken = r.command == control_command::cutover;
      return false;
    }
    return r.command != control_command::cutover; // the second mark is kept back, so that the target waits
  };
  b.restore.open();
  CHECK(net.run(std::move(*b.moving)).left);
  net.run_until([&] { return broken; });
  net.lose_links(s.from, s.to);
  net.run_until([&] { return wire.count(control_command::cutover) == 2; });
  net.run_until_idle();
  wire.rule = nullptr;
  REQUIRE(late.size() == 6);
  forge(net, s.from, s.to, late[0]); // as if the old link had had them in its buffers
  forge(net, s.from, s.to, late[1]);
  forge(net, s.from, s.to, wire.last(control_command::cutover));
  for (std::uint64_t i = 0; i < 5; ++i)
    CHECK(net.run(std::move(b.asked[i])).number == i + 1);
  net.advance(3s);
  CHECK(entries(net, "h") == words{"h/1", "h/2", "h/3", "h/4", "h/5"});
}

TEST_CASE("L-137 L-139 L-157 a batch that was complete stays so while the commit is slow, though it comes again and not all of it") {
  for (const bool while_it_comes : {false, true}) { // the commit goes through before the link is lost again
    CAPTURE(while_it_comes);
    stage on;
    tampered_wire wire;
    mesh net{{.hosts = 3, .adjust = wire.taps()}};
    const lane_scene s{net, on};
    held_batch b{net, on, s};
    auto& store = net.faults(s.to);
    net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
      if (step == move_step::committing)
        store.once(zlink::testing::store_operation::write, "", zlink::testing::store_fault::hold_call);
    };
    b.restore.open();
    CHECK(net.run(std::move(*b.moving)).left);
    net.run_until([&] { return store.held() == 1; });
    auto behind = count(net.host(s.from), "a", "m", 1); // by the same lane, behind the mark
    net.run_until_idle();
    std::size_t again = 0;
    wire.rule = [&](lane_record& r) {
      return r.command == control_command::relay ? again++ < 2 : r.command != control_command::cutover;
    };
    net.lose_links(s.from, s.to);
    net.run_until([&] { return again == 5; });
    net.run_until_idle();
    if (!while_it_comes) {
      net.lose_links(s.from, s.to);
      net.advance(1500ms);
    }
    wire.rule = nullptr;
    store.release_all();
    net.run_until([&] { return lives(net, s.to, "a"); });
    for (std::uint64_t i = 0; i < 5; ++i)
      CHECK(net.run(std::move(b.asked[i])).number == i + 1);
    if (while_it_comes) { // what is still missing of it comes now
      std::size_t place = 0;
      for (const auto& r : std::vector<lane_record>(wire.sent))
        if (r.command == control_command::relay && zlink::decode<relayed_message>(r.body).batch == 2 && ++place > 2)
          forge(net, s.from, s.to, r);
    }
    net.advance(3s);
    CHECK(entries(net, "h") == words{"h/1", "h/2", "h/3", "h/4", "h/5"});
    const auto view = look_at(net, 0, "a");
    CHECK(view.entries.back() == "m/1");
    static_cast<void>(failure(net, std::move(behind)));
  }
}

TEST_CASE("L-139 L-140 without a mark the target goes on after its wait; the batch that comes late runs, the mark is noted and changes nothing") {
  stage on;
  tampered_wire wire;
  move_log log;
  mesh net{{.hosts = 3, .adjust = log.listens(wire.taps())}};
  const lane_scene s{net, on};
  held_batch b{net, on, s};
  net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::boundary)
      net.mute(s.from, s.to);
  };
  const auto before = net.elapsed();
  b.restore.open();
  CHECK(net.run(std::move(*b.moving)).left);
  send_straight(net, s.other, s.to, "a", {"d", 1}, std::nullopt);
  net.run_until([&] { return lives(net, s.to, "a"); });
  CHECK(net.elapsed() - before >= 1000ms);
  CHECK(net.elapsed() - before < 1200ms);
  CHECK(log.count("cutover_timeout a") == 1);
  CHECK(log.count("late_cutover a") == 0);
  net.run_until([&] { return on.count("handle a d/1") == 1; });
  CHECK(on.count("handle a h") == 0);
  const auto row = *row_of(net, "a");
  net.heal();
  for (std::uint64_t i = 0; i < 5; ++i)
    CHECK(net.run(std::move(b.asked[i])).number == i + 1);
  net.run_until_idle();
  CHECK(log.count("late_cutover a") == 1);
  CHECK(entries(net, "h") == words{"h/1", "h/2", "h/3", "h/4", "h/5"}); // none is dropped
  forge(net, s.from, s.to, wire.last(control_command::cutover));
  net.run_until_idle();
  CHECK(log.count("late_cutover a") == 2);
  CHECK(row_of(net, "a")->authority == row.authority);
  CHECK(on.count("make a") == 1);
  CHECK(look_at(net, 0, "a").entries.size() == 7);
}

TEST_CASE("L-136 a mark that does not fit what came is an error of somebody's program: it is said, and the move goes on") {
  stage on;
  tampered_wire wire;
  move_log log;
  mesh net{{.hosts = 3, .adjust = log.listens(wire.taps())}};
  const lane_scene s{net, on};
  held_batch b{net, on, s};
  wire.rule = [](lane_record& r) {
    if (r.command == control_command::cutover)
      change<cutover_mark>(r, [](cutover_mark& mark) { mark.sum ^= 1; });
    return true;
  };
  b.restore.open();
  CHECK(net.run(std::move(*b.moving)).left);
  for (std::uint64_t i = 0; i < 5; ++i)
    CHECK(net.run(std::move(b.asked[i])).number == i + 1);
  CHECK(log.count("cutover_mismatch a") == 1);
  CHECK(log.count("cutover_timeout a") == 0);
}

TEST_CASE("L-132 L-160 a readiness that is lost decides nothing: sealed until the deadline, then the store says who it is") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = [&](std::size_t host, zlink::host_options& options) {
              options.relocation_cutover_wait = 60s;
              wire.taps()(host, options);
            }}};
  const lane_scene s{net, on};
  wire.rule = [](lane_record& r) { return r.command != control_command::relay_ready; };
  auto moving = start_move(net, "a", s.from, s.to, 5s);
  net.run_until([&] { return wire.count(control_command::relay_ready) == 1; });
  auto q = count(net.host(s.other), "a", "q", 1);
  net.advance(4s);
  CHECK(on.count("handle") == 0);
  CHECK(!moving.ready());
  CHECK(wire.count(control_command::relay) == 0);
  const auto end = net.run(std::move(moving));
  CHECK(net.run(std::move(q)).number == 1);
  CHECK(on.count("handle a q/1") == 1);
  net.run_until([&] { return (lives(net, s.from, "a") ? 1 : 0) + (lives(net, s.to, "a") ? 1 : 0) == 1; });
  CHECK(net.owner_of("a") == (end.left ? s.to : s.from));
}

TEST_CASE("L-138 behind the window nothing is sent again") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  held_batch b{net, on, s};
  auto& faults = net.faults(s.to);
  net.host(s.from).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::boundary)
      faults.set_rule([](const zlink::testing::store_call& call) {
        return call.what == zlink::testing::store_operation::write ? zlink::testing::store_fault::vanish : zlink::testing::store_fault::none;
      });
  };
  b.restore.open();
  CHECK(net.run(std::move(*b.moving)).left);
  net.advance(1500ms);
  const auto relayed = wire.count(control_command::relay);
  net.lose_links(s.from, s.to);
  net.advance(500ms);
  CHECK(wire.count(control_command::relay) == relayed);
  faults.set_rule({});
  net.run_until([&] { return lives(net, s.to, "a"); });
  net.advance(20s);
  CHECK(wire.count(control_command::relay) == relayed);
  CHECK(entries(net, "h") == words{"h/1", "h/2", "h/3", "h/4", "h/5"});
}

TEST_CASE("L-134 L-142 L-163 L-185 a request behind the mark that was lost with its link ends once, when it is settled that it runs nowhere") {
  stage on;
  tampered_wire wire;
  mesh net{{.hosts = 3, .adjust = wire.taps()}};
  const lane_scene s{net, on};
  net.host(s.to).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::committing)
      net.cut_store(s.to);
  };
  CHECK(net.run(start_move(net, "a", s.from, s.to, 5s)).left);
  int ends = 0;
  count(net.host(s.from), "a", "l", 1, 15s).then([&](zlink::result<count_up> end) {
    ++ends;
    REQUIRE(!end);
    CHECK(end.error().kind() == error_kind::unavailable);
  });
  net.run_until([&] { return wire.count(control_command::relay) == 1; });
  net.lose_links(s.from, s.to);
  net.run_until([&] { return ends == 1; });
  net.heal();
  net.advance(30s);
  CHECK(ends == 1);
  CHECK(on.count("handle") == 0);
  CHECK(net.host(s.to).runtime().objects.find("a") == nullptr);
}

} // namespace
} // namespace relocation_test
