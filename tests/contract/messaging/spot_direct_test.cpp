// Messages that name a Spot: what is found, what is woken, what is refused, and how routes age (03 sections 9, 11, 12).
#include "tests/contract/messaging/probe_spots.hpp"
#include "zlink/host/host_runtime.hpp"

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;
using testing::store_fault;
using testing::store_operation;

TEST_CASE("M-57 without intent a missing id is not_found and leaves no row") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  for (std::size_t from : {0, 1}) {
    const auto writes = net.faults(0).count(store_operation::write) + net.faults(1).count(store_operation::write);
    const auto spots = net.host(from).spots();
    CHECK(failure(net, spots.send_to_spot("c", note{"x"}).submit()) == error_kind::not_found);
    CHECK(failure(net, spots.request_to_spot("c", ask{"x"}).submit<answer>()) == error_kind::not_found);
    CHECK(net.faults(0).count(store_operation::write) + net.faults(1).count(store_operation::write) == writes);
    CHECK_FALSE(net.run(spots.find("c")).has_value());
  }
  CHECK(log.runs.empty());
  CHECK(log.incarnations == 2); // the Entry Spots
}

TEST_CASE("M-58 M-59 M-4 intent wakes a missing Instance Spot, and the message that woke it runs first and once") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (std::size_t from : {0, 1}) {
      evidence log;
      mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 10ms, .max_store_delay = 10ms}};
      start_probes(net, log);
      std::vector<task<answer>> calls;
      for (int i = 0; i < 50; ++i)
        calls.push_back(ask_at(net.host(from), "c", std::to_string(i)));
      for (int i = 0; i < 50; ++i)
        CHECK(net.run(std::move(calls[static_cast<std::size_t>(i)])).text == std::to_string(i) + "!");
      net.run_until_idle();
      REQUIRE(log.runs.size() == 50);
      CHECK(log.runs.front() == "0");
      for (int i = 0; i < 50; ++i)
        CHECK(log.count(std::to_string(i)) == 1);
      CHECK(log.incarnations == 3);
    }
}

TEST_CASE("M-65 after idle cleanup an unmarked message is not_found, a marked one begins a new incarnation") {
  evidence log;
  mesh net{2};
  net.start([&log](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    serve_probes(node, log);
    node.instance_spot_idle_timeout(5s);
    if (index != 0)
      node.placement_weight(0);
  });
  std::uint64_t generation = 0;
  for (std::size_t from : {0, 1}) {
    net.run(ask_at(net.host(from), "c", "alive"));
    const auto first = net.run(net.host(from).spots().find("c"));
    REQUIRE(first.has_value());
    CHECK(first->object_generation > generation);
    generation = first->object_generation;
    net.advance(20s);
    CHECK_THROWS_AS(net.owner_of("c"), std::logic_error);
    CHECK(failure(net, net.host(from).spots().request_to_spot("c", ask{"x"}).submit<answer>())
          == error_kind::not_found);
    CHECK(failure(net, net.host(from).spots().send_to_spot("c", note{"x"}).submit()) == error_kind::not_found);
  }
  CHECK(log.count("x") == 0);
}

TEST_CASE("M-156 an Entry Spot is addressable from anywhere; intent is type_mismatch, an ended id not_found") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.advance(2s);
  const auto id = net.host(0).mesh("m").entry_spot_id();
  REQUIRE_FALSE(id.empty());
  for (std::size_t from : {0, 1}) {
    log.runs.clear();
    const auto spots = net.host(from).spots();
    net.run(spots.send_to_spot(id, note{"sent"}).submit());
    CHECK(net.run(spots.request_to_spot(id, ask{"asked"}).submit<answer>()).text == "asked!");
    CHECK(log.runs == std::vector<std::string>{"sent", "asked"});
    CHECK(failure(net, spots.request_to_spot(id, ask{"x"}).instance_spot("probe").submit<answer>())
          == error_kind::type_mismatch);
    CHECK(failure(net, spots.request_to_spot(id, ask{"x"}).instance_spot().submit<answer>())
          == error_kind::type_mismatch);
    CHECK(failure(net, spots.send_to_spot(id, note{"x"}).instance_spot("probe").submit())
          == error_kind::type_mismatch);
  }
  net.run(net.host(0).shutdown());
  net.advance(5s);
  for (const bool marked : {false, true}) {
    auto call = net.host(1).spots().request_to_spot(id, ask{"x"});
    if (marked)
      call.instance_spot("probe"); // no listed Entry Spot any more: an id that nobody may make up (C-55)
    CHECK(failure(net, call.submit<answer>()) == (marked ? error_kind::invalid_operation : error_kind::not_found));
  }
  CHECK(log.count("x") == 0);
}

