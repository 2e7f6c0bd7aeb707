// What the layer keeps in the Location Store (S-21 to S-28), as plain values. Encoding: record_codec.hpp; keys:
// record_keys.hpp.
#pragma once

#include "zlink/identity.hpp"
#include "zlink/location_store.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace zlink::placement {

/// SHA-256.
using content_digest = std::array<std::uint8_t, 32>;

/// Which run of a host: a random id of the process run and the acquisition of its lease (S-35).
struct owner_token {
  detail::unique_id owner;
  detail::lease_generation lease;
  friend bool operator==(const owner_token&, const owner_token&) = default;
};

/// The two numbers of an incarnation that the store's counters issue (S-31).
struct new_generations {
  detail::object_generation object;
  detail::authority_generation authority;
  friend bool operator==(const new_generations&, const new_generations&) = default;
};

/// Which run of which mesh node.
struct node_identity {
  std::string mesh_name;
  std::string node_rid;
  detail::lifecycle_generation lifecycle;
  friend bool operator==(const node_identity&, const node_identity&) = default;
};

enum class object_kind : std::uint8_t { actor = 1, user_spot = 2, instance_spot = 3 };

/// The spot kind of a Spot's row; `invalid` for an Actor.
constexpr spot_kind spot_kind_of(object_kind kind) noexcept {
  switch (kind) {
    case object_kind::actor: return spot_kind::invalid;
    case object_kind::user_spot: return spot_kind::user;
    case object_kind::instance_spot: return spot_kind::instance;
  }
  return spot_kind::invalid;
}

// -- capacity (S-80) ------------------------------------------------------------------------------------------------

/// Largest number of slots in a bucket.
inline constexpr std::uint32_t slot_limit = 0x7fff'ffff;

/// The slots an object or an aggregate takes, all or none (C-36). `type_slots` count in the bucket of (kind, type).
struct slot_bundle {
  std::uint32_t actors = 0;
  std::uint32_t spots = 0;
  std::uint32_t type_slots = 0;
  object_kind type_kind = object_kind::instance_spot;
  std::string type;
  bool empty() const noexcept { return actors == 0 && spots == 0 && type_slots == 0; }
  friend bool operator==(const slot_bundle&, const slot_bundle&) = default;
};

struct slot_bucket {
  std::uint32_t active = 0;
  std::uint32_t reserved = 0;
  friend bool operator==(const slot_bucket&, const slot_bucket&) = default;
};

struct type_bucket {
  object_kind kind = object_kind::instance_spot;
  std::string type;
  slot_bucket slots;
  friend bool operator==(const type_bucket&, const type_bucket&) = default;
};

/// Slots in use on one node lifecycle. Types in ascending order, none of them empty.
struct capacity_record {
  detail::lifecycle_generation lifecycle;
  slot_bucket actors;
  slot_bucket spots;
  std::vector<type_bucket> types;
  friend bool operator==(const capacity_record&, const capacity_record&) = default;
};

// -- the row (S-23) -------------------------------------------------------------------------------------------------

enum class allocation_state : std::uint8_t { reserved = 1, active = 2 };

/// The encoded creation request (C-68). Short ones stand in the row, others under `content_key(reservation)`.
struct request_content {
  static constexpr std::size_t inline_limit = 16 * 1024;
  static constexpr std::size_t size_limit = 1024 * 1024;
  std::string bytes; ///< empty if stored apart
  std::uint32_t size = 0;
  content_digest digest{};
  bool is_apart() const noexcept { return size > inline_limit; }
  friend bool operator==(const request_content&, const request_content&) = default;
};

/// Only in a reserved row: who reserved it and, for an Actor or User Spot, what for.
struct pending_creation {
  detail::unique_id reservation;
  std::optional<request_content> request;
  std::uint64_t patience_ms = 0; ///< from the reservation until nobody waits for its end any more (S-83)
  friend bool operator==(const pending_creation&, const pending_creation&) = default;
};

/// Where the first activation's envelope lies in the Relocation Store, and how far it was handled (C-94 to C-97).
struct recovery_root {
  std::string reference;
  content_digest digest{};
  std::uint64_t size = 0;
  std::uint64_t cursor = 0; ///< 0: the first record's handler has not ended
  friend bool operator==(const recovery_root&, const recovery_root&) = default;
};

