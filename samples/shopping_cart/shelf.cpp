#include "shelf.hpp"

#include <utility>

void shelf::put(const std::string& cart_id, cart_reply content) {
  std::lock_guard guard{mutex_};
  carts_[cart_id] = std::move(content);
  changed_.notify_all();
}

void shelf::remove(const std::string& cart_id) {
  std::lock_guard guard{mutex_};
  carts_.erase(cart_id);
  removed_.insert(cart_id);
  changed_.notify_all();
}

cart_reply shelf::take(const std::string& cart_id) {
  std::lock_guard guard{mutex_};
  auto found = carts_.extract(cart_id);
  return found.empty() ? cart_reply{} : std::move(found.mapped());
}

void shelf::wait_until_put(const std::string& cart_id) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return carts_.contains(cart_id); });
}

void shelf::wait_until_removed(const std::string& cart_id) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return removed_.contains(cart_id); });
}
