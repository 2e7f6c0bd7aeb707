#include "zlink/objects/subscriptions.hpp"

#include <algorithm>

namespace zlink::detail {

subscriptions::key subscriptions::key_of(std::string_view channel, std::string_view topic) {
  key made = std::to_string(channel.size());
  made += ':';
  made += channel;
  made += topic;
  return made;
}

void subscriptions::add(spot_object& object) {
  const auto events = object.events();
  if (events.empty())
    return;
  std::lock_guard guard{mutex_};
  auto& mine = keys_[&object];
  for (const auto& event : events) {
    auto wanted = key_of(event.channel, event.topic);
    if (std::ranges::find(mine, wanted) != mine.end())
      continue; // another packet of the same topic
    spots_[wanted].push_back(counted_ptr<spot_object>::share(&object));
    mine.push_back(std::move(wanted));
  }
}

void subscriptions::remove(spot_object& object) noexcept {
  std::vector<counted_ptr<spot_object>> gone; // released outside of the lock
  std::lock_guard guard{mutex_};
  const auto i = keys_.find(&object);
  if (i == keys_.end())
    return;
  for (const auto& wanted : i->second) {
    auto& spots = spots_[wanted];
    const auto place = std::ranges::find(spots, &object, &counted_ptr<spot_object>::get);
    gone.push_back(std::move(*place));
    spots.erase(place);
    if (spots.empty())
      spots_.erase(wanted);
  }
  keys_.erase(i);
}

std::vector<counted_ptr<spot_object>> subscriptions::match(std::string_view channel, std::string_view topic) const {
  std::lock_guard guard{mutex_};
  const auto i = spots_.find(key_of(channel, topic));
  return i == spots_.end() ? std::vector<counted_ptr<spot_object>>{} : i->second;
}

} // namespace zlink::detail