/// The Entry or User Spot that an Actor belongs to (S-85).
struct spot_membership {
  std::string spot_id;
  detail::object_generation spot_generation; ///< none for an Entry Spot, which has no row
  friend bool operator==(const spot_membership&, const spot_membership&) = default;
};

enum class move_stage : std::uint8_t { preparing = 1, captured = 2, prepared = 3, committed = 4, completed = 5 };

/// Progress of a move (S-96). Target fields are set from `prepared` on.
struct move_progress {
  detail::unique_id relocation;
  move_stage stage = move_stage::preparing;
  detail::attempt_generation attempt;
  detail::unique_id reservation;
  owner_token target_owner;
  node_identity target;
  slot_bundle slots; ///< reserved on the target; empty before `prepared` and after the commit
  content_digest list_digest{};
  friend bool operator==(const move_progress&, const move_progress&) = default;
};

/// The authority record of an Actor or Spot.
struct row_record {
  allocation_state state = allocation_state::reserved;
  object_kind kind = object_kind::instance_spot;
  bool closing = false;
  bool payload_lost = false; ///< a stored payload is gone for good (S-129)
  owner_token owner;
  detail::object_generation generation;
  detail::authority_generation authority;
  std::string stable_type;
  node_identity node;
  slot_bundle slots;
  std::optional<pending_creation> pending;
  std::optional<recovery_root> root;
  std::optional<spot_membership> member_of;
  std::optional<move_progress> move;
  detail::unique_id aggregate; ///< the aggregate record that decides the owner (S-88); zero: this row does
  friend bool operator==(const row_record&, const row_record&) = default;
};

/// True while a move may still change the row's owner. One that was committed is over: only its id stays readable, until
/// the next change of progress overwrites it (S-96).
inline bool is_moving(const row_record& row) noexcept { return row.move && row.move->stage < move_stage::committed; }

/// Takes the place of a row for the id of an Entry Spot: one Spot id has one of the two at most (S-22, S-47).
struct entry_claim {
  node_identity node;
  owner_token owner;
  friend bool operator==(const entry_claim&, const entry_claim&) = default;
};

/// What stands under the key of an object.
using object_record = std::variant<row_record, entry_claim>;

// -- aggregates: a SpotWide Spot with its members, moved as one (S-86 to S-91) ---------------------------------------

/// One object of an aggregate: its identity and its membership, as the store shows them before the move; no state (S-86).
struct participant {
  object_kind kind = object_kind::actor;
  std::string id;
  detail::object_generation generation;
  detail::authority_generation authority;
  std::string stable_type;
  std::optional<spot_membership> member_of; ///< an Actor's
  friend bool operator==(const participant&, const participant&) = default;
};

/// A piece of the list of participants. Written once, never changed.
struct participant_page {
  static constexpr std::size_t most_entries = 1024;
  std::vector<participant> entries;
  friend bool operator==(const participant_page&, const participant_page&) = default;
};

/// What must verify before a list is used: its pages 0 to `pages - 1`, the number of participants, and the SHA-256 over
/// the digests of all pages (S-87).
struct participant_root {
  std::uint32_t pages = 0;
  std::uint32_t count = 0;
  content_digest digest{};
  friend bool operator==(const participant_root&, const participant_root&) = default;
};

/// Decides who owns every row that names it (S-88). Serves one move.
struct aggregate_record {
  detail::unique_id id;
  detail::aggregate_generation generation;
  owner_token owner;
  node_identity node;
  detail::authority_generation authority; ///< issued by the commit; zero before it
  /// The largest of the participants' before the move: the next one is larger (C-120).
  detail::authority_generation authority_before;
  slot_bundle slots; ///< of all participants
  participant_root participants;
  std::optional<move_progress> move;
  friend bool operator==(const aggregate_record&, const aggregate_record&) = default;
};

/// True while its move may still change the owner: no participant leaves so long.
inline bool is_moving(const aggregate_record& record) noexcept {
  return record.move && record.move->stage < move_stage::committed;
}

/// Gives a row that names this aggregate the owner, node and authority that it has by it (S-88).
inline void take_effective(row_record& row, const aggregate_record& by) {
  row.owner = by.owner;
  row.node = by.node;
  if (by.authority)
    row.authority = by.authority;
}

