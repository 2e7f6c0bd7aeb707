// Encoding of records and their keys.
#include "tests/core/placement/world.hpp"

#include <set>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

const owner_token owner{{0x1122334455667788, 0x99aabbccddeeff00}, detail::lease_generation{300}};
const node_identity node{"mesh", "rid", detail::lifecycle_generation{0x0102030405060708}};

content_digest digest_of(std::uint8_t value) {
  content_digest digest;
  digest.fill(value);
  return digest;
}

row_record instance_row() {
  row_record row;
  row.state = allocation_state::active;
  row.owner = owner;
  row.generation = detail::object_generation{5};
  row.authority = detail::authority_generation{6};
  row.stable_type = "cart";
  row.node = node;
  row.slots = slots_of(object_kind::instance_spot, "cart");
  return row;
}

/// Every optional part in some row.
std::vector<row_record> rows() {
  std::vector<row_record> all{instance_row()};
  auto row = instance_row();
  row.root = recovery_root{"ref", digest_of(1), 1ULL << 40, 3};
  row.closing = true;
  row.payload_lost = true;
  all.push_back(row);
  row = instance_row();
  row.kind = object_kind::actor;
  row.slots = slots_of(object_kind::actor, "cart");
  row.member_of = spot_membership{std::string{"a\0b", 3}, detail::object_generation{9}};
  row.aggregate = {7, 8};
  all.push_back(row);
  row.state = allocation_state::reserved;
  row.member_of.reset();
  row.aggregate = {};
  row.pending = pending_creation{{3, 4}, request_content{"bytes", 5, digest_of(2)}, 30'000};
  all.push_back(row);
  row.pending->request = request_content{"", request_content::inline_limit + 1, digest_of(2)};
  all.push_back(row);
  row = instance_row();
  row.state = allocation_state::reserved;
  row.pending = pending_creation{{3, 4}, std::nullopt};
  row.root = recovery_root{"ref", digest_of(1), 0, 0};
  all.push_back(row);
  row = instance_row();
  row.move = move_progress{};
  row.move->relocation = {1, 2};
  row.move->list_digest = digest_of(9);
  all.push_back(row);
  row.move->stage = move_stage::prepared;
  row.move->attempt = detail::attempt_generation{~0ULL};
  row.move->reservation = {5, 6};
  row.move->target_owner = owner;
  row.move->target = node;
  row.move->slots = {3, 1, 1, object_kind::user_spot, "cart"};
  all.push_back(row);
  return all;
}

aggregate_record aggregate() {
  aggregate_record a;
  a.id = {7, 8};
  a.generation = detail::aggregate_generation{5};
  a.owner = owner;
  a.node = node;
  a.authority_before = detail::authority_generation{6};
  a.slots = {3, 1, 1, object_kind::user_spot, "room"};
  a.participants = {1, 4, digest_of(3)};
  return a;
}

/// Without a move, at its beginning, prepared, committed.
std::vector<aggregate_record> aggregates() {
  std::vector<aggregate_record> all{aggregate()};
  for (const auto stage : {move_stage::preparing, move_stage::prepared, move_stage::committed}) {
    auto one = aggregate();
    auto& move = one.move.emplace();
    move.relocation = {1, 2};
    move.stage = stage;
    move.list_digest = digest_of(3);
    if (stage != move_stage::preparing) {
      move.attempt = detail::attempt_generation{9};
      move.reservation = {5, 6};
      move.target_owner = owner;
      move.target = node;
      one.authority = detail::authority_generation{stage == move_stage::committed ? 77U : 0U};
    }
    all.push_back(one);
  }
  return all;
}

participant_page page() {
  participant_page p;
  p.entries.push_back({object_kind::user_spot, "room", detail::object_generation{1}, detail::authority_generation{2}, "r", {}});
  p.entries.push_back({object_kind::actor, std::string{"a\0b", 3}, detail::object_generation{3},
                       detail::authority_generation{4}, "player", spot_membership{"room", detail::object_generation{1}}});
  return p;
}

descriptor_record descriptor() {
  descriptor_record d;
  d.node = node;
  d.owner = owner;
  d.state = node_state::serving;
  d.role = object_role::server;
  d.revision = detail::descriptor_revision{77};
  d.endpoint = "tcp://host:1";
  d.entry_spot_id = "rid-entry";
  d.placement_weight = 10'000;
  d.channels = {{"orders", 100}, {"", 0}};
  d.capabilities = {{object_kind::actor, "player", relocation_policy::preserve_state, true, 5, {1, 2}},
                    {object_kind::user_spot, "room", relocation_policy::disabled, false, 0, {}}};
  d.actor_limit = slot_limit;
  d.spot_limit = 4;
  d.actors = {3, 2};
  d.spots = {1, 0};
  d.activations = 7;
  d.activation_limit = 128;
  d.application_version = "1.2.3";
  d.maintenance_wave = 0;
  d.security_identity = "CN=node";
  d.updated_unix_ms = 1'700'000'000'000;
  return d;
}

/// Encoded and decoded again; cut and lengthened; of an unknown version; as another record.
template <class Record>
void check_record(const Record& record) {
  const auto bytes = encode(record);
  const auto back = decode<Record>(bytes);
  REQUIRE(std::holds_alternative<Record>(back));
  CHECK(std::get<Record>(back) == record);
  CHECK(encode(std::get<Record>(back)) == bytes);
  const auto fault = [](const std::string& wrong) {
    const auto result = decode<Record>(wrong);
    return std::holds_alternative<record_fault>(result) ? std::optional{std::get<record_fault>(result)} : std::nullopt;
  };
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK(fault(bytes.substr(0, length)) == record_fault::corrupt);
  CHECK(fault(bytes + '\0') == record_fault::corrupt);
  auto newer = bytes;
  ++newer[1];
  CHECK(fault(newer) == record_fault::unknown_version);
  auto other = bytes;
  other[0] = '?';
  CHECK(fault(other) == record_fault::corrupt);
}

std::string hex(const std::string& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char c : bytes)
    (text += digits[c >> 4]) += digits[c & 15];
  return text;
}

} // namespace

