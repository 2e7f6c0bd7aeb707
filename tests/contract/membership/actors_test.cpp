// Actors come into being, are found, answer and end (04 section 14, 05 sections 1, 2 and 9, 03 section 10).
#include "tests/contract/membership/people.hpp"

#include <type_traits>

namespace membership_test {
namespace {

using words = std::vector<std::string>;
using zlink::spot_create_state;

TEST_CASE("C-121 C-123 C-125 J-11 J-13 J-15 J-18 an Actor comes into being in an Entry Spot, in one step, with its answer") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  on.birth = [](const std::string& word) { return zlink::accept(ticket{"welcome " + word}); };
  const auto made = net.run(make_person(net.host(0), "ada", "hello"));
  CHECK(made.state == spot_create_state::created);
  CHECK(made.actor.actor_id == "ada");
  CHECK(made.actor.mesh_name == "m");
  CHECK(made.actor.node_rid == net.host(1).mesh("m").rid());
  REQUIRE(made.reply);
  CHECK(made.reply->as<ticket>().word == "welcome hello");
  CHECK(on.trace == words{"configure ada", "create ada hello"});
  REQUIRE(person_row(net, "ada"));
  const auto row = *person_row(net, "ada");
  CHECK(row.state == zlink::placement::allocation_state::active);
  CHECK(row.generation.value == made.actor.object_generation);
  REQUIRE(row.member_of);
  CHECK(row.member_of->spot_id == net.host(1).mesh("m").entry_spot_id());
  CHECK(people_on(net, 1) == zlink::placement::slot_bucket{1, 0});
  CHECK(net.host(1).status().actors == 1);
  const auto found = net.run(net.host(0).actors().find("ada"));
  REQUIRE(found);
  CHECK(*found == made.actor);
  CHECK_FALSE(net.run(net.host(0).actors().find_spot("ada"))); // an Entry Spot
  CHECK_FALSE(net.run(net.host(0).actors().find("bob")));
  CHECK_FALSE(net.run(net.host(0).actors().find_spot("bob")));
}

TEST_CASE("C-123 J-16 a declined Actor was never there, and its place is free") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host, std::size_t index) {
    serve_beside_client(on)(host, index);
    host.mesh("m").actor_limit(1);
  });
  on.birth = [](const std::string&) { return zlink::reject(ticket{"no"}); };
  for (int i = 0; i < 3; ++i) {
    const auto refused = net.run(make_person(net.host(0), "ada"));
    CHECK(refused.state == spot_create_state::rejected);
    CHECK(refused.reply->as<ticket>().word == "no");
    CHECK_FALSE(person_row(net, "ada"));
    CHECK_FALSE(net.run(net.host(0).actors().find("ada")));
    CHECK(people_on(net, 1) == zlink::placement::slot_bucket{});
    CHECK(on.alive == 0);
  }
  on.birth = nullptr;
  on.at = [](const std::string& step) {
    if (step.starts_with("create"))
      throw std::runtime_error{"not today"};
  };
  CHECK(failure(net, make_person(net.host(0), "ada")) == error_kind::internal_failure);
  CHECK_FALSE(person_row(net, "ada"));
  on.at = nullptr;
  CHECK(net.run(make_person(net.host(0), "ada")).state == spot_create_state::created);
  CHECK(failure(net, make_person(net.host(0), "bob")) == error_kind::unavailable); // the node is full
  CHECK(on.count("joined") == 0);
  CHECK(on.count("gate") == 0);
}

TEST_CASE("C-122 create and get_or_create against what is there") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host, std::size_t index) {
    serve_beside_client(on)(host, index);
    if (index == 1)
      host.mesh("m").object_server().add_actor_factory<person>("other", [&on](auto& factory) {
        factory.disable_relocation().construct_with(
          [&on](zlink::actor_context context) { return std::make_unique<person>(std::move(context), on); });
      });
  });
  auto actors = net.host(0).actors();
  const auto made = net.run(make_person(net.host(0), "ada"));
  CHECK(failure(net, make_person(net.host(0), "ada")) == error_kind::already_exists);
  const auto existing = net.run(get_person(net.host(0), "ada"));
  CHECK(existing.state == spot_create_state::existing);
  CHECK(existing.actor == made.actor);
  CHECK(failure(net, actors.create("ada", "other").submit()) == error_kind::type_mismatch);
  CHECK(failure(net, actors.get_or_create("ada", "other").submit()) == error_kind::type_mismatch);

  barrier open;
  on.hold("create bob", open);
  auto first = make_person(net.host(0), "bob", {}, 30s);
  net.run_until([&] { return open.waiting() == 1; });
  CHECK(failure(net, make_person(net.host(0), "bob")) == error_kind::already_exists);
  CHECK(failure(net, actors.create("bob", "other").submit()) == error_kind::type_mismatch);
  auto waiting = get_person(net.host(0), "bob", 30s);
  net.advance(100ms);
  open.open();
  CHECK(net.run(std::move(first)).state == spot_create_state::created);
  CHECK(net.run(std::move(waiting)).state == spot_create_state::existing);
  CHECK(failure(net, actors.create("eve", "nobody registers it").submit()) == error_kind::not_found);
  CHECK_THROWS_AS(actors.create("", "person"), std::invalid_argument);
  CHECK_THROWS_AS(actors.create("x", std::string(256, 'x')), std::invalid_argument);
  CHECK_THROWS_AS(actors.send_to_actor("", tell{"x"}), std::invalid_argument);
}

