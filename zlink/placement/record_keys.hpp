// Where each record stands in the Location Store. Different identities never share a key, whatever characters they
// hold: only the last field of a key has no length in front of it (S-22).
#pragma once

#include "zlink/placement/records.hpp"

#include <string>
#include <string_view>

namespace zlink::placement {

/// An Actor's row.
std::string actor_key(std::string_view actor_id);
/// The row of a User or Instance Spot, or the claim of an Entry Spot: these share one key space (S-22).
std::string spot_key(std::string_view spot_id);
std::string object_key(object_kind kind, std::string_view id);
/// The same by address: see object_address.hpp.
std::string address_key(std::string_view address);
std::string address_of(object_kind kind, const std::string& id);

std::string lease_key(const detail::unique_id& owner);
std::string descriptor_key(std::string_view mesh_name, std::string_view node_rid);
std::string capacity_key(std::string_view mesh_name, std::string_view node_rid);
inline std::string descriptor_key(const node_identity& node) { return descriptor_key(node.mesh_name, node.node_rid); }
inline std::string capacity_key(const node_identity& node) { return capacity_key(node.mesh_name, node.node_rid); }

enum class sequence : std::uint8_t { lease, object, authority };
std::string counter_key(sequence which);

/// How a creation of this operation ended (C-74).
std::string terminal_key(std::string_view source_rid, detail::lifecycle_generation source_lifecycle,
                         const detail::operation_id& operation);
/// A creation request that is too long for its row.
std::string content_key(const detail::unique_id& reservation);
/// The record that decides who owns the objects of an aggregate (S-88), and the pages of their list (S-86).
std::string aggregate_key(const detail::unique_id& aggregate);
std::string aggregate_page_key(const detail::unique_id& aggregate, std::uint32_t index);
std::string epoch_key();
/// What a host leaves in a data set that is not the one of its lease, to see that it is still the same later (S-142).
std::string watch_key(const detail::unique_id& owner);

/// For scans. Ids follow the prefix: `id_in_key`.
std::string actor_prefix();
std::string spot_prefix();
/// All descriptors, or those of one mesh.
std::string descriptor_prefix();
std::string descriptor_prefix(std::string_view mesh_name);
/// The Actor or Spot id in a key that `actor_key` or `spot_key` made.
std::string_view id_in_key(std::string_view key) noexcept;

} // namespace zlink::placement
