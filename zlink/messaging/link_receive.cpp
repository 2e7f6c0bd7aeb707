#include "zlink/messaging/inbound_record.hpp"
#include "zlink/messaging/link_session.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace zlink::detail {

namespace {

/// How long one peer's slice may take.
constexpr std::chrono::milliseconds slice_time{1};
constexpr unsigned records_per_clock_reading = 8;

} // namespace

bool link_session::receive(byte_view batch) {
  counters_.bytes_in.fetch_add(batch.size(), std::memory_order_relaxed);
  return receive_slice([&](auto use) { inbound_.add(batch, options_.self.frame_limit, use); });
}

bool link_session::receive_more() {
  return receive_slice([&](auto use) { inbound_.go_on(options_.self.frame_limit, use); });
}

template <class F>
bool link_session::receive_slice(F frames) {
  slice_now_ = options_.infra->time().now();
  slice_ = {};
  unsigned records = 0;
  std::size_t size = 0;
  try {
    frames([&](const frame& f) {
      dispatch(f);
      size += f.size;
      if (++records == defaults::receive_burst_records || size >= batch_bytes)
        return false;
      return records % records_per_clock_reading != 0 || options_.infra->time().now() - slice_now_ < slice_time;
    });
  } catch (const decode_error& broken) {
    drop_frame(broken.what());
    end(std::string{"broken batch: "} + broken.what(), false);
  }
  lock held{mutex_};
  if (phase_ == phase::closing || phase_ == phase::ended) {
    held.unlock();
    inbound_.clear();
    return false;
  }
  consumed_.data += slice_.data;
  consumed_.replies += slice_.replies;
  if (received_data_ - consumed_.data > std::max(peer_.window_bytes, options_.self.frame_limit)) {
    held.unlock();
    end("the peer sends more than the window that it told", false);
    return false;
  }
  more_to_receive_ = !inbound_.empty();
  flush(held);
  return !inbound_.empty();
}

void link_session::drop_frame(const std::string& why) {
  counters_.undecodable.fetch_add(1, std::memory_order_relaxed);
  options_.owner->on_undecodable(*this, why);
}

void link_session::dispatch(const frame& f) {
  try {
    switch (f.type) {
      case frame_type::hello: on_hello_frame(f.body); return;
      case frame_type::hello_answer: on_answer_frame(f.body); return;
      case frame_type::goodbye: end("closed by the peer: " + decode_goodbye(f.body), false); return;
      default: break;
    }
    if (ready())
      dispatch_ready(f);
    else
      end("a frame before the end of the handshake", false); // does nothing to a link that has ended (S-61)
  } catch (const decode_error& malformed) {
    drop_frame(malformed.what());
  }
}

void link_session::dispatch_ready(const frame& f) {
  switch (f.type) {
    case frame_type::message: on_message_frame(f); break;
    case frame_type::reply:
      slice_.replies += f.size;
      on_reply_frame(f);
      break;
    case frame_type::control: {
      slice_.replies += f.size;
      const auto control = decode_control(f.body);
      options_.owner->on_control(*this, control.command, control.payload);
      break;
    }
    case frame_type::probe: {
      const auto id = decode_probe(f.body);
      lock held{mutex_};
      append_probe(out_.link_frames(), id, true);
      flush(held);
      break;
    }
    case frame_type::probe_answer: on_probe_answer(decode_probe(f.body)); break;
    case frame_type::credit: on_credit_frame(decode_credit(f.body)); break;
    case frame_type::credit_wanted: {
      lock held{mutex_};
      credit_wanted_ = true; // answered at the end of the slice, or when something has been consumed
      break;
    }
    case frame_type::pressure: on_pressure_frame(decode_pressure(f.body)); break;
    default: drop_frame("unknown frame type " + std::to_string(static_cast<int>(f.type)));
  }
}

// -- messages and replies ---------------------------------------------------------------------------------------------

