// What members of a Spot and the Spot have to do with each other, and what fails halfway (02 sections 1, 2, 5; 05).
#include "tests/contract/membership/people.hpp"

#include <type_traits>

namespace membership_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE("X-3 J-8 X-85 messages to an Actor pass no queue of its Spot") {
  stage on;
  mesh net{{.hosts = 1, .adjust = [](std::size_t, zlink::host_options& options) { options.application_lane_records = 2; }}};
  net.start(serve_all(on, {.per_actor = true}));
  net.run(make_person(net.host(0), "ada"));
  net.run(make_person(net.host(0), "bob"));
  open_room(net, "r");
  move_person(net, on, "ada", "r");
  move_person(net, on, "bob", "r");
  barrier never;
  on.hold("list", never);
  std::vector<zlink::task<said>> asked;
  for (int i = 0; i < 6; ++i) // the room is full of them
    asked.push_back(net.host(0).spots().request_to_spot("r", say{"wait"}).timeout(30s).submit<said>());
  net.run_until([&] { return never.waiting() == 1; });
  CHECK(net.run(talk(net.host(0), "ada", "x")).spot == "r");
  barrier full;
  on.hold("handle ada held", full);
  auto held = talk(net.host(0), "ada", "held");
  net.run_until([&] { return full.waiting() == 1; });
  std::vector<zlink::task<said>> more;
  for (int i = 0; i < 6; ++i)
    more.push_back(talk(net.host(0), "ada", "more", 30s));
  CHECK(net.run(talk(net.host(0), "bob", "beside a full one")).word == "beside a full one");
  on.during = nullptr;
  full.open();
  never.open();
  for (auto& one : more)
    net.run(std::move(one));
  for (auto& one : asked)
    static_cast<void>(net.run(zlink::as_result(std::move(one))));
}

TEST_CASE("X-18 J-41 callbacks about members run in turns of the Spot, one at a time, never beside its packets") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  for (const auto* id : {"ada", "bob", "cyd"})
    net.run(make_person(net.host(0), id));
  open_room(net, "r");
  int inside = 0;
  int most = 0;
  barrier open;
  on.during = [&](std::string now) -> zlink::task<void> {
    if (!now.starts_with("gate") && !now.starts_with("joined r") && !now.starts_with("left r") && !now.starts_with("list"))
      co_return;
    most = std::max(most, ++inside);
    auto passing = open.passed();
    co_await std::move(passing);
    --inside;
  };
  for (const auto* id : {"ada", "bob", "cyd"})
    net.run(send_off(net.host(0), id, "r"));
  auto asked = net.host(0).spots().request_to_spot("r", say{"wait"}).timeout(30s).submit<said>();
  net.run_until([&] { return open.waiting() == 1; });
  net.advance(100ms);
  CHECK(inside == 1);
  open.open();
  net.run(std::move(asked));
  net.run_until([&] { return on.ends.size() == 3; });
  CHECK(most == 1);
}

TEST_CASE("X-46 X-45 X-38 a yielding member keeps its own next message back, and nobody else's") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  net.run(make_person(net.host(0), "bob"));
  open_room(net, "r");
  open_room(net, "s");
  move_person(net, on, "ada", "r");
  move_person(net, on, "bob", "r");
  on.trace.clear();
  barrier open;
  on.during = [&](const std::string& now) { return now.starts_with("list") ? open.passed() : zlink::task<void>::done(); };
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    if (word != "job1")
      co_return;
    auto asking = who.context().outbound().request_to_spot("s", say{"wait"}).timeout(20s).yield<said>();
    co_await std::move(asking);
    on.trace.push_back("job1 resumes");
  };
  auto one = talk(net.host(0), "ada", "job1", 30s);
  auto two = talk(net.host(0), "ada", "job2", 30s);
  net.run_until([&] { return open.waiting() == 1; });
  CHECK(net.run(talk(net.host(0), "bob", "meanwhile")).word == "meanwhile");
  CHECK(on.count("handle ada job2") == 0);
  open.open();
  net.run(std::move(one));
  net.run(std::move(two));
  words seen;
  for (const auto& entry : on.trace)
    if (!entry.starts_with("list"))
      seen.push_back(entry);
  CHECK(seen == words{"handle ada job1 in r", "handle bob meanwhile in r", "job1 resumes", "handle ada job2 in r"});
}

