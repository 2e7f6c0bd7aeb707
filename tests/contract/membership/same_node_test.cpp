// What a change of Spot inside a node keeps, and what it does not cost (05 sections 6 and 13, 02 section 17).
#include "tests/contract/membership/join_scene.hpp"

#include <map>

namespace membership_test {
namespace {

using words = std::vector<std::string>;

std::string capacity_version(mesh& net) {
  return stored<zlink::placement::capacity_record>(net,
                                                   zlink::placement::capacity_key("m", net.host(0).mesh("m").rid()))
    .version;
}

TEST_CASE("J-173 joins, declines and leaves inside a node touch no slot, and need none") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto& node = host.add_mesh("m");
    node.actor_limit(2); // the node is full
    serve(node, on);
  });
  for (const auto* id : {"ada", "bob"})
    net.run(make_person(net.host(0), id));
  CHECK(failure(net, make_person(net.host(0), "one too many")) == error_kind::unavailable);
  for (const auto* id : {"r", "s"})
    open_room(net, id);
  net.run_until_idle();
  const auto version = capacity_version(net);
  REQUIRE_FALSE(version.empty());
  for (const auto* to : {"r", "s", "", "s", "s", "r"}) {
    for (const auto* id : {"ada", "bob"}) {
      move_person(net, on, id, to);
      CHECK(on.ends.back().outcome == join_outcome::accepted);
    }
    CHECK(people_on(net, 0) == zlink::placement::slot_bucket{2, 0});
    CHECK(net.host(0).status().actors == 2);
  }
  on.gate = [](const std::string&) { return zlink::reject(); };
  move_person(net, on, "ada", "s");
  CHECK(on.ends.back().outcome == join_outcome::rejected);
  on.gate = nullptr;
  move_person(net, on, "ada", "s");
  on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
    auto leaving = on.leave(who); // of "s", which was made last
    co_await std::move(leaving);
  };
  net.run(talk(net.host(0), "ada", "leave"));
  net.run_until_idle();
  CHECK_FALSE(net.run(net.host(0).actors().find_spot("ada")));
  CHECK(capacity_version(net) == version);
  CHECK(people_on(net, 0) == zlink::placement::slot_bucket{2, 0});
  CHECK(failure(net, make_person(net.host(0), "one too many")) == error_kind::unavailable);
}

/// A place whose handlers are told apart by nothing but the Actor.
struct shared_place {
  std::map<std::string, std::set<const void*>> served_by; ///< by Actor: the objects whose handler ran
  std::map<std::string, std::set<const void*>> actors;    ///< by Actor: what that handler was given
  int inside = 0;
  int most = 0;
  barrier open;
};
/// Counts in itself: nobody else does that for it, and nothing locks.
class counter final : public zlink::actor {
public:
  using actor::actor;
  int heard = 0;
};
template <class Base, class Context>
class counting final : public Base {
public:
  counting(Context context, shared_place& seen) : Base(std::move(context)), seen_(seen) {}
  void configure() override {
    this->context()
      .handlers()
      .template add_actor_handler<&counting::on_say>()
      .template add_actor_handler<&counting::on_go>();
  }
  zlink::task<void> on_joined_actor(counter&) override { return zlink::task<void>::done(); }
  zlink::task<void> on_leave_actor(counter&) override { return zlink::task<void>::done(); }

private:
  zlink::task<said> on_say(counter& who, const zlink::message_context&, const say& m) {
    const auto id = who.context().actor_id();
    seen_.served_by[id].insert(this);
    seen_.actors[id].insert(&who);
    const int before = who.heard;
    seen_.most = std::max(seen_.most, ++seen_.inside);
    auto waiting = m.word == "wait" ? seen_.open.passed() : zlink::task<void>::done();
    co_await std::move(waiting);
    --seen_.inside;
    who.heard = before + 1; // right, as long as nobody else has it meanwhile
    said answer{id, this->context().spot_id(), static_cast<std::uint64_t>(who.heard)};
    co_return answer;
  }
  void on_go(counter& who, const zlink::message_context&, const go& m) {
    if (m.room.empty())
      who.context().join_entry_spot().defer();
    else
      who.context().join_spot(m.room).defer();
  }
  shared_place& seen_;
};
using counting_hall = counting<zlink::entry_spot<counter>, zlink::entry_spot_context>;
using counting_room = counting<zlink::spot<counter>, zlink::spot_context>;

template <class TObject>
concept takes_objects = requires(const zlink::spot_handler_registry& to, TObject made) {
  to.add_actor_handler(std::move(made));
};
struct handler_object {
  void on_say(counter&, const zlink::message_context&, const say&) {}
};

TEST_CASE("X-156 X-158 handlers are functions of the Spot, no objects that Actors could share: state is the Actor's") {
  static_assert(!takes_objects<handler_object> && !takes_objects<std::unique_ptr<handler_object>>);
  static_assert(!takes_objects<std::function<void(counter&, const zlink::message_context&, const say&)>>);
  for (const bool per_actor : {false, true}) {
    CAPTURE(per_actor);
    shared_place seen;
    mesh net{1};
    net.start([&](zlink::host& host) {
      host.add_mesh("m")
        .object_server()
        .add_entry_spot<counting_hall>([&seen](zlink::entry_spot_context context) {
          return std::make_unique<counting_hall>(std::move(context), seen);
        })
        .add_spot_factory<counting_room>("room",
                                         [&](auto& factory) {
                                           factory.construct_with([&seen](zlink::spot_context context) {
                                             return std::make_unique<counting_room>(std::move(context), seen);
                                           });
                                           if (per_actor)
                                             factory.recreate_on_relocation().per_actor();
                                           else
                                             factory.disable_relocation();
                                         })
        .add_actor_factory<counter>("person", [](auto& factory) { factory.disable_relocation(); });
    });
    const words ids{"ada", "bob"};
    for (const auto& id : ids)
      net.run(make_person(net.host(0), id));
    open_room(net, "r");
    std::uint64_t rounds = 0;
    for (const std::string to : {"", "r", ""}) {
      for (const auto& id : ids)
        net.run(send_off(net.host(0), id, to));
      seen.open = {};
      seen.most = 0;
      std::vector<zlink::task<said>> waiting;
      for (const auto& id : ids)
        for (int i = 0; i < 3; ++i)
          waiting.push_back(talk(net.host(0), id, "wait", 60s));
      net.run_until([&] { return seen.open.waiting() != 0; });
      net.run_until_idle();
      seen.open.open();
      for (auto& one : waiting)
        net.run(std::move(one));
      rounds += 3;
      CHECK(seen.most == (to == "r" && !per_actor ? 1 : 2)); // both at once where they have gates of their own
      for (const auto& id : ids) {
        const auto heard = net.run(talk(net.host(0), id, "x"));
        CHECK(heard.word == id);
        CHECK(heard.generation == rounds + 1);
      }
      ++rounds;
    }
    CHECK(seen.served_by["ada"] == seen.served_by["bob"]); // one for all in the hall, one in the room
    CHECK(seen.served_by["ada"].size() == 2);
    for (const auto& id : ids)
      CHECK(seen.actors[id].size() == 1); // one object of each, wherever it was
    CHECK(seen.actors["ada"] != seen.actors["bob"]);
  }
}

} // namespace
} // namespace membership_test
