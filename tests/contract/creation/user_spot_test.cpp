// User Spots: outcomes of a creation, who waits for whom, what may be asked.
#include "tests/contract/creation/scripted_spots.hpp"

#include <regex>
#include <set>

namespace creation_test {

using trace = std::vector<std::string>;
using zlink::spot_create_state;

TEST_CASE("C-80 C-62 C-142 a User Spot is built in order, an existing one runs nothing, a declined one leaves nothing") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  on.answer = [](const std::string& word) {
    const told reply{"about " + word, 1, {}};
    return word == "no" ? zlink::reject(reply) : word == "yes" ? zlink::accept(reply) : zlink::accept();
  };
  const auto made = net.run(open_room(net.host(0), "a", "yes"));
  net.run_until_idle();
  CHECK(on.trace == trace{"factory a", "configure a", "create a yes", "initialize a"});
  CHECK(made.state == spot_create_state::created);
  REQUIRE(made.reply);
  CHECK(made.reply->as<told>().word == "about yes");
  CHECK(made.spot.spot_id == "a");
  CHECK(made.spot.object_generation == row_of(net, "a")->generation.value);
  CHECK(made.spot.node_rid == net.host(net.owner_of("a")).mesh("m").rid());
  CHECK(made.spot.mesh_name == "m");

  for (std::size_t host = 0; host < 2; ++host) {
    const auto again = net.run(open_room(net.host(host), "a", "no"));
    CHECK(again.state == spot_create_state::existing);
    CHECK(again.spot == made.spot);
    CHECK_FALSE(again.reply);
  }
  CHECK(on.trace.size() == 4);

  on.trace.clear();
  const auto declined = net.run(open_room(net.host(0), "b", "no"));
  CHECK(on.trace == trace{"factory b", "configure b", "create b no"});
  CHECK(declined.state == spot_create_state::rejected);
  CHECK(declined.reply->as<told>().word == "about no");
  CHECK(declined.spot.spot_id == "b");
  CHECK_FALSE(row_of(net, "b"));
  net.run_until_idle();
  CHECK(on.alive == 1);
  CHECK_FALSE(net.run(open_room(net.host(0), "c", "plain")).reply);
  CHECK(std::string{to_string(spot_create_state::existing)} == "existing");
  CHECK(std::string{to_string(spot_create_state::created)} == "created");
  CHECK(std::string{to_string(spot_create_state::rejected)} == "rejected");
  CHECK(static_cast<int>(spot_create_state::existing) == 0);
  CHECK(static_cast<int>(spot_create_state::created) == 1);
  CHECK(static_cast<int>(spot_create_state::rejected) == 2);
}

TEST_CASE("C-73 a rejection is a result, and no other candidate is asked") {
  stage on;
  mesh net{4};
  net.start(serve_beside_client(on));
  on.answer = [](const std::string&) { return zlink::reject(); };
  CHECK(net.run(open_room(net.host(0), "a")).state == spot_create_state::rejected);
  CHECK(on.count("create") == 1);
}

TEST_CASE("C-63 another kind or another type is a type mismatch, and what exists stays as it is") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    add_rooms(host.mesh("m").object_server(), on, "other room");
  });
  net.run(open_room(net.host(0), "u"));
  net.run(rouse(net.host(0), "i", "first"));
  const auto before = on.trace.size();
  for (std::size_t host = 0; host < 2; ++host) {
    auto spots = net.host(host).spots();
    CHECK(failure(net, spots.get_or_create("u", "other room").submit()) == error_kind::type_mismatch);
    CHECK(failure(net, spots.get_or_create("i", "room").submit()) == error_kind::type_mismatch);
    CHECK(failure(net, rouse(net.host(host), "u", "x")) == error_kind::type_mismatch);
    CHECK(failure(net, spots.request_to_spot("i", wake{"x"}).instance_spot("room").submit<told>())
          == error_kind::type_mismatch);
  }
  CHECK(on.trace.size() == before);
  CHECK(net.run(ask(net.host(0), "u", "still there")).word == "still there");
}