// -- hosts and nodes ------------------------------------------------------------------------------------------------

struct lease_record {
  owner_token token;
  friend bool operator==(const lease_record&, const lease_record&) = default;
};

enum class object_role : std::uint8_t { none = 0, client = 1, server = 2 };

/// `claimed`: identity only; every reader treats it as no descriptor (S-47).
enum class node_state : std::uint8_t {
  claimed = 0,
  preparing = 1,
  serving = 2,
  relocating = 3,
  relocated = 4,
  draining = 5,
  stopped = 6,
  error = 7,
};

enum class relocation_policy : std::uint8_t { disabled = 0, recreate = 1, preserve_state = 2 };

/// A type that a node can host. With its share of the capacity projection.
struct type_capability {
  object_kind kind = object_kind::instance_spot;
  std::string stable_type;
  relocation_policy policy = relocation_policy::disabled;
  bool has_adapter = false;
  std::uint32_t limit = 0; ///< 0: none
  slot_bucket slots;
  friend bool operator==(const type_capability&, const type_capability&) = default;
};

struct channel_weight {
  std::string channel;
  std::uint32_t weight = 0; ///< 0..10000
  friend bool operator==(const channel_weight&, const channel_weight&) = default;
};

/// S-27. Counts are hints; the capacity record decides (C-37).
struct descriptor_record {
  static constexpr std::size_t capability_limit = 1024;
  static constexpr std::uint32_t weight_limit = 10'000;

  node_identity node;
  owner_token owner;
  node_state state = node_state::claimed;
  object_role role = object_role::none;
  detail::descriptor_revision revision;
  std::string endpoint;
  std::string entry_spot_id; ///< role server only
  std::uint32_t placement_weight = 100;
  std::vector<channel_weight> channels;
  std::vector<type_capability> capabilities;
  std::uint32_t actor_limit = 0; ///< 0: none
  std::uint32_t spot_limit = 0;  ///< 0: none
  slot_bucket actors;
  slot_bucket spots;
  std::uint32_t activations = 0;
  std::uint32_t activation_limit = 0;
  std::string application_version;
  std::optional<std::uint32_t> maintenance_wave;
  std::string security_identity;
  std::uint64_t updated_unix_ms = 0; ///< for display (S-39)
  friend bool operator==(const descriptor_record&, const descriptor_record&) = default;
};

// -- the rest -------------------------------------------------------------------------------------------------------

enum class creation_result : std::uint8_t { created = 1, rejected = 2, failed = 3 };

/// How a creation ended, for a resend of the same operation (C-72, C-74).
struct creation_terminal {
  static constexpr std::size_t size_limit = 1024 * 1024; ///< encoded
  creation_result result = creation_result::failed;
  detail::object_generation generation; ///< `created` only
  node_identity node;                   ///< `created` only
  std::optional<std::string> reply;     ///< encoded
  content_digest digest{};              ///< of the reply
  friend bool operator==(const creation_terminal&, const creation_terminal&) = default;
};

/// One sequence each for leases, objects and authority owners.
struct counter_record {
  std::uint64_t next = 0; ///< 1..2^63-1; the last is the mark of exhaustion (S-30)
  friend bool operator==(const counter_record&, const counter_record&) = default;
};

/// Names this set of data; another one means that the store was emptied (S-142).
struct epoch_record {
  detail::unique_id epoch;
  friend bool operator==(const epoch_record&, const epoch_record&) = default;
};

// -- observations ---------------------------------------------------------------------------------------------------

/// A record as one read showed it. Absent, with `now` only: Missing.
template <class Record>
struct observed {
  std::optional<Record> record;
  std::string version;
  std::optional<store_time> expires_at;
  store_time now{};
};

using observed_object = observed<object_record>;
using observed_aggregate = observed<aggregate_record>;
using observed_lease = observed<lease_record>;
using observed_descriptor = observed<descriptor_record>;

/// The row, if a row is what was seen.
inline const row_record* row_in(const observed_object& seen) noexcept {
  return seen.record ? std::get_if<row_record>(&*seen.record) : nullptr;
}
inline const entry_claim* claim_in(const observed_object& seen) noexcept {
  return seen.record ? std::get_if<entry_claim>(&*seen.record) : nullptr;
}

} // namespace zlink::placement
