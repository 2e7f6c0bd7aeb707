// Batches received and not yet worked through. Cuts frames in slices, so that one busy peer does not hold up the others
// . Used by one thread at a time.
#pragma once

#include "zlink/messaging/wire.hpp"

#include <deque>
#include <utility>

namespace zlink::detail {

class inbound_batches {
public:
  bool empty() const noexcept { return waiting_.empty(); }
  std::uint64_t waiting_bytes() const noexcept { return waiting_bytes_; }

  /// Calls `use(frame)` for frames of what waited, then of `batch`, while it returns true; keeps the rest. Throws
  /// `decode_error` for broken framing.
  template <class F>
  void add(byte_view batch, std::uint64_t frame_limit, F use) {
    if (!waiting_.empty()) {
      keep(batch);
      return;
    }
    frame_reader in{batch};
    while (!in.at_end())
      if (!use(in.next(frame_limit)))
        break;
    if (!in.at_end())
      keep(in.rest());
  }
  /// The same for what waits.
  template <class F>
  void go_on(std::uint64_t frame_limit, F use) {
    bool more = true;
    while (more && !waiting_.empty()) {
      frame_reader in{byte_view{waiting_.front()}.subspan(done_)};
      while (more && !in.at_end())
        more = use(in.next(frame_limit));
      const auto used = waiting_.front().size() - done_ - in.rest().size();
      done_ += used;
      waiting_bytes_ -= used;
      if (in.at_end()) {
        if (waiting_.front().capacity() <= usual_bytes)
          spare_ = std::move(waiting_.front());
        waiting_.pop_front();
        done_ = 0;
      }
    }
  }
  void clear() noexcept {
    waiting_.clear();
    waiting_bytes_ = done_ = 0;
  }

private:
  void keep(byte_view rest) {
    waiting_.push_back(std::exchange(spare_, {}));
    waiting_.back().assign(rest.begin(), rest.end());
    waiting_bytes_ += rest.size();
  }

  /// A batch that is no larger leaves its memory to the next: new pages for each would have to be cleared by the kernel.
  static constexpr std::size_t usual_bytes = 512 * 1024;

  std::deque<bytes> waiting_;
  bytes spare_;
  std::size_t done_ = 0; ///< of the first
  std::uint64_t waiting_bytes_ = 0;
};

} // namespace zlink::detail
