// Messages that came from one run of a peer and wait for a host permit: in order, as the bytes that came (X-86, X-92, X-101,
// It outlives a link, so that what comes by the next one stays behind (M-148).
#pragma once

#include "zlink/execution/job_permits.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/unique_function.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

namespace zlink::detail {

class ingress final : public limit_waiter, public std::enable_shared_from_this<ingress> {
public:
  /// Opens a frame and brings its message to its target; a permit is held for it. Any thread, one call at a time and in order.
  using delivery = unique_function<void(link_session& link, byte_view frame, steady_time arrived)>;
  /// `source`: the peer's RID, which outlives every record. `later` runs a job on a thread of the layer.
  ingress(job_permits& permits, const std::string& source, delivery deliver,
          unique_function<void(unique_function<void()>)> later);

  /// True: there is a permit and nobody waits; the caller delivers now, with that permit. False: call `wait()`. The
  /// transport's thread only.
  bool may_deliver_now();
  /// Delivers the frame later, in order and with a permit; then the link gets credit for `wire_bytes`. Of a link that has
  /// ended meanwhile it is delivered all the same, and nobody is told.
  void wait(link_session& link, byte_view frame, std::uint32_t wire_bytes, steady_time arrived);
  const std::string& source() const noexcept { return source_; }

  void on_entered() noexcept override;
  void on_entered_here() noexcept override;

private:
  struct label {
    steady_time arrived;
    std::uint32_t frame_bytes;
    std::uint32_t wire_bytes;
  };
  /// What came by one link, each a label with its frame behind it; the memory serves again.
  struct line {
    counted_ptr<link_session> link;
    bytes content;
    std::size_t done = 0;
    bool empty() const noexcept { return done == content.size(); }
    void add(const label& what, byte_view frame);
    label front(byte_view& frame) const noexcept;
    void pop(const label& front) noexcept;
  };

  /// Only by who has got the permit of the place in line: nobody else is in here.
  void drain(unsigned most);
  void deliver_front();
  void take_line();
  /// A permit for the next one, or the place in line until there is one. False also when nothing waits any more.
  bool next_permitted();
  bool more_waits();
  bool leave_line();
  void tell_consumed();

  job_permits& permits_;
  const std::string& source_;
  delivery deliver_;
  unique_function<void(unique_function<void()>)> later_;
  std::mutex mutex_;
  std::deque<line> waiting_;         ///< none empty
  bytes spare_;                      ///< memory for the next line
  line drained_;                     ///< taken from `waiting_`; whoever drains uses it, without the lock
  std::uint64_t consumed_ = 0;       ///< and not told yet
  std::shared_ptr<ingress> in_line_; ///< keeps itself alive while something waits
  std::atomic<bool> someone_waits_{false};
};

} // namespace zlink::detail
