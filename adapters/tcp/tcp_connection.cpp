#include "adapters/tcp/tcp_connection.hpp"

#include <stdexcept>
#include <utility>

namespace zlink::detail {

namespace {

/// Reads in a row before other connections have their turn.
constexpr int reads_in_a_row = 4;

} // namespace

tcp_connection::tcp_connection(origin from, byte_stream stream)
  : from_(std::move(from)), home_(from_.home), stream_(std::move(stream)), timer_(from_.io->context()) {}

// -- handshake --------------------------------------------------------------------------------------------------------

void tcp_connection::greet(time_point deadline, greeted done) {
  greeted_ = std::move(done);
  guard_until(deadline, &tcp_connection::too_late);
  shake_hands();
}

void tcp_connection::guard_until(time_point deadline, void (tcp_connection::*late)()) {
  timer_.expires_at(deadline);
  timer_.async_wait([self = shared_from_this(), late](const boost::system::error_code& failed) {
    if (!failed)
      ((*self).*late)();
  });
}

void tcp_connection::too_late() {
  if (phase_ == phase::greeting)
    refuse(refusal::late);
}

void tcp_connection::shake_hands() {
  handshake_mac channel{};
  if (stream_.is_protected()) {
    switch (stream_.shake_hands()) {
      case status::blocked: wait_readable(); return;
      case status::closed: refuse(refusal::broken_off); return;
      case status::failed: refuse(refusal::certificate, stream_.failure()); return;
      case status::done: break;
    }
    try {
      channel = stream_.tls()->channel();
    } catch (const std::runtime_error& none) {
      refuse(refusal::certificate, none.what());
      return;
    }
    peer_identity_ = stream_.tls()->peer_identity();
  }
  handshake_.emplace(from_.side, *from_.settings, from_.nonce, channel);
  auto first = handshake_->begin();
  if (first.empty() || send_message(std::move(first)))
    pump();
}

/// Messages of the handshake are so small that a new socket takes them at once; one that does not is not worth waiting for.
bool tcp_connection::send_message(bytes message) {
  status how;
  {
    std::lock_guard guard{mutex_};
    how = stream_.write(std::move(message));
  }
  if (how != status::done)
    refuse(refusal::broken_off);
  return how == status::done;
}

void tcp_connection::on_message(byte_view message) {
  auto step = handshake_->on_message(message);
  if (!step.answer.empty() && !send_message(std::move(step.answer)))
    return;
  if (step.refused == refusal::refused_here)
    refuse(step.refused, to_string(step.told));
  else if (step.refused != refusal::none)
    refuse(step.refused);
  else if (step.admitted)
    end_greeting(std::nullopt);
}

void tcp_connection::end_greeting(std::optional<error> failed) {
  handshake_.reset();
  if (!failed) {
    phase_ = phase::open;
    timer_.cancel();
  }
  if (auto done = std::exchange(greeted_, nullptr))
    done(std::move(failed));
}

std::shared_ptr<link_connection> tcp_connection::hand_out() {
  return {this, [self = shared_from_this()](link_connection*) { self->close(); }};
}

void tcp_connection::refuse(refusal why, const std::string& detail) {
  if (phase_ != phase::greeting)
    return;
  home_->refused(*this, why, detail);
  auto text = std::string{to_string(why)} + (detail.empty() ? "" : ": " + detail);
  finish(text, why <= refusal::certificate);
}

// -- in ---------------------------------------------------------------------------------------------------------------

tcp_connection::status tcp_connection::read() {
  if (!stream_.is_protected())
    return stream_.read(cutter_);
  std::lock_guard guard{mutex_};
  return stream_.read(cutter_);
}

void tcp_connection::pump() {
  for (int reads = 0; reads < reads_in_a_row; ++reads) {
    if (!cut())
      return;
    switch (const auto got = read()) {
      case status::done: break;
      case status::blocked: wait_readable(); return;
      default: lost(got); return;
    }
  }
  from_.io->post([self = shared_from_this()] { self->pump(); });
}

/// Hands on what has arrived. False: nothing more is to be read now.
bool tcp_connection::cut() {
  try {
    while (phase_ == phase::greeting) {
      const auto message = cutter_.next(handshake_message_limit);
      if (!message)
        return true;
      on_message(*message);
    }
    while (phase_ == phase::open && events_ && !turn_wanted_) {
      const auto batch = cutter_.next(limit_.load(std::memory_order_relaxed));
      if (!batch)
        return true;
      if (deliver(*batch))
        want_turn();
    }
  } catch (const bad_frame& broken) {
    breach(broken.what());
  }
  return false;
}

bool tcp_connection::deliver(byte_view batch) {
  const auto events = events_; // stays for the call
  return events->on_batch(batch);
}

/// Nothing is read meanwhile, so that a peer that sends more than is taken waits in its own memory.
void tcp_connection::want_turn() {
  turn_wanted_ = true;
  from_.io->post([self = shared_from_this()] {
    self->turn_wanted_ = false;
    const auto events = self->events_;
    if (self->phase_ != phase::open || !events)
      return;
    if (events->on_turn())
      self->want_turn();
    else
      self->pump();
  });
}

void tcp_connection::breach(const std::string& what) {
  if (phase_ == phase::greeting) {
    refuse(refusal::not_a_peer);
    return;
  }
  home_->refused(*this, refusal::frame, what);
  finish(what, false);
}

void tcp_connection::lost(status how) {
  const bool closed = how == status::closed;
  if (phase_ == phase::greeting)
    refuse(stream_.is_protected() && !closed ? refusal::certificate : refusal::broken_off,
           closed ? std::string{} : stream_.failure());
  else
    finish(closed ? "closed by the peer" : "connection lost: " + stream_.failure(), false);
}

void tcp_connection::wait_readable() {
  if (std::exchange(waits_readable_, true))
    return;
  stream_.socket().async_wait(boost::asio::ip::tcp::socket::wait_read,
                              [self = shared_from_this()](const boost::system::error_code&) {
                                self->waits_readable_ = false;
                                if (self->phase_ == phase::lingering)
                                  self->linger();
                                else if (self->phase_ == phase::greeting && !self->handshake_)
                                  self->shake_hands();
                                else if (self->phase_ != phase::gone)
                                  self->pump();
                              });
}

} // namespace zlink::detail
