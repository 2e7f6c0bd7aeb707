// The end of a Spot: close and idle eviction.
#include "tests/contract/creation/scripted_spots.hpp"

#include <algorithm>

namespace creation_test {

using trace = std::vector<std::string>;

zlink::task<void> close_self(const zlink::common_spot_context& context, stage& on) {
  const bool closed = co_await static_cast<const zlink::instance_spot_context&>(context).close();
  on.happened(closed ? "closed" : "not closed", context.spot_id());
}
/// A cell that is told "close" closes itself.
void close_on_demand(stage& on) {
  on.handler = [&on](const zlink::common_spot_context& context, const std::string& word) {
    return word == "close" ? close_self(context, on) : zlink::task<void>::done();
  };
}

TEST_CASE("C-113 C-112 close acts on the incarnation of the ref and on User Spots only") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    add_hall(host.mesh("m").object_server(), on);
  });
  for (std::size_t host = 0; host < 2; ++host) { // the owner's host, and the other one
    auto spots = net.host(host).spots();
    const auto old = net.run(open_room(net.host(0), "a")).spot;
    CHECK(net.run(spots.close(old)));
    CHECK_FALSE(net.run(spots.close(old)));
    const auto fresh = net.run(open_room(net.host(0), "a")).spot;
    CHECK(fresh.object_generation > old.object_generation);
    CHECK(failure(net, spots.close(old)) == error_kind::invalid_operation);
    CHECK(net.run(ask(net.host(1), "a", "alive")).generation == fresh.object_generation);
    CHECK(net.run(spots.close(fresh)));

    net.run(rouse(net.host(0), "i", "x"));
    const auto instance = *net.run(spots.find("i"));
    CHECK(failure(net, spots.close(instance)) == error_kind::invalid_operation);
    const zlink::spot_ref entry{net.host(0).mesh("m").entry_spot_id(), 1, "m", net.host(0).mesh("m").rid()};
    CHECK(failure(net, spots.close(entry)) == error_kind::invalid_operation);
  }
  CHECK(on.count("closing i") == 0);
  CHECK(on.count("closing a explicit_close") == 4);
}

TEST_CASE("C-115 what was accepted ends first, then on_closing, then the row goes") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  const auto ref = net.run(open_room(net.host(0), "a")).spot;
  barrier end;
  on.hold("handle", end);
  std::vector<zlink::task<told>> accepted;
  for (int i = 0; i < 10; ++i)
    accepted.push_back(ask(net.host(0), "a", std::to_string(i)));
  net.run_until([&] { return end.waiting() == 1; });
  auto close = net.host(0).spots().close(ref);
  net.advance(100ms);
  CHECK(row_of(net, "a"));
  CHECK(on.count("closing") == 0);
  bool row_there = false;
  on.closing = [&](const zlink::spot_closing_context&, std::stop_token) { row_there = row_of(net, "a").has_value(); };
  end.open();
  CHECK(net.run(std::move(close)));
  for (auto& one : accepted)
    net.run(std::move(one));
  CHECK(on.count("handle") == 10);
  CHECK(on.trace.back() == "closing a explicit_close");
  CHECK(row_there);
  CHECK_FALSE(row_of(net, "a"));
  CHECK(on.alive == 0);
}

TEST_CASE("C-115 a handler that awaits the close of its own Spot ends, then comes on_closing") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  close_on_demand(on);
  net.run(rouse(net.host(0), "a", "close"));
  net.advance(1s); // the removal of the row may meet the retirement of the first message, and is tried again
  CHECK(on.trace == trace{"factory a", "configure a", "initialize a", "handle a close", "closed a", "closing a explicit_close"});
  CHECK_FALSE(row_of(net, "a"));
  CHECK(on.alive == 0);
}

TEST_CASE("C-115 an on_closing that throws frees the id all the same") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  const auto ref = net.run(open_room(net.host(0), "a")).spot;
  on.at = [](const std::string& step, const std::string&) {
    if (step == "closing")
      throw std::runtime_error{"not today"};
  };
  CHECK(net.run(net.host(0).spots().close(ref)));
  CHECK_FALSE(row_of(net, "a"));
  CHECK(on.count("closing") == 1);
  CHECK(net.run(open_room(net.host(0), "a")).state == zlink::spot_create_state::created);
}

