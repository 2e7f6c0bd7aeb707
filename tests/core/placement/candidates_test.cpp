// Which node gets a new object.
#include "tests/core/placement/world.hpp"
#include "zlink/placement/candidates.hpp"

#include <map>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

descriptor_record node_of(const std::string& rid, std::uint32_t weight = 100) {
  descriptor_record d;
  d.node = {"m", rid, detail::lifecycle_generation{1}};
  d.state = node_state::serving;
  d.role = object_role::server;
  d.placement_weight = weight;
  d.capabilities = {{object_kind::user_spot, "room", relocation_policy::recreate, false, 0, {}}};
  return d;
}

placement_wish room_wish() {
  placement_wish wish;
  wish.mesh_name = "m";
  wish.kind = object_kind::user_spot;
  wish.stable_type = "room";
  wish.slots = slots_of(wish.kind, wish.stable_type);
  return wish;
}

/// The cause if nobody is chosen, of one node that lives.
std::optional<placement_cause> cause_of(const descriptor_record& node, placement_wish wish = room_wish(),
                                        lease_health lease = lease_health::live) {
  counting_random random{1};
  const auto choice = choose_node({{&node, lease}}, wish, random);
  if (const auto* none = std::get_if<no_candidate>(&choice))
    return none->cause;
  CHECK(std::get<const descriptor_record*>(choice) == &node);
  return std::nullopt;
}

} // namespace