void link_session::on_message_frame(const frame& f) {
  counters_.messages_in.fetch_add(1, std::memory_order_relaxed);
  received_data_ += f.size;
  if (options_.owner->on_message(*this, f.body, static_cast<std::uint32_t>(f.size), slice_now_))
    slice_.data += f.size;
}

record* link_session::open(byte_view frame, steady_time arrived, message_header& header) {
  try {
    const auto message = decode_message(frame);
    header = message.header;
    return make_inbound(message, arrived);
  } catch (const decode_error& malformed) {
    drop_frame(malformed.what());
    return nullptr;
  }
}

record* make_inbound_record(const message_frame& message, steady_time arrived) {
  auto metadata = message_metadata::decode(message.body.metadata);
  const auto& header = message.header;
  auto* r = make_record(message.request ? record_kind::request : record_kind::send);
  r->from_link = true;
  if (message.remaining_ms)
    r->deadline = arrived + std::chrono::milliseconds{*message.remaining_ms};
  std::construct_at(&r->operation, header.operation);
  if (!metadata.empty())
    r->more().metadata = std::move(metadata);
  if (header.target == target_kind::channel || header.target == target_kind::publish) {
    r->more().channel = header.target_id;
    r->more().topic = header.topic;
  }
  r->body.emplace<encoded_value>(message.body.packet_name, message.body.content_type, message.payload);
  return r;
}

record* link_session::make_inbound(const message_frame& message, steady_time arrived) {
  record* r = nullptr;
  try {
    r = make_inbound_record(message, arrived);
  } catch (const decode_error& malformed) {
    if (!message.request)
      throw;
    bytes frame; // M-38: no handler sees it, the caller learns why
    append_reply(frame, {.reply_route = message.reply_route,
                         .kind = reply_kind::error,
                         .failure = error{error_kind::protocol_error, malformed.what()},
                         .cause = failure_cause::metadata_malformed});
    push_reply_frame(frame);
    drop_frame(malformed.what());
    return nullptr;
  }
  if (message.request) {
    ref();
    r->reply = {this, message.reply_route};
  }
  return r;
}

void link_session::on_reply_frame(const frame& f) {
  auto reply = decode_reply_frame(f.body);
  const auto route = options_.replies->take(reply.reply_route);
  if (route.receiver == nullptr) {
    counters_.unmatched_replies.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  auto* r = make_record(record_kind::completion);
  r->reply = route;
  switch (reply.kind) {
    case reply_kind::packet:
      r->body.emplace<encoded_value>(reply.packet_name, reply.content_type, reply.payload, options_.values);
      break;
    case reply_kind::error: r->body.emplace<error>(std::move(*reply.failure)); break;
    case reply_kind::cancelled: r->body.emplace<cancelled_t>(); break;
    case reply_kind::empty: break;
  }
  send_reply(r);
}

// -- the link's own ---------------------------------------------------------------------------------------------------

void link_session::on_probe_answer(std::uint64_t id) {
  lock held{mutex_};
  if (phase_ != phase::ready || id != probe_id_)
    return;
  probe_id_ = 0;
  give_up_ = slice_now_ + liveness_deadline;
}

void link_session::on_credit_frame(const credit_frame& credit) {
  lock held{mutex_};
  if (!out_.on_credit(credit.data, credit.replies)) {
    held.unlock();
    drop_frame("credit for more than was sent");
    return;
  }
  credit_asked_ = false;
  admit_waiters(held);
}

void link_session::on_pressure_frame(const pressure_frame& pressure) {
  lock held{mutex_};
  if (phase_ != phase::ready || pressure.sequence <= peer_pressure_sequence_)
    return;
  peer_pressure_sequence_ = pressure.sequence;
  if (out_.paused() == pressure.paused)
    return;
  out_.pause(pressure.paused);
  peer_paused_.store(pressure.paused, std::memory_order_release);
  admit_waiters(held);
  options_.owner->on_peer_pressure(*this, pressure.paused);
}

} // namespace zlink::detail