TEST_CASE("X-48 X-49 a submit that would wait for the gate its caller holds is refused, all four ways") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  net.run(make_person(net.host(0), "bob"));
  open_room(net, "r");
  move_person(net, on, "ada", "r");
  move_person(net, on, "bob", "r");
  std::vector<std::string> kinds;
  const auto kind_of = [](const auto& end) { return end.has_value() ? std::string{"fine"} : zlink::to_string(end.error().kind()); };
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    if (word != "try")
      co_return;
    auto member = zlink::as_result(who.context().outbound().request_to_actor("bob", say{"x"}).submit<said>());
    const auto to_member = co_await std::move(member);
    kinds.push_back(kind_of(to_member));
    auto room = zlink::as_result(who.context().outbound().request_to_spot("r", say{"list"}).submit<said>());
    const auto to_room = co_await std::move(room);
    kinds.push_back(kind_of(to_room));
    auto yielding = zlink::as_result(who.context().outbound().request_to_actor("bob", say{"x"}).yield<said>());
    const auto by_yield = co_await std::move(yielding);
    kinds.push_back(kind_of(by_yield));
  };
  net.run(talk(net.host(0), "ada", "try"));
  CHECK(kinds == words{"invalid_operation", "invalid_operation", "fine"});
  kinds.clear();
  on.in_room = [&](const zlink::spot_context& context) -> zlink::task<void> {
    auto member = zlink::as_result(context.outbound().request_to_actor("ada", say{"x"}).submit<said>());
    const auto to_member = co_await std::move(member);
    kinds.push_back(kind_of(to_member));
    auto own = zlink::as_result(context.outbound().request_to_spot("r", say{"list"}).submit<said>());
    const auto to_itself = co_await std::move(own);
    kinds.push_back(kind_of(to_itself));
  };
  net.run(net.host(0).spots().request_to_spot("r", say{"do"}).submit<said>());
  CHECK(kinds == words{"invalid_operation", "invalid_operation"});
}

TEST_CASE("J-19 an instance with a foreign context is not made Ready") {
  stage on;
  mesh net{1};
  std::optional<zlink::actor_context> other;
  net.start([&](zlink::host& host) {
    auto& node = host.add_mesh("m");
    serve(node, on);
    node.object_server().add_actor_factory<person>("thief", [&](auto& factory) {
      factory.disable_relocation().construct_with([&](zlink::actor_context context) {
        if (!other) {
          other.emplace(std::move(context));
          return std::unique_ptr<person>{};
        }
        return std::make_unique<person>(std::move(*other), on);
      });
    });
  });
  for (int i = 0; i < 2; ++i)
    CHECK(failure(net, net.host(0).actors().create("ada", "thief").submit()) == error_kind::internal_failure);
  CHECK_FALSE(net.run(net.host(0).actors().find("ada")));
  CHECK(on.count("create") == 0);
  CHECK(people_on(net, 0) == zlink::placement::slot_bucket{});
  other.reset();
}

TEST_CASE("J-54 what is registered is what was said then") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
    ticket request{"original"};
    auto call = who.context().join_spot("r", request);
    request.word = "changed before";
    call.defer();
    request.word = "changed after";
    co_return;
  };
  net.run(talk(net.host(0), "ada", "x"));
  net.run_until([&] { return on.ends.size() == 1; });
  CHECK(on.count("gate r ada original") == 1);
}

TEST_CASE("J-118 J-150 a gate that was not asked in time is not asked later, and expects nobody") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  const auto room = open_room(net, "r");
  barrier open;
  on.hold("list", open);
  auto asked = net.host(0).spots().request_to_spot("r", say{"wait"}).timeout(30s).submit<said>();
  net.run_until([&] { return open.waiting() == 1; });
  move_person(net, on, "ada", "r"); // behind the room's own handler
  REQUIRE(on.ends[0].error);
  CHECK(on.ends[0].error->kind() == error_kind::deadline_exceeded);
  open.open();
  net.run(std::move(asked));
  net.run_until_idle();
  CHECK(on.count("gate") == 0);
  CHECK(net.run(net.host(0).spots().close(room)));
}

TEST_CASE("J-67 a node that dies between defer and commit leaves the old membership, and nobody goes on") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  const auto before = *person_row(net, "ada");
  barrier never;
  on.hold("gate", never);
  net.run(send_off(net.host(0), "ada", "r"));
  net.run_until([&] { return never.waiting() == 1; });
  net.kill(1);
  net.restart(1);
  net.advance(3min);
  CHECK(*person_row(net, "ada") == before);
  CHECK(on.ends.empty());
  CHECK(failure(net, talk(net.host(0), "ada", "x", 2s)) == error_kind::unavailable);
  never.open();
}

