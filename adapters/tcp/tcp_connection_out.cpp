// The writing side of a connection, and its end.
#include "adapters/tcp/tcp_connection.hpp"

#include <utility>

namespace zlink::detail {

namespace {

/// How long the end of a connection waits for the peer to take what is under way, and to end its side.
constexpr std::chrono::seconds longest_linger{1};

} // namespace

void tcp_connection::start(std::shared_ptr<link_connection_events> events) {
  from_.io->post([self = shared_from_this(), events = std::move(events)]() mutable {
    self->events_ = std::move(events);
    if (self->phase_ == phase::open)
      self->pump();
    else // since before the start: nobody has been told
      self->tell_closed();
  });
}

// -- out --------------------------------------------------------------------------------------------------------------

/// Sent on the caller's thread where the kernel takes it: a thread less on the way of a lone message. What gathers until the
/// transport's thread says `on_writable` makes the next batch.
void tcp_connection::write(bytes batch) {
  if (const auto how = send(std::move(batch)))
    from_.io->post([self = shared_from_this(), how = *how] { self->written(how); });
}

bool tcp_connection::write_at_once(bytes batch) {
  const auto how = send(std::move(batch));
  if (how == status::done)
    return true;
  if (how)
    from_.io->post([self = shared_from_this(), how = *how] { self->written(how); });
  return false;
}

/// Nothing: no batch is sent any more.
std::optional<tcp_connection::status> tcp_connection::send(bytes batch) {
  std::lock_guard guard{mutex_};
  if (shut_)
    return std::nullopt;
  return stream_.write(std::move(batch));
}

bool tcp_connection::remind() {
  if (!reminded_.exchange(true))
    from_.io->remind([self = shared_from_this()] {
      self->reminded_ = false;
      if (const auto events = self->events_)
        events->on_reminder();
    });
  return true;
}

void tcp_connection::written(status how) {
  if (phase_ == phase::lingering) {
    linger();
  } else if (phase_ == phase::open) {
    switch (how) {
      case status::done:
        if (const auto events = events_)
          events->on_writable();
        break;
      case status::blocked: wait_writable(); break;
      default: finish("connection lost: " + stream_.write_failure(), false);
    }
  }
}

void tcp_connection::wait_writable() {
  if (std::exchange(waits_writable_, true))
    return;
  stream_.socket().async_wait(boost::asio::ip::tcp::socket::wait_write,
                              [self = shared_from_this()](const boost::system::error_code&) {
                                self->waits_writable_ = false;
                                if (self->phase_ != phase::gone)
                                  self->write_on();
                              });
}

void tcp_connection::write_on() {
  status how;
  {
    std::lock_guard guard{mutex_};
    how = stream_.write_on();
  }
  written(how);
}

// -- the end ----------------------------------------------------------------------------------------------------------

void tcp_connection::close() {
  {
    std::lock_guard guard{mutex_};
    shut_ = true;
  }
  from_.io->post([self = shared_from_this()] { self->finish("closed here", true); });
}

void tcp_connection::finish(const std::string& why, bool orderly) {
  if (phase_ == phase::lingering || phase_ == phase::gone)
    return;
  const auto self = shared_from_this(); // its home may let go of it in here
  const bool was_open = phase_ == phase::open;
  phase_ = phase::lingering;
  closed_ = why;
  {
    std::lock_guard guard{mutex_};
    shut_ = true;
  }
  if (!was_open)
    end_greeting(error{error_kind::unavailable, "no link to " + from_.address + ": " + why});
  tell_closed();
  if (!orderly) {
    close_now();
    return;
  }
  guard_until(boost::asio::steady_timer::clock_type::now() + longest_linger, &tcp_connection::close_now);
  linger();
}

/// Sends what is under way, then waits for the peer's end: a socket closed before that may take back what was sent.
void tcp_connection::linger() {
  if (phase_ != phase::lingering)
    return;
  {
    std::lock_guard guard{mutex_};
    if (stream_.writing()) {
      const auto how = stream_.write_on();
      if (how == status::blocked) {
        wait_writable();
        return;
      }
    }
    stream_.end_writing();
  }
  if (stream_.discard() == status::blocked)
    wait_readable();
  else
    close_now();
}

void tcp_connection::close_now() {
  if (phase_ == phase::gone)
    return;
  phase_ = phase::gone;
  timer_.cancel();
  {
    std::lock_guard guard{mutex_};
    stream_.close();
  }
  handshake_.reset();
  if (const auto home = std::exchange(home_, nullptr))
    home->gone(*this);
}

void tcp_connection::tell_closed() {
  if (const auto events = std::exchange(events_, nullptr))
    events->on_closed(closed_);
}

} // namespace zlink::detail