TEST_CASE("C-64 who meets a running creation waits, then takes its Spot or competes with its own request") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  on.answer = [](const std::string& word) {
    const told reply{"about " + word, 1, {}};
    return word == "first" ? zlink::reject(reply) : zlink::accept(reply);
  };
  barrier decide;
  on.hold("create", decide);
  auto first = open_room(net.host(0), "a", "first");
  net.run_until([&] { return decide.waiting() == 1; });
  auto second = open_room(net.host(1), "a", "second");
  net.advance(500ms);
  CHECK(on.count("factory") == 1); // it waits
  decide.open();
  const auto rejected = net.run(std::move(first));
  CHECK(rejected.state == spot_create_state::rejected);
  CHECK(rejected.reply->as<told>().word == "about first");
  const auto created = net.run(std::move(second));
  CHECK(created.state == spot_create_state::created);
  CHECK(created.reply->as<told>().word == "about second");
  CHECK(on.count("create") == 2);

  barrier ready;
  on.hold("initialize", ready);
  auto third = open_room(net.host(0), "b", "third");
  net.run_until([&] { return ready.waiting() == 1; });
  auto fourth = open_room(net.host(1), "b", "fourth");
  net.advance(500ms);
  ready.open();
  CHECK(net.run(std::move(third)).state == spot_create_state::created);
  CHECK(net.run(std::move(fourth)).state == spot_create_state::existing);
  CHECK(on.count("create b") == 1);
}

TEST_CASE("C-60 a deadline or a stop token ends the wait, not the attempt") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  barrier open;
  on.hold("initialize", open);
  const auto began = net.elapsed();
  CHECK(failure(net, open_room(net.host(0), "a", {}, 1s)) == error_kind::deadline_exceeded);
  CHECK(net.elapsed() - began < 1s + 100ms);
  std::stop_source stop;
  auto waiting = net.host(0).spots().get_or_create("a", "room").submit(stop.get_token());
  net.advance(10ms);
  stop.request_stop();
  CHECK(net.run(zlink::as_result(std::move(waiting))).is_cancelled());
  CHECK_FALSE(net.run(net.host(0).spots().find("a")));
  open.open();
  net.run_until_idle();
  CHECK(net.run(net.host(0).spots().find("a")));
  CHECK(on.count("factory") == 1);
  CHECK(net.run(open_room(net.host(0), "a")).state == spot_create_state::existing);
}

TEST_CASE("C-66 C-58 find names Ready User and Instance Spots, nothing else, and creates nothing") {
  stage on;
  mesh net{2};
  net.start([&on](zlink::host& host, std::size_t index) {
    serve(on)(host);
    if (index == 1)
      add_hall(host.mesh("m").object_server(), on);
  });
  on.trace.clear();
  row_spy spy;
  spy.watch(net, 0, "a");
  CHECK_FALSE(net.run(net.host(0).spots().find("a")));
  net.run_until_idle();
  CHECK(spy.writes == 0);
  CHECK(spy.reads > 0);
  CHECK(on.trace.empty());
  CHECK_FALSE(net.run(net.host(0).spots().find(net.host(1).mesh("m").entry_spot_id())));

  barrier open;
  on.hold("initialize", open);
  auto user = open_room(net.host(0), "a");
  auto instance = rouse(net.host(0), "b", "first");
  net.run_until([&] { return open.waiting() == 2; });
  for (std::size_t host = 0; host < 2; ++host) {
    CHECK_FALSE(net.run(net.host(host).spots().find("a")));
    CHECK_FALSE(net.run(net.host(host).spots().find("b")));
  }
  open.open();
  const auto made = net.run(std::move(user));
  net.run(std::move(instance));
  for (std::size_t host = 0; host < 2; ++host) {
    CHECK(net.run(net.host(host).spots().find("a")) == made.spot);
    CHECK(net.run(net.host(host).spots().find("b"))->spot_id == "b");
  }
}

zlink::task<void> yield_a_creation(const zlink::common_spot_context& context, std::string id) {
  auto call = context.host().spots().get_or_create(std::move(id), "room");
  co_await call.yield();
}

TEST_CASE("C-59 a call starts once, an option is set once, and yield needs a shared turn") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    serve(on)(host);
    add_hall(host.mesh("m").object_server(), on);
  });
  auto spots = net.host(0).spots();
  const auto refused = [&](zlink::task<zlink::spot_create_result> call) { return failure(net, std::move(call)); };
  CHECK(refused(spots.create("room").timeout(1s).timeout(2s).submit()) == error_kind::invalid_operation);
  CHECK(refused(spots.create("room").in_mesh("m").in_mesh("m").submit()) == error_kind::invalid_operation);
  CHECK(refused(spots.create("room").request(order{"a"}).request(order{"b"}).submit()) == error_kind::invalid_operation);
  CHECK(refused(spots.create("room").yield()) == error_kind::invalid_operation);
  CHECK(on.count("create") == 0);
  auto twice = spots.create("room");
  net.run(twice.submit());
  CHECK(refused(twice.submit()) == error_kind::invalid_operation);
  CHECK(on.count("create") == 1);

  std::optional<error_kind> seen;
  on.handler = [&seen](const zlink::common_spot_context& context, const std::string& word) -> zlink::task<void> {
    return [](const zlink::common_spot_context& in, std::string id, std::optional<error_kind>& out) -> zlink::task<void> {
      out = failure_of(co_await zlink::as_result(yield_a_creation(in, std::move(id))));
    }(context, word, seen);
  };
  net.run(ask(net.host(0), net.host(0).mesh("m").entry_spot_id(), "from entry"));
  CHECK(seen == error_kind::invalid_configuration);
  CHECK_FALSE(row_of(net, "from entry"));
  net.run(rouse(net.host(0), "i", "from instance"));
  CHECK_FALSE(seen);
  CHECK(row_of(net, "from instance"));
}

