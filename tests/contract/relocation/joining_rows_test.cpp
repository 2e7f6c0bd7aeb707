// What the node of a room reads of an Actor before it asks the room: who it is, and of what type, the row alone says (05 section 7).
#include "tests/contract/relocation/apart_scene.hpp"

namespace relocation_test {
namespace {

using zlink::placement::row_record;

const std::string& key_of_ada() {
  static const std::string key = zlink::placement::actor_key("ada");
  return key;
}
void remove_row(mesh& net, const std::string& key) {
  zlink::store_batch batch;
  batch.mutations.push_back({key, std::nullopt, std::nullopt});
  net.store().location()->write(std::move(batch), [](auto answer) { REQUIRE(answer); });
}

/// A Join during which the room's node finds ada's row as the test leaves it.
struct doubtful_join {
  doubtful_join() : net({.hosts = 3, .max_link_delay = 1ms}) {
    net.start(serve_rooms(on));
    s.emplace(net, on);
    net.run_until_idle();
  }
  /// How the Join ends.
  std::string join(const std::function<void()>& spoil, zlink::testing::store_fault how = zlink::testing::store_fault::none) {
    const auto before = *player_row(net, "ada");
    on.trace.clear();
    bool met = false;
    net.faults(s->there).set_rule([&](const zlink::testing::store_call& call) {
      if (met || call.what != zlink::testing::store_operation::read || call.key != key_of_ada())
        return zlink::testing::store_fault::none;
      met = true;
      if (spoil)
        spoil();
      return how;
    });
    go_to(net, on, "ada", s->room);
    net.faults(s->there).set_rule({});
    CHECK(met);
    CHECK(on.count("gate") == 0); // the room is not even asked
    CHECK(on.count("capture") == 0);
    CHECK(on.count("completed") == 1);
    const auto end = std::ranges::find_if(on.trace, [](const auto& one) { return one.starts_with("completed ada "); });
    if (spoil)
      creation_test::put(net, key_of_ada(), zlink::placement::encode(before));
    CHECK(net.run(say(net.host(s->here), "ada", "on")).rid == rid_of(net, s->here));
    return end == on.trace.end() ? "" : end->substr(std::string{"completed ada "}.size());
  }
  std::string join_with(const std::function<void(row_record&)>& edit) {
    return join([&] {
      auto row = *player_row(net, "ada");
      edit(row);
      creation_test::put(net, key_of_ada(), zlink::placement::encode(row));
    });
  }

  stage on;
  mesh net;
  std::optional<apart> s;
};

TEST_CASE("J-97 J-98 a row that is not the asked Actor's, or that nobody can read: an explicit answer of its own kind, and no gate") {
  doubtful_join j;
  auto& net = j.net;
  const auto& s = *j.s;
  const auto third = 3 - s.here - s.there;
  CHECK(j.join([&] { remove_row(net, key_of_ada()); }) == "failed not_found");
  CHECK(j.join([&] { creation_test::put(net, key_of_ada(), "no row at all"); }) == "failed unavailable");
  CHECK(j.join({}, zlink::testing::store_fault::vanish) == "failed unavailable");
  CHECK(j.join_with([](row_record& row) { ++row.generation.value; }) == "failed invalid_operation");
  CHECK(j.join_with([](row_record& row) { --row.generation.value; }) == "failed invalid_operation");
  CHECK(j.join_with([](row_record& row) { row.closing = true; }) == "failed unavailable");
  CHECK(j.join_with([](row_record& row) { ++row.authority.value; }) == "failed unavailable");
  CHECK(j.join_with([&](row_record& row) { row.node = net.host(third).runtime().find_node("m")->identity; }) == "failed unavailable");
  CHECK(j.join_with([](row_record& row) { ++row.node.lifecycle.value; }) == "failed unavailable");
  CHECK(j.join_with([](row_record& row) { ++row.owner.lease.value; }) == "failed unavailable");
  CHECK(j.join_with([](row_record& row) { ++row.owner.owner.low; }) == "failed unavailable");
  CHECK(j.join_with([&](row_record& row) { row.member_of = {"elsewhere", {7}}; }) == "failed unavailable");
  CHECK(j.join_with([&](row_record& row) { row.member_of->spot_id = net.host(third).mesh("m").entry_spot_id(); }) == "failed unavailable");
  go_to(net, j.on, "ada", s.room); // as it should be: in
  CHECK(net.run(say(net.host(0), "ada", "in")).room == s.room);
}

/// Of another class of factory: what makes a player says so.
void add_wanderers(zlink::host& host, stage& on, const std::string& type) {
  host.mesh("m").object_server().add_actor_factory<player>(type, [&on, type](auto& factory) {
    factory.preserve_state_with(player_adapter{}).construct_with([&on, type](zlink::actor_context context) {
      on.trace.push_back("made by " + type);
      return std::make_unique<player>(std::move(context), on);
    });
  });
}

TEST_CASE("J-97 J-98 the target's factory is that of the type in the row; a type that it does not register is unavailable") {
  stage on;
  mesh net{2};
  net.start([&](zlink::host& host, std::size_t) {
    serve_rooms(on)(host);
    add_wanderers(host, on, "wanderer");
  });
  const apart s{net, on};
  const auto row = *player_row(net, "ada");
  REQUIRE(row.stable_type == "player");
  auto other = row;
  other.stable_type = "nobody knows";
  creation_test::put(net, key_of_ada(), zlink::placement::encode(other));
  go_to(net, on, "ada", s.room);
  CHECK(on.count("completed ada failed unavailable") == 1);
  CHECK(on.count("gate") == 0);
  other.stable_type = "wanderer";
  creation_test::put(net, key_of_ada(), zlink::placement::encode(other));
  go_to(net, on, "ada", s.room);
  CHECK(on.count("completed ada accepted") == 1);
  CHECK(on.count("made by wanderer") == 1);
  CHECK(net.run(say(net.host(0), "ada", "in")).rid == rid_of(net, s.there));
}

} // namespace
} // namespace relocation_test
