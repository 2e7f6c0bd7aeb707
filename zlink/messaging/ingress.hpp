// What arrives by one link and waits for a host permit, in order.
#pragma once

#include "zlink/execution/job_permits.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/wire.hpp"
#include "zlink/unique_function.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

namespace zlink::detail {

class ingress final : public limit_waiter, public std::enable_shared_from_this<ingress> {
public:
  /// `deliver` brings a record that holds a permit to its object; any thread, one call at a time and in order.
  /// `source`: the peer's RID, which outlives every record.
  ingress(job_permits& permits, counted_ptr<link_session> link, const std::string& source,
          unique_function<void(unique_function<void()>)> later);
  ~ingress();

  using job = unique_function<void()>;
  /// True: there is a permit and nobody waits; the caller delivers now, with that permit. False: call `wait()`. The
  /// transport's thread only.
  bool may_deliver_now();
  /// Delivers `r` later, in order and with a permit; then `link` gets credit for `wire_bytes`.
  void wait(record* r, job deliver, std::uint32_t wire_bytes);
  const std::string& source() const noexcept { return source_; }
  /// The link is gone: what waits is still delivered, nobody is told.
  void detach() noexcept;

  void on_entered() noexcept override;

private:
  struct waiting {
    record* r;
    job deliver;
    std::uint32_t wire_bytes;
  };
  void drain();
  /// A permit for the next one, or the place in the line until there is one. False also when nothing waits any more.
  bool next_permitted();

  job_permits& permits_;
  const std::string& source_;
  unique_function<void(unique_function<void()>)> later_;
  std::mutex mutex_;
  counted_ptr<link_session> link_;
  std::deque<waiting> waiting_;
  std::deque<waiting> drained_;      ///< taken from `waiting_`; whoever stands in line uses it, without the lock
  std::shared_ptr<ingress> in_line_; ///< keeps itself alive while it stands in line
  std::atomic<bool> someone_waits_{false};
};

} // namespace zlink::detail
