#include "zlink/objects/object_table.hpp"

namespace zlink::detail {

void object_table::replace(spot_object& out, counted_ptr<spot_object> in) {
  const hashed_id key{out};
  auto& part = shard_of(key);
  counted_ptr<spot_object> gone; // released outside of the lock
  std::lock_guard guard{part.mutex};
  const auto i = part.spots.find(key);
  if (i != part.spots.end() && i->get() == &out) {
    gone = *i;
    part.spots.erase(i);
  }
  part.spots.insert(std::move(in));
}

bool object_table::erase(spot_object& object) noexcept {
  const hashed_id key{object};
  auto& part = shard_of(key);
  counted_ptr<spot_object> gone;
  std::lock_guard guard{part.mutex};
  const auto i = part.spots.find(key);
  if (i == part.spots.end() || i->get() != &object)
    return false;
  gone = *i;
  part.spots.erase(i);
  return true;
}

std::size_t object_table::size() const noexcept {
  std::size_t count = 0;
  for (auto& part : shards_) {
    std::lock_guard guard{part.mutex};
    count += part.spots.size();
  }
  return count;
}

std::vector<counted_ptr<spot_object>> object_table::snapshot() const {
  std::vector<counted_ptr<spot_object>> all;
  for (auto& part : shards_) {
    std::lock_guard guard{part.mutex};
    all.insert(all.end(), part.spots.begin(), part.spots.end());
  }
  return all;
}

} // namespace zlink::detail
