// Joins, leaves, and what stands between them (05 sections 3 to 8 and 11 to 14).
#include "tests/contract/membership/join_scene.hpp"

namespace membership_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE("J-80 J-1 J-4 J-5 J-45 J-74 J-110 J-111 J-114 X-158 a Join on one node: gate, commit, joined, left, completion, messages") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  const auto before = *person_row(net, "ada");
  const auto was = net.run(talk(net.host(0), "ada", "before"));
  on.trace.clear();
  on.gate = [](const std::string& word) { return zlink::accept(ticket{"seat for " + word}); };
  net.run(send_off(net.host(0), "ada", "r", "ada"));
  const auto after = net.run(talk(net.host(0), "ada", "after")); // waits behind the Join
  net.run_until_idle();
  const words expected{"go ada", "gate r ada ada", "joined r ada", "completed ada accepted seat for ada", "handle ada after in r"};
  words seen;
  for (const auto& one : on.trace)
    if (one != "left hall ada")
      seen.push_back(one);
  for (std::size_t i = 0; i < std::max(seen.size(), expected.size()); ++i)
    CHECK((i < seen.size() ? seen[i] : "") == (i < expected.size() ? expected[i] : ""));
  CHECK(on.count("left hall ada") == 1);
  CHECK(after.spot == "r");
  CHECK(after.instance == was.instance);
  CHECK(after.generation == was.generation);
  const auto row = *person_row(net, "ada");
  CHECK(row.generation == before.generation);
  CHECK(row.authority == before.authority);
  REQUIRE(row.member_of);
  CHECK(row.member_of->spot_id == "r");
  CHECK(row.member_of->spot_generation.value == s.room.object_generation);
  const auto at = net.run(net.host(0).actors().find_spot("ada"));
  REQUIRE(at);
  CHECK(*at == s.room);
  CHECK(names_in(net, "r") == "ada ");
  REQUIRE(on.ends.size() == 1);
  CHECK(on.ends[0].actor == s.ada.actor);
  CHECK_FALSE(on.ends[0].operation_id.empty());
  CHECK(people_on(net, 0) == zlink::placement::slot_bucket{1, 0}); // J-173
}

TEST_CASE("J-81 J-130 home again by a Join or by leave: no gate, joined of the hall, left of the room") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  move_person(net, on, "ada", "r");
  on.trace.clear();
  move_person(net, on, "ada", "");
  CHECK(on.count("gate") == 0);
  CHECK(on.count("create") == 0);
  CHECK(on.count("joined hall ada") == 1);
  CHECK(on.count("left r ada") == 1);
  CHECK_FALSE(on.ends.back().reply);
  CHECK_FALSE(net.run(net.host(0).actors().find_spot("ada")));
  CHECK(names_in(net, "r").empty());
  CHECK(net.run(talk(net.host(0), "ada", "x")).spot == net.host(0).mesh("m").entry_spot_id());
}

TEST_CASE("J-82 J-112 J-119 a declined Join changes nothing, and its answer comes to the Actor") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  on.gate = [](const std::string&) { return zlink::reject(ticket{"full"}); };
  const auto version = person_version(net, "ada");
  net.run(send_off(net.host(0), "ada", "r"));
  const auto heard = net.run(talk(net.host(0), "ada", "behind"));
  CHECK(heard.spot == net.host(0).mesh("m").entry_spot_id());
  CHECK(on.trace == words{"go ada", "gate r ada", "completed ada rejected full", "handle ada behind in hall"});
  CHECK(person_version(net, "ada") == version);
  CHECK(names_in(net, "r").empty());
}

TEST_CASE("J-83 J-71 J-72 J-117 what makes a Join fail, and with which kind") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto& node = host.add_mesh("m");
    serve(node, on);
    struct quiet_spot final : zlink::spot<> {
      using spot::spot;
    };
    struct sleeper final : zlink::instance_spot {
      using instance_spot::instance_spot;
      void configure() override { context().handlers().add_packet<&sleeper::on_say>(); }
      said on_say(const say& m, const zlink::message_context&) { return {m.word, ""}; }
    };
    node.object_server().add_spot_factory<quiet_spot>("quiet", [](auto& factory) { factory.disable_relocation(); });
    node.object_server().add_instance_spot_factory<sleeper>("sleeper", [](auto& factory) { factory.disable_relocation(); });
  });
  net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  net.run(net.host(0).spots().get_or_create("q", "quiet").submit());
  net.run(net.host(0).spots().request_to_spot("s", say{"x"}).instance_spot("sleeper").submit<said>());
  const auto end_of = [&](const std::string& target) {
    move_person(net, on, "ada", target);
    CHECK(on.ends.back().outcome == join_outcome::failed);
    REQUIRE(on.ends.back().error);
    CHECK(net.run(talk(net.host(0), "ada", "still here")).spot == net.host(0).mesh("m").entry_spot_id());
    return on.ends.back().error->kind();
  };
  CHECK(end_of("nobody") == error_kind::not_found);
  CHECK(end_of("q") == error_kind::type_mismatch);
  CHECK(end_of("s") == error_kind::type_mismatch);
  on.at = [](const std::string& step) {
    if (step.starts_with("gate"))
      throw std::runtime_error{"a fault of the gate"};
  };
  CHECK(end_of("r") == error_kind::internal_failure);
  on.at = nullptr;
  barrier never;
  on.hold("gate", never);
  CHECK(end_of("r") == error_kind::deadline_exceeded);
  on.during = nullptr;
  never.open();
  net.run_until_idle();
  CHECK(names_in(net, "r").empty());
  move_person(net, on, "ada", "r");
  CHECK(on.ends.back().outcome == join_outcome::accepted);
}