/// What a far caller and the owner's own host are told.
void check_refused(mesh& net, std::size_t from, error_kind wanted, bool marked) {
  auto send = net.host(from).spots().send_to_spot("c", note{"x"});
  auto request = net.host(from).spots().request_to_spot("c", ask{"x"});
  if (marked) {
    send.instance_spot("probe");
    request.instance_spot("probe");
  }
  CHECK(failure(net, send.submit()) == wanted);
  CHECK(failure(net, request.submit<answer>()) == wanted);
}

TEST_CASE("M-64 another kind or type under the id is a type_mismatch, also for a room") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(net.host(0).spots().get_or_create("c", "room").submit());
  for (std::size_t from : {0, 1})
    check_refused(net, from, error_kind::type_mismatch, true);
  CHECK(log.count("x") == 0);
}

TEST_CASE("M-64 an owner that is gone is unavailable, with and without intent, until it is known to be over") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "c", "alive"));
  net.host(1).mesh("m").placement_weight(100);
  net.kill(0);
  net.advance(10ms);
  check_refused(net, 1, error_kind::unavailable, false);
  check_refused(net, 1, error_kind::unavailable, true);
  net.advance(16s); // its lease is over, its row is not
  check_refused(net, 1, error_kind::unavailable, true);
  CHECK(log.count("x") == 0);
}

TEST_CASE("M-64 a store that cannot be read is unavailable on a miss; a known route still works") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(0), "known", "alive"));
  net.run(ask_at(net.host(0), "c", "alive"));
  net.run(ask_at(net.host(1), "known", "route"));
  net.cut_store(1);
  check_refused(net, 1, error_kind::unavailable, false);
  check_refused(net, 1, error_kind::unavailable, true);
  CHECK(net.run(net.host(1).spots().request_to_spot("known", ask{"y"}).submit<answer>()).text == "y!");
}

TEST_CASE("M-64 a Spot under creation is not addressed without intent; with intent the message waits for it") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  bool hold = false;
  net.faults(0).set_rule([&hold](const testing::store_call& call) {
    return hold && call.what == store_operation::write ? store_fault::hold_call : store_fault::none;
  });
  auto first = ask_at(net.host(0), "c", "first");
  net.run_until([&] { return net.host(0).runtime().objects.find("c") != nullptr; });
  hold = true;
  check_refused(net, 0, error_kind::not_found, false);
  auto second = ask_at(net.host(0), "c", "second");
  CHECK_FALSE(second.ready());
  hold = false;
  net.faults(0).release_all();
  net.run(std::move(first));
  net.run(std::move(second));
  CHECK(log.runs == std::vector<std::string>{"first", "second"});
}

/// Its end waits for the test.
template <class Base>
class lingering : public Base {
public:
  using context_type = std::remove_cvref_t<decltype(std::declval<Base>().context())>;
  lingering(context_type context, evidence& log) : Base(std::move(context)), log_(log) { ++log_.incarnations; }
  void configure() override {
    this->context().handlers().template add_packet<&lingering::on_ask>().template add_packet<&lingering::on_note>();
  }
  task<void> on_closing(const spot_closing_context&, std::stop_token) override {
    log_.runs.push_back("closing");
    auto waiting = log_.gate.wait();
    co_await std::move(waiting);
    log_.runs.push_back("closed");
  }

private:
  task<answer> on_ask(const ask& m, const message_context&) {
    log_.runs.push_back(m.text);
    if (m.text == "close")
      co_await this->context().close();
    co_return answer{m.text + "!"};
  }
  void on_note(const note& m, const message_context&) { log_.runs.push_back(m.text); }

  evidence& log_;
};

template <class Base>
auto lingering_at(evidence& log) {
  return [&log](auto& factory) {
    using spot_type = lingering<Base>;
    factory.disable_relocation().construct_with([&log](typename spot_type::context_type context) {
      return std::make_unique<spot_type>(std::move(context), log);
    });
  };
}

void serve_lingering(host& started, std::size_t index, evidence& log) {
  auto& node = started.add_mesh("m");
  auto server = node.object_server();
  server.add_instance_spot_factory<lingering<instance_spot>>("lingering", lingering_at<instance_spot>(log));
  server.add_spot_factory<lingering<spot<>>>("room", lingering_at<spot<>>(log));
  if (index != 0)
    node.placement_weight(0);
}

