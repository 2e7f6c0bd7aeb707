// Where carts lie while they are no Spots: what a database would be. Used by many Spots at once, so it locks itself.
#pragma once

#include "cart_packets.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>

class shelf {
public:
  void put(const std::string& cart_id, cart_reply content);
  void remove(const std::string& cart_id);
  /// An empty cart if there is none.
  cart_reply take(const std::string& cart_id);

  /// Blocks until the cart lies here, or is removed; for the story that main() tells.
  void wait_until_put(const std::string& cart_id);
  void wait_until_removed(const std::string& cart_id);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, cart_reply> carts_;
  std::set<std::string> removed_;
};