TEST_CASE("J-166 J-61 an Actor that changes its Spot is not ended, sent home or sent elsewhere meanwhile") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  const auto made = net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  barrier open;
  on.hold("gate", open);
  net.run(send_off(net.host(0), "ada", "r"));
  net.run_until([&] { return open.waiting() == 1; });
  CHECK(failure(net, net.host(0).actors().destroy(made.actor)) == error_kind::unavailable);
  open.open();
  net.run_until([&] { return on.ends.size() == 1; });
  CHECK(on.ends[0].outcome == join_outcome::accepted);
  CHECK(net.run(talk(net.host(0), "ada", "x")).spot == "r");
}

TEST_CASE("J-6 a change of membership fails, or looks again, when the row has changed under it") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  const auto key = zlink::placement::actor_key("ada");
  bool bumped = false;
  net.faults(0).set_rule([&](const store_call& call) {
    if (!bumped && call.what == store_operation::write && call.touches(key)) {
      bumped = true; // the same row, another version
      const auto seen = stored<zlink::placement::object_record>(net, key);
      creation_test::put(net, key, zlink::placement::encode(*seen.record));
    }
    return store_fault::none;
  });
  move_person(net, on, "ada", "r");
  CHECK(bumped);
  CHECK(on.ends[0].outcome == join_outcome::accepted);
  CHECK(person_row(net, "ada")->member_of->spot_id == "r");
  CHECK(on.count("joined r ada") == 1);
}

TEST_CASE("J-180 J-181 what happens to Actors is told apart, and ends once") {
  stage on;
  std::vector<std::string> told;
  mesh net{{.hosts = 1, .adjust = [&](std::size_t, zlink::host_options& options) {
              options.on_trace = [&](const zlink::trace_record& record) {
                if (!record.actor_id.empty()) {
                  CHECK(record.category == zlink::trace_category::actor_relocation);
                  CHECK(record.actor_type == "person");
                  told.push_back(std::string{record.event} + ' ' + std::string{record.actor_id}
                                 + (record.reason.empty() ? "" : ' ' + std::string{record.reason}));
                }
              };
            }}};
  net.start(serve_all(on));
  const auto made = net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  move_person(net, on, "ada", "r");
  move_person(net, on, "ada", "nowhere");
  on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
    auto leaving = on.leave(who);
    co_await std::move(leaving);
  };
  net.run(talk(net.host(0), "ada", "x"));
  net.run_until_idle();
  CHECK(net.run(net.host(0).actors().destroy(made.actor)));
  on.birth = [](const std::string&) { return zlink::reject(); };
  net.run(make_person(net.host(0), "bob"));
  CHECK(told == words{"created ada", "joined ada accepted", "joined ada failed", "left ada", "destroyed ada", "rejected bob"});
}

template <class TSpot>
concept has_gate = requires(TSpot& s) { &TSpot::on_actor_join; };
template <class TSpot>
concept has_birth = requires(TSpot& s) { &TSpot::on_create_actor; };
template <class TSpot>
concept has_members = requires(TSpot& s) { &TSpot::on_joined_actor; };

TEST_CASE("J-40 J-182 J-76 C-135 C-144 which callbacks there are, and their shapes") {
  using typed = zlink::spot<person>;
  using typed_hall = zlink::entry_spot<person>;
  static_assert(has_gate<typed> && !has_gate<typed_hall> && !has_gate<zlink::spot<>> && !has_gate<zlink::instance_spot>);
  static_assert(!has_birth<typed> && has_birth<typed_hall> && !has_birth<zlink::entry_spot<>>);
  static_assert(has_members<typed> && has_members<typed_hall> && !has_members<zlink::spot<>> && !has_members<zlink::instance_spot>);
  static_assert(std::is_abstract_v<typed> && std::is_abstract_v<typed_hall>); // joined and leave are required
  static_assert(!std::is_abstract_v<room>); // on_disconnect_actor is not
  static_assert(std::is_same_v<decltype(&typed::on_actor_join),
                               zlink::task<zlink::actor_join_response> (typed::*)(std::string, const zlink::message&)>);
  static_assert(std::is_same_v<decltype(&typed::on_joined_actor), zlink::task<void> (typed::*)(person&)>);
  CHECK(static_cast<int>(zlink::spot_close_reason::explicit_close) == 0);
  CHECK(static_cast<int>(zlink::spot_close_reason::host_shutdown) == 1);
  CHECK(static_cast<int>(zlink::spot_close_reason::relocation_out) == 2);
  CHECK(static_cast<int>(zlink::spot_close_reason::idle_evicted) == 3);
}

} // namespace
} // namespace membership_test
