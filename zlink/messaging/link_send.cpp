#include "zlink/messaging/body_codec.hpp"
#include "zlink/execution/faults.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/remaining_time.hpp"

#include <algorithm>
#include <utility>

namespace zlink::detail {

namespace {

/// Frames are built outside of the session's lock, one at a time on a thread.
frame_buffer& scratch() {
  thread_local frame_buffer buffer;
  return buffer;
}

/// The link that a request came by and is answered by; null for a request of this node.
link_session* origin_of(const record& r) noexcept {
  return r.from_link ? dynamic_cast<link_session*>(r.reply.receiver) : nullptr;
}

/// After admission: a one-way message that somebody waits for is answered empty, everything else has done its duty.
void finish_sent(record* r) noexcept {
  if (r->kind == record_kind::request) {
    if (auto* origin = std::exchange(r->reply.receiver, nullptr)) // passed on: the reply takes the origin's link (M-83)
      origin->unref_receiver();
    free_record(r);
    return;
  }
  r->body.reset();
  send_reply(r);
}

} // namespace

// -- encoding, outside of the lock ------------------------------------------------------------------------------------

template <class Header>
static std::span<std::byte> encode_frame(frame_buffer& to, record& r, const Header& header, const link_options& options,
                                         std::uint64_t frame_limit) {
  body_encoder body{r.body, *options.codecs, options.system};
  const message_body parts{body.packet_name(), body.content_type(),
                           r.extra ? r.extra->metadata.encoded() : byte_view{}};
  begin_message(to, header, parts, r.kind == record_kind::request, r.deadline != steady_time{});
  body.encode(to.payload());
  const auto frame = to.finish();
  if (frame.size() > frame_limit)
    throw encode_error{"packet \"" + std::string{parts.packet_name} + "\" takes " + std::to_string(frame.size())
                       + " bytes; the peer accepts " + std::to_string(frame_limit)};
  return frame;
}

std::span<std::byte> link_session::encode(frame_buffer& to, record& r, const message_header& header) const {
  const auto* origin = origin_of(r);
  if (origin == nullptr || !header.reply_node.empty())
    return encode_frame(to, r, header, options_, peer_.frame_limit);
  auto followed = header;
  followed.reply_node = origin->peer_.rid;
  return encode_frame(to, r, followed, options_, peer_.frame_limit);
}

std::span<std::byte> link_session::encode(frame_buffer& to, record& r, byte_view encoded_header) const {
  return encode_frame(to, r, encoded_header, options_, peer_.frame_limit);
}

// -- messages ---------------------------------------------------------------------------------------------------------

bool link_session::may_enter(std::size_t frame_bytes) const noexcept {
  return waiters_.empty() && !admitting_ && out_.has_room(frame_bytes);
}

admission link_session::try_send(record* r, const message_header& header) {
  if (!ready())
    return admission::sealed;
  if (waiting_sends() != 0 || peer_paused())
    return admission::no_room; // without encoding for nothing
  auto& buffer = scratch();
  const auto frame = encode(buffer, *r, header);
  {
    lock held{mutex_};
    if (phase_ != phase::ready)
      return admission::sealed;
    if (!may_enter(frame.size()))
      return admission::no_room;
    admit_frame(*r, frame);
    flush(held);
  }
  buffer.trim();
  free_record(r);
  return admission::admitted;
}

void link_session::send(record* r, const message_header& header, steady_time due, counted_ptr<operation_base> call) {
  if (!ready()) {
    detail::refuse(r, lost("not ready"));
    return;
  }
  auto& buffer = scratch();
  std::span<std::byte> frame;
  if (waiting_sends() < options_.encoded_waiters) {
    try {
      frame = encode(buffer, *r, header);
    } catch (...) {
      detail::refuse(r, {error_kind::invalid_operation, text_of_current_exception()});
      return;
    }
  }
  lock held{mutex_};
  if (phase_ != phase::ready) {
    held.unlock();
    detail::refuse(r, lost("not ready"));
    return;
  }
  if (!frame.empty() && may_enter(frame.size())) {
    admit_frame(*r, frame);
    flush(held);
    buffer.trim();
    finish_sent(r);
    return;
  }
  auto kept = header;
  if (const auto* origin = origin_of(*r); origin != nullptr && kept.reply_node.empty())
    kept.reply_node = origin->peer_.rid;
  add_waiter({r, encode_message_header(kept), bytes{frame.begin(), frame.end()}, due, std::move(call)});
  flush(held);
  buffer.trim();
}

void link_session::admit_frame(record& r, std::span<std::byte> frame) {
  std::uint64_t route = 0;
  if (r.kind == record_kind::request)
    route = origin_of(r) != nullptr ? r.reply.id
                                    : options_.replies->add(std::exchange(r.reply, reply_route{}), number_, r.deadline);
  const bool timed = r.deadline != steady_time{};
  set_message_times(frame, route, timed ? remaining_ms(r.deadline, options_.infra->time().now()) : 0);
  out_.push_data(frame);
  counters_.messages_out.fetch_add(1, std::memory_order_relaxed);
}

// -- waiting ----------------------------------------------------------------------------------------------------------

void link_session::note_waiters() noexcept {
  waiting_.store(waiters_.size() + (admitting_ ? 1 : 0), std::memory_order_release);
}

void link_session::add_waiter(waiter w) {
  set_alarm(w.due);
  waiters_.push_back(std::move(w));
  note_waiters();
  ask_credit();
}

void link_session::ask_credit() {
  if (credit_asked_ || out_.paused() || out_.charged() == 0)
    return;
  credit_asked_ = true;
  append_credit_wanted(out_.link_frames());
}

void link_session::admit_waiters(lock& held) {
  if (admitting_) {
    admit_again_ = true;
    flush(held);
    return;
  }
  std::vector<record*> admitted;
  std::vector<record*> over;
  const auto now = options_.infra->time().now();
  admitting_ = true;
  do {
    admit_again_ = false;
    while (phase_ == phase::ready && !waiters_.empty() && out_.has_room(waiters_.front().frame.size())) {
      auto w = std::move(waiters_.front());
      waiters_.pop_front();
      if (w.over(now)) {
        over.push_back(w.r);
        continue;
      }
      if (w.frame.empty() && !encode_waiter(held, w))
        continue;
      if (!out_.has_room(w.frame.size())) {
        waiters_.push_front(std::move(w));
        break;
      }
      admit_frame(*w.r, w.frame);
      admitted.push_back(w.r);
    }
  } while (admit_again_);
  admitting_ = false;
  note_waiters();
  if (!waiters_.empty())
    ask_credit();
  flush(held);
  for (auto* r : admitted)
    finish_sent(r);
  for (auto* r : over)
    detail::refuse(r, no_room_in_time());
}

bool link_session::encode_waiter(lock& held, waiter& w) {
  held.unlock();
  std::optional<error> failed;
  try {
    auto& buffer = scratch();
    const auto frame = encode(buffer, *w.r, byte_view{w.header});
    w.frame.assign(frame.begin(), frame.end());
    buffer.trim();
  } catch (...) {
    failed.emplace(error_kind::invalid_operation, text_of_current_exception());
  }
  held.lock();
  if (!failed && phase_ != phase::ready)
    failed = lost("while a send waited for room");
  if (!failed)
    return true;
  held.unlock();
  detail::refuse(w.r, *failed);
  held.lock();
  return false;
}

std::deque<link_session::waiter> link_session::take_expired(steady_time now, steady_time& next_due) {
  std::deque<waiter> expired;
  for (auto& w : waiters_) {
    if (w.due <= now)
      expired.push_back(std::move(w));
    else
      next_due = std::min(next_due, w.due);
  }
  if (!expired.empty()) {
    std::erase_if(waiters_, [now](const waiter& w) { return w.due <= now; });
    note_waiters();
  }
  return expired;
}

// -- replies and control ----------------------------------------------------------------------------------------------

void link_session::push_reply_frame(byte_view frame) {
  lock held{mutex_};
  if (phase_ != phase::ready) {
    held.unlock();
    counters_.lost_replies.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  out_.push_reply(frame);
  flush(held);
}

void link_session::send_control(std::uint16_t command, byte_view payload) {
  bytes frame;
  append_control(frame, command, payload);
  push_reply_frame(frame);
}

void link_session::receive_reply(record* reply) noexcept {
  const auto route = reply->reply.id;
  auto& body = reply->body;
  bytes simple;
  byte_view frame;
  auto& buffer = scratch();
  if (const auto* failure = body.get<error>()) {
    append_reply(simple, {.reply_route = route, .kind = reply_kind::error, .failure = *failure});
  } else if (body.get<cancelled_t>() != nullptr) {
    append_reply(simple, {.reply_route = route, .kind = reply_kind::cancelled});
  } else if (body.empty()) {
    append_reply(simple, {.reply_route = route, .kind = reply_kind::empty});
  } else {
    try {
      body_encoder encoder{body, *options_.codecs, options_.system};
      begin_reply(buffer, route, encoder.packet_name(), encoder.content_type());
      encoder.encode(buffer.payload());
      frame = buffer.finish();
      if (frame.size() > peer_.frame_limit)
        throw encode_error{"the reply takes " + std::to_string(frame.size()) + " bytes; the caller's node accepts "
                           + std::to_string(peer_.frame_limit)};
    } catch (...) {
      append_reply(simple, {.reply_route = route,
                            .kind = reply_kind::error,
                            .failure = error{error_kind::internal_failure, text_of_current_exception()},
                            .cause = failure_cause::reply_not_encodable});
    }
  }
  push_reply_frame(simple.empty() ? frame : byte_view{simple});
  buffer.trim();
  free_record(reply);
}

} // namespace zlink::detail
