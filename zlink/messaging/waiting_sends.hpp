// Sends that found no room in a lane of this node: a FIFO per object behind the lane's waiter bit, each entry with its own
// deadline (D-3, X-94, X-96 to X-98).
#pragma once

#include "zlink/execution/domain.hpp"
#include "zlink/execution/execution_object.hpp"
#include "zlink/execution/waiting_room.hpp"
#include "zlink/messaging/submission.hpp"

#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace zlink::detail {

class waiting_sends final : public waiting_room {
public:
  explicit waiting_sends(execution_domain& domain) noexcept;
  ~waiting_sends();
  waiting_sends(const waiting_sends&) = delete;
  waiting_sends& operator=(const waiting_sends&) = delete;

  /// Waits for room in `object`, behind those that wait already.
  void wait(execution_object& object, submission waiting);
  void room_in(execution_object& object) noexcept override;
  void wait_for_room(execution_object& object, record* r) override;
  /// The object takes nothing any more: those that wait for it, in order. Whoever has sealed it takes them.
  std::vector<submission> take(execution_object& object);
  std::size_t size() const noexcept;

private:
  class entry;
  using line = std::list<std::unique_ptr<entry>>;

  bool admit_front(execution_object& object, line& waiting, std::vector<std::unique_ptr<entry>>& done);
  void expire(entry& late) noexcept;

  execution_domain& domain_;
  mutable std::mutex mutex_;
  std::unordered_map<execution_object*, line> lines_;
};

} // namespace zlink::detail
