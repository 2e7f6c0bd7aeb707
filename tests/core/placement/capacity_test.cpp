// Slots in buckets.
#include "zlink/placement/capacity.hpp"

#include <doctest/doctest.h>

using namespace zlink;
using namespace zlink::placement;

namespace {

const node_identity node{"m", "r", detail::lifecycle_generation{1}};

capacity_change step(slot_bundle slots, slot_step what, capacity_limits limits = {}) {
  return {node, std::move(slots), what, limits};
}

const slot_bundle room = slots_of(object_kind::user_spot, "room");
const slot_bundle player = slots_of(object_kind::actor, "player");

} // namespace

TEST_CASE("S-80 C-36 an Actor takes an Actor slot, a Spot a Spot slot and one of its kind and type") {
  capacity_record record{node.lifecycle, {}, {}, {}};
  CHECK(apply(record, step(player, slot_step::reserve)) == capacity_outcome::done);
  CHECK(record.actors == slot_bucket{0, 1});
  CHECK(record.spots == slot_bucket{});
  CHECK(record.types.empty());
  CHECK(apply(record, step(room, slot_step::reserve)) == capacity_outcome::done);
  CHECK(apply(record, step(slots_of(object_kind::instance_spot, "room"), slot_step::reserve))
        == capacity_outcome::done);
  CHECK(apply(record, step(slots_of(object_kind::user_spot, "lobby"), slot_step::reserve)) == capacity_outcome::done);
  CHECK(record.spots == slot_bucket{0, 3});
  REQUIRE(record.types.size() == 3);
  CHECK(record.types[0] == type_bucket{object_kind::user_spot, "lobby", {0, 1}});
  CHECK(record.types[1] == type_bucket{object_kind::user_spot, "room", {0, 1}});
  CHECK(record.types[2] == type_bucket{object_kind::instance_spot, "room", {0, 1}});
}

TEST_CASE("S-83 slots go from free to reserved to active to free, and an unused bucket is not kept") {
  capacity_record record{node.lifecycle, {}, {}, {}};
  const auto empty = record;
  CHECK(apply(record, step(room, slot_step::reserve)) == capacity_outcome::done);
  CHECK(apply(record, step(room, slot_step::activate)) == capacity_outcome::done);
  CHECK(record.spots == slot_bucket{1, 0});
  CHECK(record.types.at(0).slots == slot_bucket{1, 0});
  CHECK(apply(record, step(room, slot_step::free_active)) == capacity_outcome::done);
  CHECK(record == empty);
  CHECK(apply(record, step(room, slot_step::reserve)) == capacity_outcome::done);
  CHECK(apply(record, step(room, slot_step::free_reserved)) == capacity_outcome::done);
  CHECK(record == empty);
}

TEST_CASE("S-82 C-36 active and reserved slots count against each limit, 0 is none") {
  capacity_record record{node.lifecycle, {}, {}, {}};
  const capacity_limits two_spots{0, 2, 0};
  CHECK(apply(record, step(room, slot_step::reserve, two_spots)) == capacity_outcome::done);
  CHECK(apply(record, step(room, slot_step::activate)) == capacity_outcome::done);
  CHECK(apply(record, step(room, slot_step::reserve, two_spots)) == capacity_outcome::done);
  const auto full = record;
  CHECK(apply(record, step(room, slot_step::reserve, two_spots)) == capacity_outcome::no_capacity);
  CHECK(record == full);
  CHECK(apply(record, step(room, slot_step::reserve, {0, 3, 2})) == capacity_outcome::no_capacity);
  CHECK(record == full);
  CHECK(apply(record, step(player, slot_step::reserve, {1, 2, 2})) == capacity_outcome::done);
  CHECK(apply(record, step(player, slot_step::reserve, {1, 0, 0})) == capacity_outcome::no_capacity);
  CHECK(apply(record, step(room, slot_step::reserve)) == capacity_outcome::done);
}

TEST_CASE("S-80 S-82 a bundle of an aggregate is taken as a whole, up to the largest bucket") {
  capacity_record record{node.lifecycle, {}, {}, {}};
  const slot_bundle aggregate{40, 1, 1, object_kind::user_spot, "room"};
  const auto empty = record;
  CHECK(apply(record, step(aggregate, slot_step::reserve, {39, 0, 0})) == capacity_outcome::no_capacity);
  CHECK(record == empty);
  CHECK(apply(record, step(aggregate, slot_step::reserve, {40, 1, 1})) == capacity_outcome::done);
  CHECK(record.actors.reserved == 40);
  CHECK(apply(record, step({slot_limit - 40, 0, 0, {}, {}}, slot_step::reserve)) == capacity_outcome::done);
  CHECK(apply(record, step(player, slot_step::reserve)) == capacity_outcome::no_capacity);
}

TEST_CASE("S-84 a bucket that would go below zero is corruption and nothing changes") {
  capacity_record record{node.lifecycle, {}, {1, 0}, {}};
  const auto before = record;
  CHECK(apply(record, step(room, slot_step::free_active)) == capacity_outcome::corrupt); // no type bucket
  CHECK(record == before);
  for (const auto what : {slot_step::activate, slot_step::free_reserved, slot_step::free_active})
    CHECK(apply(record, step(player, what)) == capacity_outcome::corrupt);
  CHECK(record == before);
}

TEST_CASE("S-82 limits are those that the node published for the bundle's kind and type") {
  descriptor_record d;
  d.actor_limit = 7;
  d.spot_limit = 8;
  d.capabilities = {{object_kind::user_spot, "room", {}, false, 9, {}},
                    {object_kind::instance_spot, "room", {}, false, 10, {}}};
  CHECK(limits_of(d, room) == capacity_limits{7, 8, 9});
  CHECK(limits_of(d, slots_of(object_kind::instance_spot, "room")) == capacity_limits{7, 8, 10});
  CHECK(limits_of(d, player) == capacity_limits{7, 8, 0});
}