TEST_CASE("C-116 on_closing knows reason and deadline, and its token is requested when that has passed") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").request_timeout(20s);
  });
  const auto ref = net.run(open_room(net.host(0), "a")).spot;
  barrier end;
  on.hold("closing", end);
  std::stop_token token;
  bool requested_at_entry = true;
  std::chrono::system_clock::duration left{};
  const auto opened = net.elapsed();
  on.closing = [&](const zlink::spot_closing_context& why, std::stop_token cleanup) {
    requested_at_entry = cleanup.stop_requested();
    token = cleanup;
    left = why.deadline.time_since_epoch();
    CHECK(why.reason == zlink::spot_close_reason::explicit_close);
  };
  auto close = net.host(0).spots().close(ref);
  net.run_until([&] { return end.waiting() == 1; });
  CHECK_FALSE(requested_at_entry);
  // The fixture's calendar: 1,700,000,000 s, and the hour with which its clock begins.
  const auto expected = 1'700'003'600s + opened + 20s;
  CHECK(left >= expected - 1ms);
  CHECK(left <= expected + 100ms);
  net.advance(19s);
  CHECK_FALSE(token.stop_requested());
  net.advance(2s);
  CHECK(token.stop_requested());
  end.open();
  CHECK(net.run(zlink::as_result(std::move(close))).has_value() == false); // its caller waited for 20 s
  net.run_until_idle();
  CHECK_FALSE(row_of(net, "a"));
}

TEST_CASE("C-117 behind the seal: not found without intent, a new incarnation on the same node with it") {
  stage on;
  barrier first;
  barrier closing;
  mesh net{2};
  net.start(serve(on));
  close_on_demand(on);
  const auto old = net.run(rouse(net.host(0), "a", "0"));
  const auto owner = net.owner_of("a");
  on.trace.clear();
  on.during = [&](const std::string& step, const std::string&) {
    return step == "handle" ? first.passed() : step == "closing" ? closing.passed() : zlink::task<void>::done();
  };
  std::vector<zlink::task<told>> before;
  for (const char* word : {"close", "1", "2"})
    before.push_back(ask(net.host(owner), "a", word));
  net.run_until([&] { return first.waiting() == 1; });
  first.open();
  net.run_until([&] { return closing.waiting() == 1; });
  CHECK(failure(net, ask(net.host(owner), "a", "plain")) == error_kind::not_found);
  CHECK(failure(net, ask(net.host(1 - owner), "a", "plain")) == error_kind::not_found);
  std::vector<zlink::task<told>> after;
  for (const char* word : {"3", "4", "5"})
    after.push_back(rouse(net.host(owner), "a", word));
  auto remote = rouse(net.host(1 - owner), "a", "far");
  net.advance(100ms);
  CHECK(on.count("factory") == 0);
  closing.open();
  for (auto& one : before)
    CHECK(net.run(std::move(one)).generation == old.generation);
  const auto fresh = net.run(std::move(after[0]));
  CHECK(fresh.generation > old.generation);
  CHECK(fresh.rid == old.rid);
  CHECK(net.run(std::move(after[1])).generation == fresh.generation);
  CHECK(net.run(std::move(after[2])).generation == fresh.generation);
  CHECK(net.run(std::move(remote)).generation == fresh.generation);
  CHECK(on.count("factory") == 1);
  const auto at = [&](const std::string& what) { return std::find(on.trace.begin(), on.trace.end(), what); };
  CHECK(at("closing a explicit_close") < at("factory a"));
  CHECK(at("handle a 2") < at("closing a explicit_close"));
  CHECK(at("handle a 3") < at("handle a 4"));
  CHECK(at("handle a 4") < at("handle a 5"));
}

TEST_CASE("C-118 C-75 a close at another node is asked again when links are lost, and happens once") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    stage on;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 10ms}};
    INFO("seed ", net.seed());
    net.start(serve_beside_client(on));
    const auto ref = net.run(open_room(net.host(0), "a")).spot;
    barrier end;
    on.hold("closing", end);
    auto close = net.host(0).spots().close(ref);
    net.run_until([&] { return end.waiting() == 1; });
    net.lose_links(0, 1);
    net.advance(2s);
    end.open();
    CHECK(net.run(std::move(close)));
    CHECK(on.count("closing") == 1);
    CHECK_FALSE(row_of(net, "a"));
  }
}

