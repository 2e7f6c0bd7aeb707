#include "zlink/placement/participants.hpp"

#include "zlink/placement/capacity.hpp"
#include "zlink/placement/digest.hpp"
#include "zlink/placement/record_codec.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace zlink::placement {

namespace {

/// Ids and types have 255 bytes at most (C-25, C-51), so a full page of them stays below the store's bound.
constexpr std::size_t most_entry_bytes = 3 * 255 + 64;
static_assert(participant_page::most_entries * most_entry_bytes < store_bounds::value_bytes);

void append(std::string& digests, std::string_view page) {
  const auto digest = sha256(page);
  digests.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

bool is_room_with_members(const std::vector<participant>& list) {
  const auto is_spot = [](const participant& one) { return one.kind == object_kind::user_spot; };
  const auto room = std::find_if(list.begin(), list.end(), is_spot);
  if (room == list.end() || list.size() > slot_limit)
    return false;
  const spot_membership inside{room->id, room->generation};
  std::unordered_set<std::string_view> actors;
  for (const auto& one : list) {
    if (&one == &*room)
      continue;
    if (one.kind != object_kind::actor || one.member_of != inside || !actors.insert(one.id).second)
      return false;
  }
  return std::all_of(list.begin(), list.end(), [](const participant& one) {
    return detail::is_valid_id(one.id) && one.generation && one.authority && detail::is_valid_id(one.stable_type);
  });
}

} // namespace

participant participant_of(std::string id, const row_record& row) {
  return {row.kind, std::move(id), row.generation, row.authority, row.stable_type, row.member_of};
}

std::optional<encoded_participants> encode_participants(const std::vector<participant>& list) {
  if (!is_room_with_members(list))
    return std::nullopt;
  encoded_participants made;
  std::string digests;
  participant_page page;
  const auto end_page = [&] {
    made.pages.push_back(encode(page));
    append(digests, made.pages.back());
    page.entries.clear();
  };
  for (const auto& one : list) {
    if (page.entries.size() == participant_page::most_entries)
      end_page();
    page.entries.push_back(one);
    const auto slots = slots_of(one.kind, one.stable_type);
    made.slots.actors += slots.actors;
    if (slots.spots != 0) {
      const auto actors = made.slots.actors;
      made.slots = slots;
      made.slots.actors = actors;
    }
    made.authority_before = std::max(made.authority_before, one.authority);
  }
  end_page();
  made.root = {static_cast<std::uint32_t>(made.pages.size()), static_cast<std::uint32_t>(list.size()), sha256(digests)};
  return made;
}

bool participant_reader::add(std::string_view page) {
  auto read = decode<participant_page>(page);
  if (std::holds_alternative<record_fault>(read))
    return false;
  for (auto& one : std::get<participant_page>(read).entries)
    list_.push_back(std::move(one));
  append(digests_, page);
  ++pages_;
  return true;
}

std::optional<std::vector<participant>> participant_reader::finish() {
  if (pages_ != root_.pages || list_.size() != root_.count || sha256(digests_) != root_.digest)
    return std::nullopt;
  return std::move(list_);
}

} // namespace zlink::placement