TEST_CASE("J-70 a Join to where one is does nothing and is accepted") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  move_person(net, on, "ada", "r");
  const auto version = person_version(net, "ada");
  on.trace.clear();
  move_person(net, on, "ada", "r");
  CHECK(on.trace == words{"go ada", "completed ada accepted"});
  CHECK_FALSE(on.ends.back().reply);
  move_person(net, on, "ada", "");
  const auto home = person_version(net, "ada");
  on.trace.clear();
  move_person(net, on, "ada", "");
  CHECK(on.trace == words{"go ada", "completed ada accepted"});
  CHECK(person_version(net, "ada") == home);
  CHECK(home != version);
}

TEST_CASE("J-75 a Spot of another node is out of reach for Actors that do not move") {
  stage on;
  mesh net{2};
  net.start(serve_all(on));
  const auto made = net.run(make_person(net.host(0), "ada"));
  const std::size_t here = net.host(0).mesh("m").rid() == made.actor.node_rid ? 0 : 1;
  net.host(here).mesh("m").placement_weight(0);
  net.run_until_idle();
  open_room(net, "far");
  move_person(net, on, "ada", "far");
  REQUIRE(on.ends.back().error);
  CHECK(on.ends.back().error->kind() == error_kind::rejected);
  CHECK(on.count("gate") == 0);
  CHECK(net.run(talk(net.host(0), "ada", "x")).word == "x");
}

TEST_CASE("J-84 J-85 J-115 callbacks after the commit: left holds nothing up, joined and completion come again until they end well") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  int joined = 0;
  int completed = 0;
  on.at = [&](const std::string& step) {
    if (step.starts_with("joined") && ++joined <= 2)
      throw std::runtime_error{"not yet"};
    if (step.starts_with("completed") && ++completed <= 2)
      throw std::runtime_error{"not yet"};
    if (step.starts_with("left"))
      throw std::runtime_error{"never"};
  };
  net.run(send_off(net.host(0), "ada", "r"));
  const auto heard = net.run(talk(net.host(0), "ada", "behind"));
  CHECK(heard.spot == "r");
  CHECK(joined == 3);
  CHECK(completed == 3);
  CHECK(on.ends[0].operation_id == on.ends[2].operation_id);
  CHECK(names_in(net, "r") == "ada ");
  CHECK(on.count("left hall") == 1);

  barrier never;
  on.at = nullptr;
  on.hold("left", never);
  move_person(net, on, "ada", "");
  CHECK(net.run(talk(net.host(0), "ada", "on")).word == "on");
  never.open();
}

TEST_CASE("J-50 J-52 J-53 J-58 J-59 J-61 where a Join may be registered, and where not") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  std::vector<std::string> kinds;
  const auto kind_of = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const zlink::operation_failed& failed) {
      return zlink::to_string(failed.kind());
    }
    return "fine";
  };
  std::optional<zlink::join_call> kept;
  zlink::actor* ada = nullptr;
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    ada = &who;
    if (word == "keep") {
      kept.emplace(who.context().join_spot("r"));
    } else if (word == "too late") {
      kinds.push_back(kind_of([&] { kept->defer(); }));
    } else if (word == "twice") {
      auto call = who.context().join_spot("nobody");
      kinds.push_back(kind_of([&] { call.defer(); }));
      kinds.push_back(kind_of([&] { call.defer(); }));
      kinds.push_back(kind_of([&] { who.context().join_entry_spot().defer(); })); // another change is pending
    } else if (word == "after a wait") {
      auto asking = who.context().outbound().request_to_spot("r", say{"list"}).submit<said>();
      co_await std::move(asking);
      kinds.push_back(kind_of([&] { who.context().join_spot("nobody").defer(); }));
    } else if (word == "left behind") {
      auto detached = who.context().outbound().request_to_spot("r", say{"list"}).submit<said>();
      std::move(detached).then([&](zlink::result<said>) { kinds.push_back(kind_of([&] { ada->context().join_spot("r").defer(); })); });
    }
  };
  net.run(talk(net.host(0), "ada", "keep"));
  net.run(talk(net.host(0), "ada", "too late"));
  net.run(talk(net.host(0), "ada", "twice"));
  net.run(talk(net.host(0), "ada", "after a wait"));
  net.run(talk(net.host(0), "ada", "left behind"));
  net.run_until_idle();
  CHECK(kinds == words{"invalid_operation", "fine", "invalid_operation", "unavailable", "fine", "invalid_operation"});
  CHECK(kind_of([&] { ada->context().join_spot("r").defer(); }) == "invalid_operation"); // no handler here
  CHECK(on.ends.size() == 2);
  on.at = [&](const std::string& step) { // a lifecycle callback
    if (step.starts_with("completed"))
      kinds.push_back(kind_of([&] { ada->context().join_spot("r").defer(); }));
  };
  move_person(net, on, "ada", "r");
  CHECK(kinds.back() == "invalid_operation");
}

