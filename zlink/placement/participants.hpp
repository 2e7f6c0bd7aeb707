// The list of an aggregate's participants, as pages and as the root that verifies them (S-86, S-87). No I/O.
#pragma once

#include "zlink/placement/records.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlink::placement {

/// A list ready to be stored: pages first, then the record with the root.
struct encoded_participants {
  participant_root root;
  slot_bundle slots; ///< of all of them (L-104)
  detail::authority_generation authority_before;
  std::vector<std::string> pages; ///< to stand under `aggregate_page_key(id, 0)` and so on
};

/// What a row that was seen says of itself, for the list.
participant participant_of(std::string id, const row_record& row);

/// Nothing: that is no SpotWide Spot with its members — exactly one User Spot, Actors that belong to it, and nobody twice.
std::optional<encoded_participants> encode_participants(const std::vector<participant>& list);

/// Takes the pages in their order and tells whether they are the list that the root means.
class participant_reader {
public:
  explicit participant_reader(const participant_root& root) : root_(root) {}
  /// False: that is no page.
  bool add(std::string_view page);
  /// The whole list, or nothing: pages, number and digest must all be right (S-87).
  std::optional<std::vector<participant>> finish();

private:
  const participant_root root_;
  std::vector<participant> list_;
  std::string digests_;
  std::uint32_t pages_ = 0;
};

} // namespace zlink::placement
