#include "zlink/placement/generations.hpp"

#include "zlink/placement/record_codec.hpp"

#include <algorithm>

namespace zlink::placement {

std::uint64_t first_number(const observed<counter_record>& seen, bool process_local) noexcept {
  if (seen.record)
    return seen.record->next;
  if (process_local)
    return 1;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seen.now.time_since_epoch().count(), 1));
}

bool counter_copies::note(sequence which, const store_read_result& seen) {
  auto& mine = place(which);
  const bool changed = !mine.seen || mine.seen->version != (seen.found ? seen.found->version : std::string{});
  auto record = observe<counter_record>(seen);
  auto* readable = std::get_if<observed<counter_record>>(&record);
  mine.unreadable = readable == nullptr;
  mine.seen = readable ? std::move(*readable) : observed<counter_record>{};
  return changed;
}

void counter_copies::note_issued(sequence which, std::uint64_t next, std::string version) {
  auto& mine = place(which).seen.emplace();
  mine.record = counter_record{next};
  mine.version = std::move(version);
}

std::optional<counter_advance> advance_counter(sequence which, const observed<counter_record>& seen,
                                               std::uint64_t wanted, bool process_local) {
  const auto next = first_number(seen, process_local);
  if (next >= generation_limit || wanted == 0)
    return std::nullopt;
  counter_advance advance;
  advance.first = next;
  advance.count = std::min(wanted, generation_limit - next); // the limit itself is the mark, never issued
  const auto key = counter_key(which);
  advance.condition = {seen.record ? store_condition::test::version : store_condition::test::missing, key,
                       seen.version};
  advance.mutation = {key, encode(counter_record{next + advance.count}), std::nullopt};
  return advance;
}

} // namespace zlink::placement