TEST_CASE("J-55 J-56 J-57 limits of timeouts and requests") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  for (int i = 0; i < 70; ++i)
    net.run(make_person(net.host(0), "p" + std::to_string(i)));
  std::vector<zlink::actor*> people;
  int refused = 0;
  std::string mode;
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    const auto context = [&who]() -> const zlink::actor_context& { return who.context(); };
    if (word == "collect")
      people.push_back(&who);
    if (word == "timeouts") {
      for (const auto bad : {0ms, -1ms, 2'147'483'648ms})
        CHECK_THROWS_AS(context().join_entry_spot().timeout(bad), std::invalid_argument);
      context().join_entry_spot().timeout(2'147'483'647ms);
    }
    if (word == "large") {
      CHECK_THROWS_AS(context().join_spot("r", ticket{std::string((1 << 20) + 1, 'x')}).defer(), std::invalid_argument);
      context().join_spot("r", ticket{std::string((1 << 20) - 100, 'x')}).defer(); // nothing of the refused one is left
    }
    if (word == "many") {
      for (auto* one : people) {
        try {
          one->context().join_entry_spot().defer();
        } catch (const std::invalid_argument&) {
          ++refused;
        }
      }
    }
    co_return;
  };
  net.run(talk(net.host(0), "ada", "timeouts"));
  net.run(talk(net.host(0), "ada", "large"));
  net.run_until([&] { return on.ends.size() == 1; });
  for (int i = 0; i < 70; ++i)
    net.run(talk(net.host(0), "p" + std::to_string(i), "collect"));
  net.run(talk(net.host(0), "ada", "many"));
  net.run_until([&] { return on.ends.size() == 65; });
  CHECK(refused == 6);
}

TEST_CASE("J-62 J-63 J-64 a Join begins when its handler has ended well, and vanishes otherwise") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  barrier open;
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    who.context().join_spot("r").defer();
    on.trace.push_back("deferred");
    co_await open.passed();
    on.trace.push_back("handler ends");
    if (word == "throw")
      throw std::runtime_error{"a fault of the handler"};
  };
  auto asked = talk(net.host(0), "ada", "well");
  net.run_until([&] { return open.waiting() == 1; });
  net.advance(100ms);
  CHECK(on.count("gate") == 0);
  open.open();
  net.run(std::move(asked));
  net.run_until([&] { return on.ends.size() == 1; });
  const auto position = [&](const std::string& what) { return std::ranges::find(on.trace, what) - on.trace.begin(); };
  CHECK(position("deferred") < position("handler ends"));
  CHECK(position("handler ends") < position("gate r ada"));
  move_person(net, on, "ada", "");
  on.trace.clear();
  CHECK(failure(net, talk(net.host(0), "ada", "throw")) == error_kind::internal_failure);
  net.advance(5s);
  CHECK(on.count("gate") == 0);
  CHECK(on.count("completed") == 0);
  on.handler = nullptr;
  CHECK(net.run(talk(net.host(0), "ada", "goes on")).word == "goes on");
}

TEST_CASE("J-66 a handler that has registered a Join must not wait for that Actor") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  net.run(make_person(net.host(0), "bob"));
  std::string end;
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    if (word != "try")
      co_return;
    who.context().join_spot("r").defer();
    auto sending = who.context().outbound().send_to_actor("ada", tell{"to myself"}).submit();
    co_await std::move(sending);
    auto asking = zlink::as_result(who.context().outbound().request_to_actor("ada", say{"x"}).submit<said>());
    const auto asked = co_await std::move(asking);
    end = zlink::to_string(asked.error().kind());
  };
  net.run(talk(net.host(0), "ada", "try"));
  net.run(talk(net.host(0), "ada", "after"));
  CHECK(end == "invalid_operation");
  CHECK(on.count("handle ada to myself in r") == 1);
}

