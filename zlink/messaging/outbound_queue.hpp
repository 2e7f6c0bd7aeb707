// What waits to be written to one peer, in three paths that do not hold each other up: the link's own frames, replies
// and control, and data. Not thread-safe: its session locks.
#pragma once

#include "zlink/packet_type.hpp"

#include <cstdint>
#include <deque>

namespace zlink::detail {

/// Largest batch, except for one frame that is larger.
inline constexpr std::size_t batch_bytes = 256 * 1024;
/// Replies and control under way, not yet consumed by the peer; more of them stay here.
inline constexpr std::uint64_t reply_window_bytes = 4'096'000;

/// Frames in order, gathered into chunks that are written whole.
class frame_queue {
public:
  bool empty() const noexcept { return chunks_.empty(); }
  void append(byte_view frame);
  /// Bytes of the chunk that `take` returns; 0 if there is none.
  std::size_t front_bytes() const noexcept { return chunks_.empty() ? 0 : chunks_.front().size(); }
  bytes take();
  void clear() noexcept { chunks_.clear(); }

private:
  std::deque<bytes> chunks_; ///< none empty
};

class outbound_queue {
public:
  explicit outbound_queue(std::uint64_t limit_bytes) noexcept : limit_(limit_bytes) {}

  // -- data: bounded, charged until the peer has consumed it ----------------------------------------------------------

  /// Room by bytes and by the peer's pressure; one frame of any size fits when nothing is charged.
  bool has_room(std::size_t frame_bytes) const noexcept {
    return !paused_ && (charged() == 0 || charged() + frame_bytes <= limit_);
  }
  void push_data(byte_view frame) {
    data_.append(frame);
    admitted_ += frame.size();
  }
  std::uint64_t charged() const noexcept { return admitted_ - consumed_; }
  bool paused() const noexcept { return paused_; }
  void pause(bool on) noexcept { paused_ = on; }

  // -- everything else: never refused ---------------------------------------------------------------------------------

  void push_reply(byte_view frame) { replies_.append(frame); }
  /// Append frames here: they go before everything else, whatever the peer's credit.
  bytes& link_frames() noexcept { return link_frames_; }

  // -- the writer -----------------------------------------------------------------------------------------------------

  /// Absolute counts of what the peer has consumed (X-106: a stale value changes nothing). False: more than was ever
  /// sent.
  bool on_credit(std::uint64_t data, std::uint64_t replies) noexcept;
  /// What is to be written now; empty if there is nothing that may be sent.
  bytes next_batch();
  /// From now on pressure and credit hold nothing back: the last frames before an orderly end.
  void flush_all() noexcept { flushing_ = true; }
  bool empty() const noexcept { return link_frames_.empty() && replies_.empty() && data_.empty(); }
  void clear() noexcept;

private:
  bool reply_may_go() const noexcept {
    return !replies_.empty() && (flushing_ || replies_sent_ - replies_consumed_ < reply_window_bytes);
  }
  bool data_may_go() const noexcept { return !data_.empty() && (flushing_ || !paused_); }
  void add_chunk(bytes& batch, frame_queue& from, std::uint64_t& sent);

  std::uint64_t limit_;
  bytes link_frames_;
  frame_queue replies_;
  frame_queue data_;
  std::uint64_t admitted_ = 0; ///< bytes of data since the link began
  std::uint64_t data_sent_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t replies_sent_ = 0;
  std::uint64_t replies_consumed_ = 0;
  bool paused_ = false;
  bool flushing_ = false;
  bool data_first_ = false; ///< whose turn it is when both paths fill a batch by themselves
};

} // namespace zlink::detail