TEST_CASE("M-64 C-117 behind a closing seal: not_found without intent, with intent held for the next incarnation") {
  for (std::size_t from : {0, 1}) {
    evidence log;
    mesh net{2};
    net.start([&log](host& started, std::size_t index) { serve_lingering(started, index, log); });
    const auto spots = net.host(from).spots();
    CHECK(net.run(spots.request_to_spot("c", ask{"close"}).instance_spot("lingering").submit<answer>()).text == "close!");
    net.run_until([&] { return log.gate.waiting() == 1; });
    check_refused(net, from, error_kind::not_found, false);
    auto send = spots.send_to_spot("c", note{"held send"}).instance_spot("lingering").submit();
    auto request = spots.request_to_spot("c", ask{"held request"}).instance_spot("lingering").submit<answer>();
    net.run_until_idle();
    CHECK_FALSE(request.ready());
    log.gate.open();
    CHECK(net.run(std::move(request)).text == "held request!");
    net.run(std::move(send));
    CHECK(log.runs == std::vector<std::string>{"close", "closing", "closed", "held send", "held request"});
    CHECK(log.incarnations == 2);
  }
}

TEST_CASE("M-2 M-4 C-117 a send that is held for the next incarnation is admitted, however long on_closing takes") {
  for (std::size_t from : {0, 1}) {
    CAPTURE(from);
    evidence log;
    mesh net{2};
    net.start([&log](host& started, std::size_t index) { serve_lingering(started, index, log); });
    const auto spots = net.host(from).spots();
    CHECK(net.run(spots.request_to_spot("c", ask{"close"}).instance_spot("lingering").submit<answer>()).text == "close!");
    net.run_until([&] { return log.gate.waiting() == 1; });
    const auto before = net.elapsed();
    net.run(spots.send_to_spot("c", note{"held send"}).instance_spot("lingering").submit());
    CHECK(net.elapsed() == before);
    net.advance(5s); // longer than the send timeout
    log.gate.open();
    net.run_until_idle();
    CHECK(log.runs == std::vector<std::string>{"close", "closing", "closed", "held send"});
  }
}

TEST_CASE("M-64 C-117 a User Spot behind its seal is not_found") {
  evidence log;
  mesh net{2};
  net.start([&log](host& started, std::size_t index) { serve_lingering(started, index, log); });
  const auto made = net.run(net.host(0).spots().get_or_create("c", "room").submit());
  CHECK(net.run(net.host(1).spots().request_to_spot("c", ask{"alive"}).submit<answer>()).text == "alive!");
  auto closed = net.host(0).spots().close(made.spot);
  net.run_until([&] { return log.gate.waiting() == 1; });
  for (std::size_t from : {0, 1}) {
    const auto spots = net.host(from).spots();
    CHECK(failure(net, spots.request_to_spot("c", ask{"x"}).submit<answer>()) == error_kind::not_found);
    CHECK(failure(net, spots.request_to_spot("c", ask{"x"}).submit<answer>()) == error_kind::not_found);
  }
  log.gate.open();
  CHECK(net.run(std::move(closed)));
  CHECK(log.count("x") == 0);
}

TEST_CASE("M-64 M-143 an owner that drains takes nothing new: shutting_down, while what it had runs to its end") {
  evidence log;
  mesh net{2};
  start_probes(net, log);
  net.run(ask_at(net.host(1), "c", "alive"));
  auto held = net.host(1).spots().request_to_spot("c", held_ask{"held"}).submit<answer>();
  net.run_until([&] { return log.gate.waiting() == 1; });
  auto ending = net.host(0).shutdown();
  net.run_until([&] { return net.host(0).status().state == host_state::draining; });
  for (std::size_t from : {0, 1})
    CHECK(failure(net, net.host(from).spots().request_to_spot("c", ask{"x"}).submit<answer>())
          == error_kind::shutting_down);
  net.run(net.host(1).spots().send_to_spot("c", note{"x"}).submit()); // admitted here, dropped there
  CHECK(failure(net, net.host(0).spots().send_to_spot("c", note{"x"}).submit()) == error_kind::shutting_down);
  log.gate.open();
  CHECK(net.run(std::move(held)).text == "held!");
  net.run(std::move(ending));
  CHECK(log.count("x") == 0);
}

} // namespace
} // namespace zlink::test::messaging