TEST_CASE("J-130 J-131 J-132 a room sends a member home from its own turn") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  move_person(net, on, "ada", "r");
  on.trace.clear();
  std::string where;
  std::string again;
  on.handler = [&](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    if (word != "leave")
      co_return;
    auto leaving = on.leave(who);
    co_await std::move(leaving);
    where = who.context().spot_id();
    auto second = zlink::as_result(on.leave(who));
    const auto ended = co_await std::move(second);
    again = ended.has_value() ? "fine" : zlink::to_string(ended.error().kind());
    on.trace.push_back("handler ends");
  };
  auto asked = talk(net.host(0), "ada", "leave");
  auto behind = talk(net.host(0), "ada", "behind");
  net.run(std::move(asked));
  CHECK(net.run(std::move(behind)).spot == net.host(0).mesh("m").entry_spot_id());
  net.run_until_idle();
  CHECK(where == net.host(0).mesh("m").entry_spot_id());
  CHECK(again == "invalid_operation");
  const auto position = [&](const std::string& what) { return std::ranges::find(on.trace, what) - on.trace.begin(); };
  CHECK(position("handler ends") < position("joined hall ada"));
  CHECK(position("joined hall ada") < position("handle ada behind in hall"));
  CHECK(on.count("left r ada") == 1);
  CHECK(names_in(net, "r").empty());
}

TEST_CASE("J-150 J-151 J-167 C-114 a room with members does not close, and nobody joins one that has") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  move_person(net, on, "ada", "r");
  CHECK_FALSE(net.run(net.host(0).spots().close(s.room)));
  CHECK(on.count("closing") == 0);
  CHECK(names_in(net, "r") == "ada ");
  CHECK(net.run(talk(net.host(0), "ada", "x")).spot == "r");
  move_person(net, on, "ada", "");
  CHECK(net.run(net.host(0).spots().close(s.room)));
  CHECK(on.count("closing r") == 1);
  move_person(net, on, "ada", "r");
  REQUIRE(on.ends.back().error);
  CHECK(on.ends.back().error->kind() == error_kind::not_found);
}

TEST_CASE("X-10 X-11 X-16 C-147 a SpotWide room has one gate for itself and its members, a PerActor room one for each") {
  for (const bool per_actor : {false, true}) {
    scene s{1, 1, {.per_actor = per_actor}};
    auto& net = s.net;
    auto& on = s.on;
    net.run(make_person(net.host(0), "bob"));
    move_person(net, on, "ada", "r");
    move_person(net, on, "bob", "r");
    barrier open;
    on.hold("handle ada held", open);
    auto held = talk(net.host(0), "ada", "held");
    net.run_until([&] { return open.waiting() == 1; });
    auto other = talk(net.host(0), "bob", "other");
    net.advance(100ms);
    CHECK(on.count("handle bob other") == (per_actor ? 1 : 0));
    open.open();
    net.run(std::move(held));
    net.run(std::move(other));
    if (per_actor)
      CHECK(failure(net, net.host(0).spots().request_to_spot("r", say{"list"}).submit<said>()) == error_kind::internal_failure);
    else
      CHECK(names_in(net, "r") == "ada bob ");
  }
}

TEST_CASE("J-162 S-156 a shutdown before the handler ends, and a store that does not answer at the commit") {
  scene s{1};
  auto& net = s.net;
  auto& on = s.on;
  net.faults(0).once(store_operation::write, zlink::placement::actor_key("ada"), store_fault::vanish);
  move_person(net, on, "ada", "r");
  CHECK(on.ends.back().outcome == join_outcome::accepted);
  net.faults(0).once(store_operation::write, zlink::placement::actor_key("ada"), store_fault::late);
  net.run(send_off(net.host(0), "ada", ""));
  net.advance(100ms);
  net.faults(0).release_all();
  net.run_until([&] { return on.ends.size() == 2; });
  CHECK(on.ends.back().outcome == join_outcome::accepted);
  CHECK_FALSE(net.run(net.host(0).actors().find_spot("ada")));
  barrier open;
  on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
    who.context().join_spot("r").defer();
    co_await open.passed();
  };
  auto asked = talk(net.host(0), "ada", "x");
  net.run_until([&] { return open.waiting() == 1; });
  auto ending = net.host(0).shutdown();
  net.advance(10ms);
  open.open();
  net.run(std::move(asked));
  net.run(std::move(ending));
  REQUIRE(on.ends.size() == 3);
  REQUIRE(on.ends.back().error);
  CHECK(on.ends.back().error->kind() == error_kind::shutting_down);
}

} // namespace
} // namespace membership_test