TEST_CASE("S-21 S-23 rows with every part survive; cut, lengthened and newer ones are refused") {
  for (const auto& row : rows()) {
    check_record(row);
    check_record(object_record{row});
  }
}

TEST_CASE("S-21 S-27 the other records survive; cut, lengthened and newer ones are refused") {
  check_record(entry_claim{node, owner});
  check_record(object_record{entry_claim{node, owner}});
  check_record(lease_record{owner});
  check_record(descriptor());
  descriptor_record claimed;
  claimed.node = node;
  claimed.owner = owner;
  check_record(claimed);
  check_record(capacity_record{node.lifecycle, {1, 2}, {3, 4}, {{object_kind::user_spot, "room", {5, 6}}}});
  check_record(creation_terminal{creation_result::created, detail::object_generation{4}, node, "reply", digest_of(3)});
  check_record(creation_terminal{creation_result::rejected, {}, {}, std::string{}, digest_of(3)});
  check_record(creation_terminal{});
  check_record(counter_record{generation_limit});
  check_record(epoch_record{{1, 2}});
}

TEST_CASE("S-21 S-86 S-87 aggregates and pages of their lists survive; cut, lengthened and newer ones are refused") {
  for (const auto& one : aggregates())
    check_record(one);
  check_record(page());
  const auto is_corrupt = [](auto record) {
    return std::holds_alternative<record_fault>(decode<decltype(record)>(encode(record)));
  };
  std::vector<aggregate_record> bad(6, aggregate());
  bad[0].id = {};
  bad[1].generation = {};
  bad[2].authority_before = {};
  bad[3].slots = {};
  bad[4].participants.count = 0;
  bad[5].participants.pages = 5;
  for (const auto& one : bad)
    CHECK(is_corrupt(one));
  CHECK(is_corrupt(participant_page{}));
  auto nameless = page();
  nameless.entries[1].id.clear();
  CHECK(is_corrupt(nameless));
  participant_page large;
  large.entries.assign(participant_page::most_entries, page().entries[1]);
  CHECK(!is_corrupt(large));
  large.entries.push_back(page().entries[1]);
  CHECK(is_corrupt(large));
}

TEST_CASE("S-31 the number of an aggregate's owner is stamped into its bytes, and into nothing else of them") {
  for (const auto& one : aggregates()) {
    auto bytes = encode(one);
    stamp_generations(bytes, {detail::object_generation{1234}, detail::authority_generation{0x0102030405060708}});
    auto wanted = one;
    wanted.authority.value = 0x0102030405060708;
    CHECK(bytes == encode(wanted));
  }
}

TEST_CASE("S-23 the encoding of a row is what it was") {
  CHECK(hex(encode(instance_row()))
        == "52010103"                             // row, version 1, active, Instance Spot
           "05000000000000000600000000000000"     // generations 5 and 6
           "887766554433221100ffeeddccbbaa99ac02" // owner and lease 300
           "0463617274"                           // "cart"
           "046d657368037269640807060504030201"   // mesh, rid, lifecycle
           "0001010304636172"                     // no Actor, 1 Spot, 1 of type 3 "cart"
           "74");
  CHECK(encode(instance_row()).size() < 80);
}