TEST_CASE("C-67 C-69 one Actor for many who ask at once, wherever they are") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    stage on;
    mesh net{{.hosts = 4, .seed = seed, .max_link_delay = 5ms, .max_store_delay = 5ms}};
    INFO("seed ", seed);
    net.start(serve_beside_client(on));
    std::vector<zlink::task<zlink::actor_create_result>> calls;
    for (std::size_t i = 0; i < 8; ++i)
      calls.push_back(get_person(net.host(i % 4), "ada"));
    int created = 0;
    std::set<std::uint64_t> generations;
    for (auto& call : calls) {
      const auto made = net.run(std::move(call));
      created += made.state == spot_create_state::created ? 1 : 0;
      generations.insert(made.actor.object_generation);
    }
    CHECK(created == 1);
    CHECK(generations.size() == 1);
    CHECK(on.count("create ada") == 1);
    CHECK(on.alive == 1);
  }
}

TEST_CASE("C-136 a node whose Entry Spot does not host the class counts as not registering the type") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto server = host.add_mesh("m").object_server();
    server.add_actor_factory<person>("person", [&on](auto& factory) {
      factory.disable_relocation().construct_with(
        [&on](zlink::actor_context context) { return std::make_unique<person>(std::move(context), on); });
    });
  });
  CHECK(failure(net, make_person(net.host(0), "ada")) == error_kind::not_found);
}

TEST_CASE("M-68 M-69 M-71 M-72 messages go straight to the Actor, and to nobody when it is gone") {
  stage on;
  mesh net{3};
  net.start(serve_beside_client(on));
  CHECK(failure(net, talk(net.host(0), "ada", "x")) == error_kind::not_found);
  const auto made = net.run(make_person(net.host(0), "ada"));
  for (std::size_t host = 0; host < 3; ++host) {
    const auto heard = net.run(talk(net.host(host), "ada", "hello"));
    CHECK(heard.word == "hello");
    CHECK(heard.generation == made.actor.object_generation);
  }
  net.run(tell_person(net.host(0), "ada", "one way"));
  net.run_until_idle();
  CHECK(on.count("handle ada one way in hall") == 1);
  CHECK(failure(net, net.host(0).actors().request_to_actor("ada", ticket{"unserved"}).submit<said>()) == error_kind::not_found);
  CHECK(net.run(net.host(0).actors().destroy(made.actor)));
  CHECK(failure(net, talk(net.host(0), "ada", "x")) == error_kind::not_found);
  const auto again = net.run(make_person(net.host(0), "ada"));
  CHECK(again.actor.object_generation > made.actor.object_generation);
  CHECK(net.run(talk(net.host(0), "ada", "x")).generation == again.actor.object_generation);
  CHECK(failure(net, net.host(0).actors().destroy(made.actor)) == error_kind::invalid_operation);
}

TEST_CASE("X-12 X-45 M-148 an Actor runs one message at a time in order, Actors of an Entry Spot beside each other") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  net.run(make_person(net.host(0), "bob"));
  barrier open;
  on.hold("handle ada 1", open);
  auto one = talk(net.host(0), "ada", "1");
  auto two = talk(net.host(0), "ada", "2");
  net.run_until([&] { return open.waiting() == 1; });
  CHECK(net.run(talk(net.host(0), "bob", "x")).word == "x");
  net.run_until_idle();
  CHECK(on.count("handle ada 2") == 0);
  open.open();
  net.run(std::move(one));
  net.run(std::move(two));
  CHECK(on.trace.back() == "handle ada 2 in hall");
}

TEST_CASE("X-47 X-35 an Actor that waits for itself is refused, and yields nowhere but in a shared Spot") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  std::vector<std::string> kinds;
  on.handler = [&kinds](zlink::actor& who, const std::string& word) -> zlink::task<void> {
    const auto outbound = who.context().outbound();
    if (word == "self submit" || word == "self yield") {
      auto asking = outbound.request_to_actor("ada", say{"x"});
      auto asked = zlink::as_result(word == "self submit" ? asking.submit<said>() : asking.yield<said>());
      const auto end = co_await std::move(asked);
      kinds.push_back(to_string(end.error().kind()));
    } else if (word == "yield") {
      auto asking = outbound.request_to_spot("r", say{"list"});
      auto asked = zlink::as_result(asking.yield<said>());
      const auto end = co_await std::move(asked);
      kinds.push_back(end.has_value() ? "fine" : to_string(end.error().kind()));
    }
  };
  net.run(talk(net.host(0), "ada", "self submit"));
  net.run(talk(net.host(0), "ada", "yield"));
  CHECK(kinds == words{"invalid_operation", "invalid_configuration"});
  move_person(net, on, "ada", "r");
  kinds.clear();
  net.run(talk(net.host(0), "ada", "self yield"));
  net.run(talk(net.host(0), "ada", "yield")); // its own room, whose gate is free meanwhile
  CHECK(kinds == words{"invalid_operation", "fine"});
  CHECK(net.run(talk(net.host(0), "ada", "still there")).word == "still there");
}

