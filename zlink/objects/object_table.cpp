#include "zlink/objects/object_table.hpp"

namespace zlink::detail {

void object_table::replace(hosted_object& out, counted_ptr<hosted_object> in) {
  const hashed_address key{out};
  auto& part = shard_of(key);
  counted_ptr<hosted_object> gone; // released outside of the lock
  std::lock_guard guard{part.mutex};
  const auto i = part.objects.find(key);
  if (i != part.objects.end() && i->get() == &out) {
    gone = *i;
    part.objects.erase(i);
  }
  part.objects.insert(std::move(in));
}

counted_ptr<detour> object_table::divert(std::string_view address, counted_ptr<detour> by) {
  auto& part = shard_of(hashed_address{address});
  std::lock_guard guard{part.mutex};
  std::swap(part.detours[std::string{address}], by);
  return by;
}

void object_table::replace_detour(std::string_view address, const detour& which, counted_ptr<detour> by) {
  auto& part = shard_of(hashed_address{address});
  std::lock_guard guard{part.mutex};
  const auto i = part.detours.find(address);
  if (i == part.detours.end() || i->second.get() != &which)
    return;
  if (!by) {
    by = std::move(i->second); // released outside of the lock
    part.detours.erase(i);
  } else {
    std::swap(i->second, by);
  }
}

bool object_table::erase(hosted_object& object) noexcept {
  const hashed_address key{object};
  auto& part = shard_of(key);
  counted_ptr<hosted_object> gone;
  std::lock_guard guard{part.mutex};
  const auto i = part.objects.find(key);
  if (i == part.objects.end() || i->get() != &object)
    return false;
  gone = *i;
  part.objects.erase(i);
  removed(object);
  return true;
}

std::size_t object_table::size() const noexcept {
  std::size_t count = 0;
  for (auto& part : shards_) {
    std::lock_guard guard{part.mutex};
    count += part.objects.size();
  }
  return count;
}

std::vector<counted_ptr<spot_object>> object_table::snapshot() const {
  std::vector<counted_ptr<spot_object>> all;
  for (auto& part : shards_) {
    std::lock_guard guard{part.mutex};
    for (const auto& object : part.objects)
      if (!object->is_actor())
        all.push_back(counted_ptr<spot_object>::share(static_cast<spot_object*>(object.get())));
  }
  return all;
}

std::vector<counted_ptr<actor_object>> object_table::actor_snapshot() const {
  std::vector<counted_ptr<actor_object>> all;
  for (auto& part : shards_) {
    std::lock_guard guard{part.mutex};
    for (const auto& object : part.objects)
      if (object->is_actor())
        all.push_back(counted_ptr<actor_object>::share(static_cast<actor_object*>(object.get())));
  }
  return all;
}

} // namespace zlink::detail
