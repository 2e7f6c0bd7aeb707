#include "zlink/placement/publication.hpp"

#include "zlink/placement/record_codec.hpp"

namespace zlink::placement {

namespace {

/// The fields that never change inside a lifecycle (S-27), with all others at their defaults.
descriptor_record immutable_part(descriptor_record record) {
  record.owner = {};
  record.state = {};
  record.revision = {};
  record.placement_weight = 0;
  for (auto& channel : record.channels)
    channel.weight = 0;
  for (auto& capability : record.capabilities)
    capability.slots = {};
  record.actors = record.spots = {};
  record.activations = 0;
  record.maintenance_wave.reset();
  record.updated_unix_ms = 0;
  return record;
}

/// What is published at once when it changes: everything but counts and times (S-49).
descriptor_record urgent_part(descriptor_record record) {
  for (auto& capability : record.capabilities)
    capability.slots = {};
  record.owner = {};
  record.revision = {};
  record.actors = record.spots = {};
  record.activations = 0;
  record.updated_unix_ms = 0;
  return record;
}

} // namespace

publication judge_publication(const descriptor_record& published, const descriptor_record& next) {
  if (immutable_part(published) != immutable_part(next))
    return publication::refused;
  const bool only_counts = urgent_part(published) == urgent_part(next);
  if (next.revision && next.revision <= published.revision)
    return next.revision == published.revision && only_counts ? publication::replay : publication::refused;
  if (!next.revision && published.revision.value >= generation_limit)
    return publication::exhausted;
  if (next.revision.value > generation_limit)
    return publication::exhausted;
  return only_counts ? publication::counts : publication::change;
}

bool is_storable(const descriptor_record& record) {
  const auto bytes = encode(record);
  return bytes.size() <= store_bounds::value_bytes
         && std::holds_alternative<descriptor_record>(decode<descriptor_record>(bytes));
}

} // namespace zlink::placement