TEST_CASE("J-133 J-134 J-135 J-136 J-137 the end of an Actor: what it has accepted runs, then it is gone, silently") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto made = net.run(make_person(net.host(0), "ada"));
  barrier open;
  on.hold("handle ada 1", open);
  auto one = talk(net.host(0), "ada", "1");
  net.run_until([&] { return open.waiting() == 1; });
  auto two = talk(net.host(0), "ada", "2");
  net.run(tell_person(net.host(0), "ada", "3"));
  net.run_until_idle();
  auto ending = net.host(0).actors().destroy(made.actor);
  net.advance(50ms);
  CHECK(failure(net, talk(net.host(0), "ada", "too late")) == error_kind::not_found);
  open.open();
  CHECK(net.run(std::move(ending)));
  CHECK(net.run(std::move(one)).word == "1");
  CHECK(net.run(std::move(two)).word == "2");
  CHECK(on.count("handle ada 3") == 1);
  CHECK(on.count("left") == 0);
  CHECK(on.alive == 0);
  CHECK_FALSE(person_row(net, "ada"));
  CHECK(people_on(net, 1) == zlink::placement::slot_bucket{});
  CHECK_FALSE(net.run(net.host(0).actors().destroy(made.actor))); // gone
}

TEST_CASE("J-133 J-137 C-127 an Actor in a User Spot has to leave first; its Entry Spot may end it, once or twice") {
  stage on;
  mesh net{1};
  net.start(serve_all(on));
  const auto made = net.run(make_person(net.host(0), "ada"));
  open_room(net, "r");
  move_person(net, on, "ada", "r");
  CHECK(failure(net, net.host(0).actors().destroy(made.actor)) == error_kind::invalid_operation);
  CHECK(net.run(talk(net.host(0), "ada", "x")).spot == "r");
  move_person(net, on, "ada", "");
  CHECK(net.run(net.host(0).actors().destroy(made.actor)));
  CHECK_FALSE(person_row(net, "ada"));
}

TEST_CASE("J-130 J-133 whoever was told that an Actor has left may end it at once") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    stage on;
    mesh net{{.hosts = 2, .seed = seed, .max_link_delay = 3ms, .max_store_delay = 3ms}};
    INFO("seed ", seed);
    net.start(serve_beside_client(on));
    const auto made = net.run(make_person(net.host(0), "ada"));
    const auto room = open_room(net, "r");
    move_person(net, on, "ada", "r");
    on.handler = [&on](zlink::actor& who, const std::string&) -> zlink::task<void> {
      auto leaving = on.leave(who);
      co_await std::move(leaving);
    };
    net.run(talk(net.host(0), "ada", "leave"));
    CHECK(net.run(net.host(0).spots().close(room)));
    CHECK(net.run(net.host(0).actors().destroy(made.actor)));
    CHECK(on.alive == 0);
  }
}

TEST_CASE("C-79 S-79 an Actor of a dead node is unavailable until somebody ends it by its ref") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  const auto made = net.run(make_person(net.host(0), "ada"));
  net.kill(1);
  net.advance(30s);
  CHECK(failure(net, talk(net.host(0), "ada", "x", 2s)) == error_kind::unavailable);
  net.restart(1);
  CHECK(failure(net, talk(net.host(0), "ada", "x", 2s)) == error_kind::unavailable);
  CHECK(net.run(net.host(0).actors().destroy(made.actor)));
  CHECK(net.run(make_person(net.host(0), "ada")).actor.object_generation > made.actor.object_generation);
  on.trace.clear();
}

TEST_CASE("C-129 C-119 X-168 Actors end with their host, when what they have accepted has run") {
  stage on;
  mesh net{2};
  net.start(serve_beside_client(on));
  net.run(make_person(net.host(0), "ada"));
  net.run(make_person(net.host(0), "bob"));
  open_room(net, "r");
  move_person(net, on, "bob", "r");
  barrier open;
  on.hold("handle ada 1", open);
  auto one = talk(net.host(0), "ada", "1");
  net.run_until([&] { return open.waiting() == 1; });
  auto ending = net.host(1).shutdown();
  net.advance(50ms);
  CHECK(failure(net, make_person(net.host(1), "eve")) == error_kind::shutting_down);
  open.open();
  CHECK(net.run(std::move(one)).word == "1");
  net.run(std::move(ending));
  CHECK(on.alive == 0);
  CHECK(on.count("closing r with 1") == 1); // its members can be read while it closes
  CHECK(on.count("left") == 1);             // from the hall, when bob joined
  CHECK_FALSE(person_row(net, "ada"));
  CHECK_FALSE(person_row(net, "bob"));
}

} // namespace
} // namespace membership_test