/// Gives one chosen number again when told to.
class repeating_random final : public zlink::random_source {
public:
  explicit repeating_random(std::shared_ptr<zlink::random_source> real) : real_(std::move(real)) {}
  std::uint64_t next() override { return repeat_ == 0 ? real_->next() : (--repeat_, 0x1234'5678'9abc'def0ULL); }
  void repeat(int numbers) { repeat_ = numbers; }

private:
  std::shared_ptr<zlink::random_source> real_;
  int repeat_ = 0;
};

TEST_CASE("C-61 an issued id is a version 4 uuid, and a collision ends the call") {
  stage on;
  std::shared_ptr<repeating_random> numbers;
  mesh net{{.hosts = 1, .adjust = [&](std::size_t, zlink::host_options& options) {
              options.random = numbers = std::make_shared<repeating_random>(options.random);
            }}};
  net.start(serve(on));
  const std::regex uuid{"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"};
  std::set<std::string> ids;
  for (int i = 0; i < 20; ++i) {
    const auto made = net.run(net.host(0).spots().create("room").submit());
    CHECK(made.state == spot_create_state::created);
    CHECK(std::regex_match(made.spot.spot_id, uuid));
    ids.insert(made.spot.spot_id);
  }
  CHECK(ids.size() == 20);
  numbers->repeat(2);
  net.run(net.host(0).spots().create("room").submit());
  const auto before = on.count("factory");
  numbers->repeat(2);
  CHECK(failure(net, net.host(0).spots().create("room").submit()) == error_kind::already_exists);
  CHECK(on.count("factory") == before);
}

TEST_CASE("C-65 C-89 nothing negative is kept: not found, made elsewhere, found at once") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  CHECK(failure(net, ask(net.host(0), "a", "x")) == error_kind::not_found);
  CHECK_FALSE(row_of(net, "a"));
  CHECK(on.trace.empty());
  net.run(open_room(net.host(1), "a"));
  CHECK(net.run(ask(net.host(0), "a", "y")).word == "y");
}

TEST_CASE("ids and types are 1 to 255 bytes of UTF-8, told apart by case, and refused before anything happens") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  auto spots = net.host(0).spots();
  for (const auto& bad : {std::string{}, std::string(256, 'x'), std::string{"\xff"}, std::string{"\xc0\x80"}}) {
    CHECK_THROWS_AS(spots.get_or_create(bad, "room"), std::invalid_argument);
    CHECK_THROWS_AS(spots.get_or_create("a", bad), std::invalid_argument);
    CHECK_THROWS_AS(spots.request_to_spot(bad, wake{"x"}), std::invalid_argument);
    CHECK_THROWS_AS(spots.find(bad), std::invalid_argument);
  }
  const std::string with_zero{"a\0b", 3};
  for (const auto& good : {std::string{"x"}, std::string{"X"}, std::string(255, 'x'), with_zero})
    CHECK(net.run(open_room(net.host(0), good)).state == spot_create_state::created);
  CHECK(on.alive == 4);
}

TEST_CASE("C-55 an id in the form of Entry Spot ids is refused before the store is asked") {
  stage on;
  mesh net{1};
  net.start(serve(on));
  const std::string id = "node-entry-01234567-89ab-4def-8123-456789abcdef";
  row_spy spy;
  spy.watch(net, 0, id);
  CHECK(failure(net, open_room(net.host(0), id)) == error_kind::invalid_operation);
  CHECK(failure(net, rouse(net.host(0), id, "x")) == error_kind::invalid_operation);
  auto send = net.host(0).spots().send_to_spot(id, hint{"x"}).instance_spot("cell");
  CHECK(failure(net, send.submit()) == error_kind::invalid_operation);
  CHECK(spy.reads + spy.writes == 0);
  CHECK(on.trace.empty());
}