TEST_CASE("C-38 weights 300 to 100 draw three of four, weight 0 draws none") {
  const auto heavy = node_of("heavy", 300);
  const auto light = node_of("light", 100);
  const auto never = node_of("never", 0);
  const std::vector<candidate> all{
    {&never, lease_health::live}, {&heavy, lease_health::live}, {&light, lease_health::live}};
  counting_random random{42};
  std::map<const descriptor_record*, int> drawn;
  for (int i = 0; i < 40'000; ++i)
    ++drawn[std::get<const descriptor_record*>(choose_node(all, room_wish(), random))];
  CHECK(drawn[&never] == 0);
  CHECK(drawn[&heavy] > 29'500);
  CHECK(drawn[&heavy] < 30'500);
  CHECK(drawn[&light] > 9'500);
}

TEST_CASE("C-38 each condition alone excludes a node") {
  CHECK(!cause_of(node_of("a")));
  auto node = node_of("a");
  node.node.mesh_name = "other";
  CHECK(cause_of(node) == placement_cause::not_registered);
  node = node_of("a");
  node.role = object_role::client;
  CHECK(cause_of(node) == placement_cause::not_registered);
  node = node_of("a");
  node.capabilities[0].kind = object_kind::instance_spot;
  CHECK(cause_of(node) == placement_cause::not_registered);
  node = node_of("a");
  node.capabilities[0].stable_type = "rooms";
  CHECK(cause_of(node) == placement_cause::not_registered);
  for (const auto state : {node_state::preparing, node_state::relocating, node_state::relocated, node_state::draining,
                           node_state::stopped, node_state::error}) {
    node = node_of("a");
    node.state = state;
    CHECK(cause_of(node) == placement_cause::not_serving);
  }
  node = node_of("a", 0);
  CHECK(cause_of(node) == placement_cause::no_weight);
}

TEST_CASE("C-38 S-82 a node whose projection is full is no candidate, whichever bucket it is") {
  auto node = node_of("a");
  node.spot_limit = 5;
  node.spots = {3, 1};
  CHECK(!cause_of(node));
  node.spots = {3, 2};
  CHECK(cause_of(node) == placement_cause::no_capacity);
  node = node_of("a");
  node.capabilities[0].limit = 1;
  CHECK(!cause_of(node));
  node.capabilities[0].slots = {0, 1};
  CHECK(cause_of(node) == placement_cause::no_capacity);
  node = node_of("a");
  node.actor_limit = 10;
  node.actors = {8, 0};
  auto aggregate = room_wish();
  aggregate.slots.actors = 2;
  CHECK(!cause_of(node, aggregate));
  aggregate.slots.actors = 3;
  CHECK(cause_of(node, aggregate) == placement_cause::no_capacity);
}

TEST_CASE("S-51 S-47 a node whose lease is over and a claimed record are as if they were not there") {
  auto node = node_of("a");
  CHECK(cause_of(node, room_wish(), lease_health::over) == placement_cause::not_registered);
  node.state = node_state::claimed;
  CHECK(cause_of(node) == placement_cause::not_registered);
  const auto dead = node_of("dead");
  const auto live = node_of("live");
  counting_random random{3};
  for (int i = 0; i < 100; ++i)
    CHECK(std::get<const descriptor_record*>(
            choose_node({{&dead, lease_health::over}, {&live, lease_health::live}}, room_wish(), random))
          == &live);
}

TEST_CASE("S-52 one corrupt lease ends the selection, even if others could be chosen") {
  const auto good = node_of("good");
  const auto bad = node_of("bad");
  counting_random random{3};
  const auto choice = choose_node({{&good, lease_health::live}, {&bad, lease_health::corrupt}}, room_wish(), random);
  REQUIRE(std::holds_alternative<no_candidate>(choice));
  CHECK(std::get<no_candidate>(choice).kind() == error_kind::internal_failure);
}

TEST_CASE("C-40 nobody registers the type is not_found, nobody can take it is unavailable with the cause") {
  const auto kind_of = [](placement_cause cause) { return no_candidate{cause}.kind(); };
  counting_random random{3};
  const auto nobody = choose_node({}, room_wish(), random);
  CHECK(std::get<no_candidate>(nobody).kind() == error_kind::not_found);
  CHECK(kind_of(placement_cause::no_capacity) == error_kind::unavailable);
  CHECK(kind_of(placement_cause::no_weight) == error_kind::unavailable);
  CHECK(kind_of(placement_cause::not_serving) == error_kind::unavailable);
  // The node that came furthest tells the cause.
  auto full = node_of("full");
  full.spot_limit = 1;
  full.spots = {1, 0};
  auto draining = node_of("draining");
  draining.state = node_state::draining;
  auto other = node_of("other");
  other.capabilities.clear();
  const auto choice = choose_node(
    {{&full, lease_health::live}, {&draining, lease_health::live}, {&other, lease_health::live}}, room_wish(), random);
  CHECK(std::get<no_candidate>(choice).cause == placement_cause::no_capacity);
  CHECK(std::string{to_string(placement_cause::no_capacity)}.find("capacity") != std::string::npos);
  CHECK(std::string{to_string(placement_cause::no_weight)}.find("weight") != std::string::npos);
}

TEST_CASE("C-41 a node lifecycle that refused is not drawn again, its successor is") {
  const auto a = node_of("a");
  auto wish = room_wish();
  wish.excluded.push_back(a.node);
  CHECK(cause_of(a, wish) == placement_cause::refused);
  auto restarted = a;
  restarted.node.lifecycle.value = 2;
  CHECK(!cause_of(restarted, wish));
}

TEST_CASE("C-91 the Instance type is inferred if live serving nodes of the mesh provide exactly one") {
  auto a = node_of("a");
  auto b = node_of("b");
  CHECK(std::get<error_kind>(infer_instance_type({{&a, lease_health::live}}, "m")) == error_kind::not_found);
  a.capabilities.push_back({object_kind::instance_spot, "cart", relocation_policy::recreate, false, 0, {}});
  b.capabilities.push_back({object_kind::instance_spot, "cart", relocation_policy::recreate, false, 0, {}});
  const std::vector<candidate> both{{&a, lease_health::live}, {&b, lease_health::live}};
  CHECK(std::get<std::string>(infer_instance_type(both, "m")) == "cart");
  CHECK(std::get<error_kind>(infer_instance_type(both, "other")) == error_kind::not_found);
  b.capabilities.back().stable_type = "zone";
  CHECK(std::get<error_kind>(infer_instance_type(both, "m")) == error_kind::invalid_operation);
  CHECK(std::get<std::string>(infer_instance_type({{&a, lease_health::live}, {&b, lease_health::over}}, "m"))
        == "cart");
  b.state = node_state::draining;
  CHECK(std::get<std::string>(infer_instance_type(both, "m")) == "cart");
  CHECK(std::get<error_kind>(infer_instance_type({{&a, lease_health::live}, {&b, lease_health::corrupt}}, "m"))
        == error_kind::internal_failure);
}
