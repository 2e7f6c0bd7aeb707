#include "zlink/placement/generations.hpp"

#include "zlink/placement/record_codec.hpp"

#include <algorithm>

namespace zlink::placement {

namespace {

std::uint64_t first_number(store_time now, bool process_local) noexcept {
  if (process_local)
    return 1;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(now.time_since_epoch().count(), 1));
}

} // namespace

std::optional<counter_advance> advance_counter(sequence which, const observed<counter_record>& seen,
                                               std::uint64_t wanted, bool process_local) {
  const auto next = seen.record ? seen.record->next : first_number(seen.now, process_local);
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