TEST_CASE("C-86 what is not Ready yet can neither be found nor reached, and counts as reserved only") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  barrier open;
  on.hold("initialize", open);
  auto call = open_room(net.host(0), "a");
  net.run_until([&] { return open.waiting() == 1; });
  for (std::size_t host = 0; host < 2; ++host) {
    CHECK_FALSE(net.run(net.host(host).spots().find("a")));
    CHECK(failure(net, ask(net.host(host), "a", "early")) == error_kind::not_found);
    CHECK(spots_on(net, host).active == 0);
  }
  CHECK(spots_on(net, 0).reserved + spots_on(net, 1).reserved == 1);
  CHECK(on.count("handle") == 0);
  open.open();
  net.run(std::move(call));
  CHECK(spots_on(net, 0).active + spots_on(net, 1).active == 1);
  CHECK(net.run(ask(net.host(1), "a", "late")).word == "late");
}

TEST_CASE("C-87 a callback that throws ends the attempt in one failure and leaves the id free") {
  for (const std::string step : {"factory", "configure", "create", "initialize"}) {
    CAPTURE(step);
    stage on;
    mesh net{2};
    net.start(serve(on));
    on.at = [&](const std::string& now, const std::string&) {
      if (now == step)
        throw std::runtime_error{"not today"};
    };
    CHECK(failure(net, open_room(net.host(0), "a")) == error_kind::internal_failure);
    CHECK_FALSE(row_of(net, "a"));
    CHECK(spots_on(net, 0) == zlink::placement::slot_bucket{});
    CHECK(spots_on(net, 1) == zlink::placement::slot_bucket{});
    net.run_until_idle();
    CHECK(on.alive == 0);
    on.at = nullptr;
    CHECK(net.run(open_room(net.host(0), "a")).state == spot_create_state::created);
    CHECK(on.count("factory") == 2);
    CHECK(on.alive == 1);
  }
}

TEST_CASE("C-87 C-73 whose creation has failed or was declined may use the id at once, for another kind too") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    stage on;
    mesh net{{.hosts = 1, .seed = seed}};
    INFO("seed ", net.seed());
    net.start(serve(on));
    SUBCASE("failed") {
      on.at = [&](const std::string& now, const std::string&) {
        if (now == "initialize")
          throw std::runtime_error{"not today"};
      };
      CHECK(failure(net, open_room(net.host(0), "a")) == error_kind::internal_failure);
      on.at = nullptr;
    }
    SUBCASE("declined") {
      on.answer = [](const std::string&) { return zlink::reject(); };
      CHECK(net.run(open_room(net.host(0), "a")).state == spot_create_state::rejected);
    }
    CHECK(on.alive == 0);
    CHECK(net.run(rouse(net.host(0), "a", "1")).word == "1");
  }
}

TEST_CASE("C-83 the factory gets a context with the identity, and an instance with another one never becomes Ready") {
  stage on;
  std::optional<zlink::spot_context> kept;
  std::string identity;
  mesh net{1};
  net.start([&](zlink::host& host) {
    host.add_mesh("m").object_server().add_spot_factory<room>("room", [&](auto& factory) {
      factory.disable_relocation().construct_with([&](zlink::spot_context context) -> std::unique_ptr<room> {
        identity = context.mesh_name() + ' ' + context.spot_id() + ' ' + std::to_string(context.object_generation()) + ' '
                   + context.node_rid();
        if (context.spot_id() == "keep") {
          kept.emplace(std::move(context));
          throw std::runtime_error{"kept"};
        }
        return std::make_unique<room>(kept && context.spot_id() == "foreign" ? std::move(*kept) : std::move(context), on);
      });
    });
  });
  const auto made = net.run(open_room(net.host(0), "a")).spot;
  CHECK(identity == "m a " + std::to_string(made.object_generation) + ' ' + net.host(0).mesh("m").rid());
  CHECK(failure(net, open_room(net.host(0), "keep")) == error_kind::internal_failure);
  REQUIRE(kept);
  CHECK(failure(net, open_room(net.host(0), "foreign")) == error_kind::internal_failure);
  kept.reset();
  CHECK_FALSE(row_of(net, "foreign"));
  CHECK(on.count("configure foreign") + on.count("create foreign") + on.count("configure keep") == 0);
  net.run_until_idle();
  CHECK(on.alive == 1);
}

} // namespace creation_test
