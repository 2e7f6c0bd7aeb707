// What the end of a call means, how often it comes, and in which order messages run (03 sections 1, 17, 19).
#include "tests/contract/messaging/probe_spots.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/host/host_runtime.hpp"

#include <set>
#include <stop_token>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;
using testing::store_fault;

TEST_CASE("M-2 M-3 O-5 a send ends when the source side has it, and what happens later does not alter it") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  net.run(ask_at(net.host(1), "c", "alive"));
  // Near: ended before the handler has begun.
  auto near_send = net.host(0).spots().send_to_spot("c", held_note{"near"}).submit();
  CHECK(near_send.ready());
  CHECK(log.count("begin near") == 0);
  net.run(std::move(near_send));
  // Far: ended while the target is held by the other message.
  net.run_until([&] { return log.gate.waiting() == 1; });
  net.run(net.host(1).spots().send_to_spot("c", note{"far"}).submit());
  auto fails_later = net.host(1).spots().send_to_spot("c", fault{}).submit();
  auto nobody_serves = net.host(1).spots().send_to_spot("c", unserved{}).submit();
  net.run(std::move(fails_later));
  CHECK(log.count("far") == 0);
  log.gate.open();
  net.run_until_idle();
  CHECK(log.count("far") == 1);
  net.run(std::move(nobody_serves));
  // A target that dies later changes nothing either.
  auto lost = net.host(1).spots().send_to_spot("c", note{"lost"}).submit();
  net.run_until([&] { return lost.ready(); });
  net.kill(0);
  net.advance(1s);
  CHECK_NOTHROW(net.run(std::move(lost)));
}

TEST_CASE("M-3 finding the owner belongs to the call and to its deadline") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  bool hold = true;
  net.faults(1).set_rule(
    [&hold](const testing::store_call&) { return hold ? store_fault::hold_call : store_fault::none; });
  auto send = net.host(1).spots().send_to_spot("c", note{"waits"}).submit();
  auto request = net.host(1).spots().request_to_spot("c", ask{"waits"}).timeout(300ms).submit<answer>();
  net.advance(100ms);
  CHECK_FALSE(send.ready());
  CHECK(failure(net, std::move(request)) == error_kind::deadline_exceeded);
  hold = false;
  net.faults(1).release_all();
  net.run(std::move(send));
  net.run_until_idle();
  CHECK(log.runs == std::vector<std::string>{"alive", "waits"}); // the request was over before it could be sent
}

TEST_CASE("M-5 M-135 a request whose link is lost fails, runs at most once, and a new call is a new operation") {
  for (const bool arrived : {true, false}) {
    evidence log;
    mesh net{{.hosts = 2, .max_link_delay = 40ms}};
    start_probes(net, log);
    net.run(ask_at(net.host(1), "c", "alive"));
    net.run(ask_at(net.host(1), "c", "known")); // the next leaves at once
    auto request = net.host(1).spots().request_to_spot("c", held_ask{"once"}).submit<answer>();
    if (arrived)
      net.run_until([&] { return log.gate.waiting() == 1; });
    const auto began = net.elapsed();
    net.lose_links(0, 1);
    CHECK(failure(net, std::move(request)) == error_kind::unavailable);
    CHECK(net.elapsed() - began < 1s);
    log.gate.open();
    net.run(net.host(1).mesh("m").until_peers_ready(1));
    net.advance(1min);
    CHECK(log.count("begin once") == (arrived ? 1 : 0));
    CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"again"}).submit<answer>()).text == "again!");
    net.run_until_idle();
    CHECK(log.count("again") == 1);
  }
}

TEST_CASE("M-5 M-7 what a killed owner had accepted runs nowhere afterwards") {
  evidence log;
  mesh net{3};
  net.start([&log](host& started, std::size_t index) {
    serve_probes(started.add_mesh("m"), log);
    if (index != 0)
      started.mesh("m").placement_weight(0);
  });
  const auto made = net.run(net.host(1).spots().get_or_create("c", "room").submit());
  auto holds = net.host(1).spots().send_to_spot("c", held_note{"holds"}).submit();
  net.run_until([&] { return log.gate.waiting() == 1; });
  for (int i = 0; i < 5; ++i)
    net.run(net.host(1).spots().send_to_spot("c", note{"lost"}).submit());
  auto request = net.host(1).spots().request_to_spot("c", ask{"lost too"}).submit<answer>();
  net.run_until_idle();
  net.kill(0);
  CHECK(failure(net, std::move(request)) == error_kind::unavailable);
  net.advance(1min);
  CHECK(net.run(net.host(1).spots().close(made.spot))); // a dead owner's Spot is released by its exact ref
  net.host(2).mesh("m").placement_weight(100);
  net.advance(2s);
  net.run(net.host(1).spots().get_or_create("c", "room").submit());
  net.run_until_idle();
  CHECK(net.owner_of("c") == 2);
  CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"reborn"}).submit<answer>()).text == "reborn!");
  net.advance(1min);
  CHECK(log.runs == std::vector<std::string>{"begin holds", "reborn"});
  log.gate.open();
}

