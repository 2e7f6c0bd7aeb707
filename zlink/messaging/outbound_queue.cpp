#include "zlink/messaging/outbound_queue.hpp"

#include <algorithm>
#include <utility>

namespace zlink::detail {

void frame_queue::append(byte_view frame) {
  if (chunks_.empty() || chunks_.back().size() + frame.size() > batch_bytes)
    chunks_.emplace_back();
  auto& chunk = chunks_.back();
  chunk.insert(chunk.end(), frame.begin(), frame.end());
}

bytes frame_queue::take() {
  auto chunk = std::move(chunks_.front());
  chunks_.pop_front();
  return chunk;
}

bool outbound_queue::on_credit(std::uint64_t data, std::uint64_t replies) noexcept {
  if (data > data_sent_ || replies > replies_sent_)
    return false;
  consumed_ = std::max(consumed_, data);
  replies_consumed_ = std::max(replies_consumed_, replies);
  return true;
}

void outbound_queue::add_chunk(bytes& batch, frame_queue& from, std::uint64_t& sent) {
  auto chunk = from.take();
  sent += chunk.size();
  if (batch.empty())
    batch = std::move(chunk);
  else
    batch.insert(batch.end(), chunk.begin(), chunk.end());
}

bytes outbound_queue::next_batch() {
  auto batch = std::exchange(link_frames_, bytes{});
  const bool reply = reply_may_go();
  const bool data = data_may_go();
  if (reply && data && replies_.front_bytes() + data_.front_bytes() > batch_bytes) {
    if (std::exchange(data_first_, !data_first_))
      add_chunk(batch, data_, data_sent_);
    else
      add_chunk(batch, replies_, replies_sent_);
    return batch;
  }
  if (reply)
    add_chunk(batch, replies_, replies_sent_);
  if (data)
    add_chunk(batch, data_, data_sent_);
  return batch;
}

void outbound_queue::clear() noexcept {
  bytes{}.swap(link_frames_);
  replies_.clear();
  data_.clear();
}

} // namespace zlink::detail