TEST_CASE("S-21 a record that contradicts itself is corrupt") {
  const auto is_corrupt = [](const row_record& row) {
    const auto result = decode<row_record>(encode(row));
    return std::holds_alternative<record_fault>(result) && std::get<record_fault>(result) == record_fault::corrupt;
  };
  const auto good = instance_row();
  auto row = good;
  row.generation = {};
  CHECK(is_corrupt(row));
  row = good;
  row.slots = {};
  CHECK(is_corrupt(row));
  row = good;
  row.state = allocation_state::reserved;
  CHECK(is_corrupt(row));
  row = good;
  row.pending = pending_creation{{1, 1}, std::nullopt};
  CHECK(is_corrupt(row));
  row = good;
  row.owner.lease = {};
  CHECK(is_corrupt(row));
  row = good;
  row.node.lifecycle = {};
  CHECK(is_corrupt(row));
  CHECK(std::holds_alternative<record_fault>(decode<counter_record>(encode(counter_record{0}))));
  CHECK(std::holds_alternative<record_fault>(decode<counter_record>(encode(counter_record{generation_limit + 1}))));
}

TEST_CASE("S-13 S-21 a number has one encoding only, so equal records are equal bytes") {
  auto bytes = encode(counter_record{4});
  REQUIRE(bytes.back() == 4);
  bytes.back() = static_cast<char>(0x84);
  bytes += '\0';
  const auto result = decode<counter_record>(bytes);
  REQUIRE(std::holds_alternative<record_fault>(result));
  CHECK(std::get<record_fault>(result) == record_fault::corrupt);
}

TEST_CASE("S-21 random bytes never decode to nonsense and never read beyond their end") {
  counting_random random{7};
  const auto hunt = [&]<class Record>(const Record& record) {
    const auto good = encode(record);
    for (int i = 0; i < 20'000; ++i) {
      auto bytes = good;
      for (auto flips = 1 + random.below(4); flips > 0; --flips)
        bytes[random.below(bytes.size())] = static_cast<char>(random.next());
      const auto result = decode<Record>(bytes);
      if (std::holds_alternative<Record>(result))
        CHECK(encode(std::get<Record>(result)).size() <= bytes.size());
    }
  };
  hunt(rows().back());
  hunt(aggregates().back());
  hunt(page());
}

TEST_CASE("S-22 different identities have different keys, whatever characters they hold") {
  const std::vector<std::string> parts{
    "",  "a",  "1",   ":",  "1:", "1:a", "a1:",     std::string{"\0", 1}, std::string{"a\0", 2}, "s",
    "d", "2:", "1:1", "ab", "b",  "12",  "\xc3\xbc"};
  std::set<std::string> keys;
  std::size_t identities = 0;
  const auto add = [&](std::string key) {
    ++identities;
    CHECK(detail::is_utf8(key));
    keys.insert(std::move(key));
  };
  for (const auto& a : parts) {
    add(actor_key(a));
    add(spot_key(a));
    for (const auto& b : parts) {
      add(descriptor_key(a, b));
      add(capacity_key(a, b));
    }
    for (std::uint64_t n : {1ULL, 16ULL, 0xffff'ffff'ffff'ffffULL}) {
      add(terminal_key(a, detail::lifecycle_generation{n}, {1, 2}));
      add(terminal_key(a, detail::lifecycle_generation{n}, {2, 1}));
    }
  }
  for (const detail::unique_id id : {detail::unique_id{1, 2}, detail::unique_id{2, 1}, detail::unique_id{0x12, 0}}) {
    add(lease_key(id));
    add(content_key(id));
    add(aggregate_key(id));
    for (const std::uint32_t index : {0U, 1U, 16U})
      add(aggregate_page_key(id, index));
  }
  for (const auto which : {sequence::lease, sequence::object, sequence::authority})
    add(counter_key(which));
  add(epoch_key());
  // The only collisions are those of the empty part with itself; "a" as id is not "a" the mark.
  CHECK(keys.size() == identities);
}

TEST_CASE("S-22 Entry, User and Instance Spots share one key space, Actors have their own") {
  CHECK(object_key(object_kind::user_spot, "x") == object_key(object_kind::instance_spot, "x"));
  CHECK(object_key(object_kind::user_spot, "x") == spot_key("x"));
  CHECK(object_key(object_kind::actor, "x") != spot_key("x"));
  CHECK(id_in_key(spot_key("x\xc3\xbc")) == "x\xc3\xbc");
  CHECK(spot_key("x").starts_with(spot_prefix()));
  CHECK(descriptor_key("m", "r").starts_with(descriptor_prefix("m")));
  CHECK(!descriptor_key("m1", "r").starts_with(descriptor_prefix("m")));
  CHECK(descriptor_key("m1", "r").starts_with(descriptor_prefix()));
}