TEST_CASE("O-6 a request ends once: what comes after a timeout or a cancellation completes nobody") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (std::size_t from : {0, 1}) {
    log.gate = latch{};
    std::stop_source stop;
    int ends = 0;
    std::optional<result<answer>> end;
    const auto spots = net.host(from).spots();
    spots.request_to_spot("c", held_ask{"late"}).timeout(1s).submit<answer>().then([&](result<answer> r) {
      ++ends;
      end.emplace(std::move(r));
    });
    auto cancelled_one = spots.request_to_spot("c", held_ask{"cancelled"}).submit<answer>(stop.get_token());
    net.run_until([&] { return ends != 0; });
    CHECK(kind_of(*end) == error_kind::deadline_exceeded);
    stop.request_stop();
    CHECK(net.run(as_result(std::move(cancelled_one))).is_cancelled());
    auto next = spots.request_to_spot("c", ask{"next"}).submit<answer>();
    log.gate.open();
    CHECK(net.run(std::move(next)).text == "next!");
    net.run_until_idle();
    CHECK(ends == 1);
    CHECK(log.count("end late") == (from == 0 ? 1 : 2)); // its handler finished all the same
  }
}

TEST_CASE("reply, timeout, cancellation and link loss at the same moment: one end each") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    evidence log;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 20ms}};
    start_probes(net, log);
    net.run(ask_at(net.host(1), "c", "alive"));
    std::vector<int> ends(20);
    std::stop_source stop;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      auto call = net.host(1).spots().request_to_spot("c", ask{"x"}).timeout(std::chrono::milliseconds{1 + 2 * i});
      call.submit<answer>(i % 3 == 0 ? stop.get_token() : std::stop_token{}).then([&, i](result<answer> r) {
        ++ends[i];
        seen.insert(r ? "reply" : r.is_cancelled() ? "cancelled" : to_string(r.error().kind()));
      });
    }
    net.advance(std::chrono::milliseconds{seed % 25});
    stop.request_stop();
    if (seed % 2 == 0)
      net.lose_links(0, 1);
    net.advance(1min);
    CHECK(std::ranges::count(ends, 1) == static_cast<std::ptrdiff_t>(ends.size()));
  }
  CHECK(seen.size() > 1);
}

TEST_CASE("M-30 M-145 equal requests at the same time, and requests made while serving one, get their own replies") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  for (const auto* id : {"a", "b"})
    net.run(ask_at(net.host(0), id, "alive"));
  for (std::size_t from : {0, 1}) {
    std::vector<task<answer>> pending;
    for (int i = 0; i < 10; ++i) {
      const auto text = std::to_string(i);
      pending.push_back(
        net.host(from).spots().request_to_spot("a", relay{"b", text, i % 2 == 0, i % 3 == 0}).submit<answer>());
      pending.push_back(net.host(from).spots().request_to_spot("b", ask{text}).submit<answer>());
    }
    for (int i = 0; i < 10; ++i) {
      CHECK(net.run(std::move(pending[static_cast<std::size_t>(2 * i)])).text == "relayed " + std::to_string(i) + "!");
      CHECK(net.run(std::move(pending[static_cast<std::size_t>(2 * i + 1)])).text == std::to_string(i) + "!");
    }
  }
}

TEST_CASE("M-149 messages of one origin to one Spot run in the order in which they were admitted") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    evidence log;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 30ms, .max_store_delay = 10ms}};
    start_probes(net, log);
    for (std::size_t from : {1, 0}) {
      const std::string id = "spot " + std::to_string(from);
      std::vector<std::string> expected;
      for (int i = 0; i < 200; ++i) {
        expected.push_back(std::to_string(i));
        if (i % 5 == 4)
          ask_at(net.host(from), id, expected.back());
        else
          net.host(from).spots().send_to_spot(id, note{expected.back()}).instance_spot("probe").submit();
        if (i % 50 == 7)
          net.advance(3ms);
      }
      net.run_until_idle();
      CHECK(log.runs == expected);
      log.runs.clear();
    }
  }
}

