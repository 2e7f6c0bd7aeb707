// Which Spots of a node receive what is published under a channel and topic, from Ready until their termination begins
// (M-115, M-117, M-125).
#pragma once

#include "zlink/objects/spot_object.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zlink::detail {

/// Any thread.
class subscriptions {
public:
  subscriptions() = default;
  subscriptions(const subscriptions&) = delete;
  subscriptions& operator=(const subscriptions&) = delete;

  /// What its `configure()` has registered.
  void add(spot_object& object);
  void remove(spot_object& object) noexcept;
  /// In the order in which they became Ready.
  std::vector<counted_ptr<spot_object>> match(std::string_view channel, std::string_view topic) const;

private:
  using key = std::string; ///< the length of the channel, the channel, the topic
  static key key_of(std::string_view channel, std::string_view topic);

  mutable std::mutex mutex_;
  std::unordered_map<key, std::vector<counted_ptr<spot_object>>> spots_;
  std::unordered_map<const spot_object*, std::vector<key>> keys_;
};

} // namespace zlink::detail