TEST_CASE("C-57 messages by id reach whatever incarnation is there") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const auto ref = net.run(open_room(net.host(0), "a")).spot;
    CHECK(ref.object_generation > last);
    last = ref.object_generation;
    CHECK(net.run(ask(net.host(0), "a", "x")).generation == last);
    CHECK(net.run(net.host(0).spots().close(ref)));
  }
}

auto serve_idle(stage& on, std::chrono::milliseconds timeout) {
  return [&on, timeout](zlink::host& host) {
    serve(on)(host);
    host.mesh("m").instance_spot_idle_timeout(timeout);
    add_hall(host.mesh("m").object_server(), on);
  };
}

TEST_CASE("C-107 C-110 C-111 an idle Instance Spot is evicted, others never, and the next call finds a blank one") {
  stage on;
  mesh net{1};
  net.start(serve_idle(on, 10s));
  net.run(open_room(net.host(0), "u"));
  const auto old = net.run(rouse(net.host(0), "a", "1"));
  net.advance(9s);
  net.run(ask(net.host(0), "a", "2"));
  net.advance(9s);
  CHECK(on.count("closing") == 0);
  net.advance(4s);
  CHECK(on.trace.back() == "closing a idle_evicted");
  CHECK_FALSE(row_of(net, "a"));
  CHECK(failure(net, ask(net.host(0), "a", "x")) == error_kind::not_found);
  CHECK(net.run(rouse(net.host(0), "a", "3")).generation > old.generation);

  barrier end; // a handler that waits is work
  on.hold("handle", end);
  auto busy = rouse(net.host(0), "a", "4", 2min);
  net.advance(60s);
  CHECK(on.count("closing") == 1);
  end.open();
  net.run(std::move(busy));
  net.advance(60s);
  CHECK(on.count("closing a") == 2);
  CHECK(on.count("closing u") == 0);
  CHECK(on.count("closing") == 2);
}

TEST_CASE("C-107 without an idle timeout, or with one beyond all time, nothing is evicted") {
  stage on;
  mesh net{1};
  SUBCASE("without") { net.start(serve(on)); }
  SUBCASE("beyond all time") { net.start(serve_idle(on, std::chrono::milliseconds::max())); }
  net.run(rouse(net.host(0), "a", "1"));
  net.advance(30min);
  CHECK(on.count("closing") == 0);
}

TEST_CASE("C-109 an eviction keeps the row until on_closing has ended, and merges with a close") {
  stage on;
  barrier end;
  mesh net{1};
  net.start(serve_idle(on, 10s));
  net.run(rouse(net.host(0), "a", "1"));
  on.hold("closing", end);
  net.advance(15s);
  REQUIRE(end.waiting() == 1);
  CHECK(row_of(net, "a"));
  CHECK(failure(net, ask(net.host(0), "a", "x")) == error_kind::not_found);
  CHECK(on.count("handle") == 1);
  end.open();
  net.run_until_idle();
  CHECK_FALSE(row_of(net, "a"));
  CHECK(spots_on(net, 0) == zlink::placement::slot_bucket{});
  CHECK(on.count("closing") == 1);
}

TEST_CASE("C-111 a call that meets an eviction is handled once, by the new incarnation or before it") {
  int reborn = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    stage on;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 3ms, .max_store_delay = 3ms}};
    INFO("seed ", net.seed());
    net.start(serve_idle(on, 1s));
    net.run(rouse(net.host(0), "a", "1"));
    net.advance(1s - 5ms + std::chrono::milliseconds{seed * 3 % 300});
    for (std::size_t host = 0; host < 2; ++host)
      CHECK(net.run(rouse(net.host(host), "a", "late " + std::to_string(host))).word.starts_with("late"));
    CHECK(on.count("handle") == 3);
    reborn += on.count("factory a") - 1;
  }
  CHECK(reborn > 0);
}

} // namespace creation_test