TEST_CASE("M-151 sends that wait for room are admitted in the order in which they began to wait") {
  evidence log;
  mesh net{{.hosts = 2, .adjust = [](std::size_t, host_options& options) { options.application_lane_records = 2; }}};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  log.runs.clear();
  std::vector<task<void>> sends;
  sends.push_back(net.host(0).spots().send_to_spot("c", held_note{"0"}).submit());
  net.run_until([&] { return log.gate.waiting() == 1; });
  for (int i = 1; i < 8; ++i)
    sends.push_back(net.host(0).spots().send_to_spot("c", note{std::to_string(i)}).submit());
  net.run_until_idle();
  CHECK_FALSE(sends.back().ready());
  log.gate.open();
  for (auto& send : sends)
    net.run(std::move(send));
  net.run_until_idle();
  CHECK(log.runs == std::vector<std::string>{"begin 0", "end 0", "1", "2", "3", "4", "5", "6", "7"});
}

TEST_CASE("a full queue is waited for; at the deadline the call ends in deadline_exceeded and nothing else") {
  evidence log;
  mesh net{{.hosts = 2, .adjust = [](std::size_t, host_options& options) {
              options.application_lane_records = 1;
              options.max_operations = 3;
            }}};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (std::size_t from : {0, 1}) {
    log.gate = latch{};
    log.runs.clear();
    net.run(net.host(from).spots().send_to_spot("c", held_note{"holds"}).submit());
    net.run_until([&] { return log.gate.waiting() == 1; });
    std::vector<task<answer>> requests;
    for (int i = 0; i < 8; ++i) // more than the lane and more than the operations
      requests.push_back(net.host(from).spots().request_to_spot("c", ask{"x"}).timeout(500ms).submit<answer>());
    for (auto& request : requests)
      CHECK(failure(net, std::move(request)) == error_kind::deadline_exceeded);
    auto patient = net.host(from).spots().request_to_spot("c", ask{"patient"}).submit<answer>();
    log.gate.open();
    CHECK(net.run(std::move(patient)).text == "patient!");
    net.run_until_idle();
  }
}

TEST_CASE("M-43 the caller's object may change after the terminal has returned") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  for (std::size_t from : {0, 1}) {
    log.runs.clear();
    note mine{"before"};
    auto call = net.host(from).spots().send_to_spot("c", mine);
    auto sent = call.submit();
    mine.text = "after";
    net.run(std::move(sent));
    net.run_until_idle();
    CHECK(log.runs == std::vector<std::string>{"before"});
  }
}

TEST_CASE("every end of a call releases its message") {
  evidence log;
  const auto before = detail::live_records();
  {
    mesh net{2};
    start_probes(net, log);
    net.run(ask_at(net.host(1), "c", "success"));
    const auto spots = net.host(1).spots();
    CHECK(failure(net, spots.request_to_spot("nobody", ask{"refused"}).submit<answer>()) == error_kind::not_found);
    CHECK(failure(net, spots.request_to_spot("c", fault{}).submit<answer>()) == error_kind::internal_failure);
    static_cast<void>(spots.send_to_spot("c", note{"never started"}));
    std::stop_source stop;
    auto held = spots.request_to_spot("c", held_ask{"held"}).timeout(1s).submit<answer>();
    auto cancelled_one = spots.request_to_spot("c", held_ask{"cancelled"}).submit<answer>(stop.get_token());
    CHECK(failure(net, std::move(held)) == error_kind::deadline_exceeded);
    stop.request_stop();
    CHECK(net.run(as_result(std::move(cancelled_one))).is_cancelled());
    net.run(spots.send_to_spot("c", held_note{"at shutdown"}).submit());
    net.run(spots.send_to_spot("c", note{"at shutdown"}).submit());
    log.gate.open();
    net.finish();
  }
  CHECK(detail::live_records() == before);
}

TEST_CASE("M-48 a message of 5 MiB passes an idle link whole") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  const std::string large(5 << 20, 'z');
  auto call = net.host(1).spots().request_to_spot("c", ask{large});
  CHECK(net.run(call.submit<answer>()).text == large + "!");
}

TEST_CASE("O-13 one failure through three forms: thrown, as a result, and in a callback") {
  evidence log;
  mesh net{1};
  start_probes(net, log);
  const auto call = [&] { return net.host(0).spots().request_to_spot("nobody", ask{"x"}).submit<answer>(); };
  try {
    net.run(call());
    FAIL("it did not throw");
  } catch (const operation_failed& what) {
    CHECK(what.kind() == error_kind::not_found);
    CHECK(what.details().kind() == error_kind::not_found);
  }
  CHECK(failure(net, call()) == error_kind::not_found);
  std::optional<error_kind> told;
  call().then([&told](result<answer> end) { told = end.error().kind(); });
  net.run_until([&] { return told.has_value(); });
  CHECK(told == error_kind::not_found);
  std::stop_source stop;
  stop.request_stop();
  auto cancelled_one = net.host(0).spots().request_to_spot("nobody", ask{"x"});
  CHECK_THROWS_AS(net.run(cancelled_one.submit<answer>(stop.get_token())), operation_cancelled);
}

} // namespace
} // namespace zlink::test::messaging
