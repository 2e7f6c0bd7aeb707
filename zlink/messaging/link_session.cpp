#include "zlink/messaging/link_session.hpp"

#include <algorithm>
#include <utility>

namespace zlink::detail {

namespace {

std::uint64_t next_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// Batches nearer to each other than this belong to one stream.
constexpr std::chrono::microseconds close_behind{10};

bool same_run(const link_identity& a, const link_identity& b) noexcept {
  return a.mesh == b.mesh && a.rid == b.rid && a.lifecycle == b.lifecycle;
}

} // namespace

/// What the connection holds: keeps the session alive until the connection has ended.
class link_session::events final : public link_connection_events {
public:
  explicit events(counted_ptr<link_session> session) noexcept : session_(std::move(session)) {}
  bool on_batch(byte_view batch) override { return session_->receive(batch); }
  bool on_turn() override { return session_->receive_more(); }
  void on_writable() override { session_->on_writable(); }
  void on_reminder() override { session_->send_gathered(); }
  void on_closed(std::string reason) override { session_->on_closed(reason); }

private:
  counted_ptr<link_session> session_;
};

counted_ptr<link_session> link_session::make(link_options options) {
  return counted_ptr<link_session>::adopt(new link_session(std::move(options)));
}

link_session::link_session(link_options options)
  : options_(std::move(options)), number_(next_number()), timer_(new_counted<link_timer>(*options_.infra)),
    out_(options_.outbound_bytes) {}

link_session::~link_session() = default;

// -- handshake --------------------------------------------------------------------------------------------------------

void link_session::start() {
  {
    lock held{mutex_};
    if (phase_ != phase::idle)
      return;
    phase_ = phase::greeting;
    append_hello(out_.link_frames(), options_.self);
    give_up_ = options_.infra->time().now() + handshake_deadline;
    set_alarm(give_up_);
  }
  options_.connection->start(std::make_shared<events>(counted_ptr<link_session>::share(this)));
  lock held{mutex_};
  writable_ = true;
  flush(held);
}

std::optional<std::string> link_session::refusal_of(const hello_frame& hello) const {
  if (hello.protocol != link_protocol_version)
    return "protocol version " + std::to_string(hello.protocol) + " instead of "
           + std::to_string(link_protocol_version);
  if (hello.identity.mesh != options_.self.mesh)
    return "mesh \"" + hello.identity.mesh + "\" instead of \"" + options_.self.mesh + '"';
  if (hello.identity.rid == options_.self.rid)
    return "RID \"" + hello.identity.rid + "\" is this node's own";
  const auto& claimed = hello.identity.security_identity;
  if (const auto proved = options_.connection->peer_security_identity(); !claimed.empty() && !proved.empty() && claimed != proved)
    return "it claims another security identity than its certificate has"; // O-143
  return std::nullopt;
}

void link_session::on_hello_frame(byte_view body) {
  auto hello = decode_hello(body);
  {
    lock held{mutex_};
    if (hello_seen_) {
      if (hello.protocol != link_protocol_version || !same_run(hello.identity, peer_)) {
        held.unlock();
        end("the peer changed its identity", false);
      } else if (own_verdict_ == verdict::admitted) {
        append_hello_answer(out_.link_frames(), {true, pressure_, {}}); // idempotent (S-58)
        flush(held);
      }
      return;
    }
    hello_seen_ = true;
    peer_ = std::move(hello.identity);
    hello.identity = peer_;
    if (peer_.security_identity.empty())
      peer_.security_identity = options_.connection->peer_security_identity();
  }
  if (auto reason = refusal_of(hello))
    refuse(std::move(*reason));
  else
    options_.owner->on_hello(*this, peer_);
}

void link_session::admit() {
  lock held{mutex_};
  if (phase_ != phase::greeting || !hello_seen_ || own_verdict_ != verdict::none)
    return;
  own_verdict_ = verdict::admitted;
  append_hello_answer(out_.link_frames(), {true, pressure_, {}});
  const bool ready_now = peer_admitted_;
  if (ready_now) {
    become_ready();
    held_back_ = true;
  }
  held.unlock();
  options_.connection->limit_batches(std::max<std::uint64_t>(options_.self.frame_limit, batch_bytes)
                                     + handshake_batch_bytes);
  if (ready_now)
    options_.owner->on_ready(*this);
  held.lock();
  held_back_ = false;
  flush(held);
}

void link_session::refuse(std::string reason) {
  {
    lock held{mutex_};
    if (phase_ != phase::greeting || own_verdict_ != verdict::none)
      return;
    own_verdict_ = verdict::refused;
    append_hello_answer(out_.link_frames(), {false, {}, reason});
  }
  end("peer refused: " + reason, true);
}

void link_session::on_answer_frame(byte_view body) {
  const auto answer = decode_hello_answer(body);
  if (!answer.admitted) {
    end("refused by the peer: " + answer.reason, false);
    return;
  }
  lock held{mutex_};
  if (phase_ != phase::greeting || peer_admitted_)
    return;
  peer_admitted_ = true;
  peer_pressure_sequence_ = answer.pressure.sequence;
  out_.pause(answer.pressure.paused);
  peer_paused_.store(answer.pressure.paused, std::memory_order_release);
  if (own_verdict_ != verdict::admitted)
    return;
  become_ready();
  held.unlock();
  options_.owner->on_ready(*this);
}

void link_session::become_ready() {
  const auto now = options_.infra->time().now();
  phase_ = phase::ready;
  give_up_ = now + liveness_deadline;
  next_probe_ = now + probe_interval;
  set_alarm(next_probe_);
  usable_.store(true, std::memory_order_release);
}

std::optional<std::string> unexpected_peer(const link_identity& peer, const link_expectation& expected) {
  if (expected.rid && *expected.rid != peer.rid)
    return "RID \"" + peer.rid + "\" instead of \"" + *expected.rid + '"';
  if (expected.lifecycle && *expected.lifecycle != peer.lifecycle)
    return "another run of node \"" + peer.rid + "\" than its descriptor names";
  if (expected.security_identity && *expected.security_identity != peer.security_identity)
    return "another security identity than expected";
  return std::nullopt;
}

// -- writing ----------------------------------------------------------------------------------------------------------

bool link_session::may_write() const noexcept {
  return phase_ != phase::idle && phase_ != phase::ended && writable_ && !held_back_;
}

void link_session::flush(lock& held) {
  if (may_write() && phase_ == phase::ready && gathering::here() && options_.connection->remind() && gathering::add(*this))
    held.unlock();
  else
    flush_now(held);
}

/// A batch that is not close behind another one needs no other thread either. One that is makes way for more: what comes
/// until the transport has called makes the next.
void link_session::flush_now(lock& held) {
  auto batch = take_batch(held);
  if (batch.empty())
    return;
  const auto now = options_.infra->time().now();
  if (now - last_write_.exchange(now, std::memory_order_relaxed) < close_behind)
    options_.connection->write(std::move(batch));
  else if (options_.connection->write_at_once(std::move(batch)))
    go_on(held);
}

void link_session::send_gathered() noexcept {
  lock held{mutex_};
  auto batch = take_batch(held);
  if (!batch.empty() && options_.connection->write_at_once(std::move(batch)))
    go_on(held);
}

/// What others have added since goes the usual way.
void link_session::go_on(lock& held) {
  held.lock();
  writable_ = true;
  if (auto batch = take_batch(held); !batch.empty())
    options_.connection->write(std::move(batch));
}

bytes link_session::take_batch(lock& held) {
  if (!may_write()) {
    held.unlock();
    return {};
  }
  add_due_credit();
  auto batch = out_.next_batch();
  if (batch.empty() && phase_ == phase::closing)
    batch = std::exchange(last_frame_, bytes{});
  if (batch.empty()) {
    const bool done = phase_ == phase::closing;
    if (done)
      phase_ = phase::ended;
    held.unlock();
    if (done)
      options_.connection->close();
    return {};
  }
  writable_ = false;
  held.unlock();
  counters_.batches_out.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_out.fetch_add(batch.size(), std::memory_order_relaxed);
  return batch;
}

void link_session::on_writable() {
  lock held{mutex_};
  writable_ = true;
  flush(held);
}

void link_session::add_due_credit() {
  if (phase_ != phase::ready || consumed_ == announced_)
    return;
  // Rarely enough to cost nothing, often enough that the peer's window never runs dry; at once if somebody waits there,
  // and whenever a batch goes out anyway.
  const bool much = consumed_.data - announced_.data > peer_.window_bytes / 4
                    || consumed_.replies - announced_.replies > reply_window_bytes / 4;
  if (!much && out_.empty() && (!credit_wanted_ || more_to_receive_))
    return;
  credit_wanted_ = false;
  announced_ = consumed_;
  append_credit(out_.link_frames(), announced_);
}

void link_session::consumed(std::uint64_t wire_bytes) {
  lock held{mutex_};
  consumed_.data += wire_bytes;
  flush(held);
}

void link_session::set_pressure(bool paused, std::uint64_t version) {
  lock held{mutex_};
  if (version < pressure_version_)
    return;
  pressure_version_ = version;
  if (pressure_.paused == paused)
    return;
  pressure_ = {pressure_.sequence + 1, paused};
  if (own_verdict_ == verdict::admitted) // before that, the answer will say it
    append_pressure(out_.link_frames(), pressure_);
  flush_now(held);
}

// -- time -------------------------------------------------------------------------------------------------------------

void link_session::set_alarm(steady_time due) {
  if (due >= alarm_)
    return;
  alarm_ = due;
  timer_->set(counted_ptr<link_session>::share(this), due);
}

void link_session::probe(steady_time now) {
  while (probe_id_ == 0)
    probe_id_ = options_.random->next();
  append_probe(out_.link_frames(), probe_id_, false);
  while (next_probe_ <= now)
    next_probe_ += probe_interval;
  options_.replies->expire(now);
}

void link_session::on_alarm() noexcept {
  const auto now = options_.infra->time().now();
  lock held{mutex_};
  alarm_ = steady_time::max();
  if (phase_ == phase::ended)
    return;
  if (now >= give_up_) {
    const auto late = phase_;
    if (late == phase::closing)
      phase_ = phase::ended;
    held.unlock();
    if (late == phase::closing)
      options_.connection->close();
    else
      end(late == phase::greeting ? "the handshake did not end in time" : "no answer to probes in time", false);
    return;
  }
  if (now >= next_probe_)
    probe(now);
  auto next_due = steady_time::max();
  const auto expired = take_expired(now, next_due);
  set_alarm(std::min({give_up_, next_probe_, next_due}));
  admit_waiters(held);
  for (const auto& w : expired)
    detail::refuse(w.r, no_room_in_time());
}

error link_session::no_room_in_time() const {
  return {error_kind::deadline_exceeded, "no room to node \"" + peer_.rid + "\" in time"};
}

// -- the end ----------------------------------------------------------------------------------------------------------

error link_session::lost(const std::string& reason) const {
  return {error_kind::unavailable, "the link to node \"" + peer_.rid + "\" has ended: " + reason};
}

void link_session::close(std::string reason) {
  bytes goodbye;
  append_goodbye(goodbye, reason);
  end(reason, true, std::move(goodbye));
}

void link_session::end(const std::string& reason, bool orderly, bytes last) {
  std::deque<waiter> waiting;
  bool linger = false;
  {
    lock held{mutex_};
    if (phase_ == phase::closing || phase_ == phase::ended)
      return;
    linger = orderly && phase_ != phase::idle;
    phase_ = linger ? phase::closing : phase::ended;
    usable_.store(false, std::memory_order_release);
    waiting.swap(waiters_);
    note_waiters();
    if (linger) {
      out_.flush_all();
      last_frame_ = std::move(last);
      next_probe_ = steady_time::max();
      give_up_ = options_.infra->time().now() + close_linger;
      set_alarm(give_up_);
    } else {
      out_.clear();
    }
  }
  const auto why = lost(reason);
  for (const auto& w : waiting)
    detail::refuse(w.r, why);
  options_.replies->fail_link(number_, why);
  options_.owner->on_down(*this, reason);
  if (linger) {
    lock held{mutex_};
    flush(held);
  } else {
    timer_->cancel();
    options_.connection->close();
  }
}

void link_session::on_closed(const std::string& reason) {
  while (receive_more()) {
    // what has arrived counts, also behind a close; no more than a window of it
  }
  end(reason, false);
  lock held{mutex_};
  phase_ = phase::ended; // also when it was closing
  out_.clear();
  held.unlock();
  timer_->cancel();
}

// -- state ------------------------------------------------------------------------------------------------------------

bool link_session::ready() const noexcept { return usable_.load(std::memory_order_acquire); }
bool link_session::peer_paused() const noexcept { return peer_paused_.load(std::memory_order_acquire); }

std::uint64_t link_session::charged_bytes() const noexcept {
  lock held{mutex_};
  return out_.charged();
}

std::size_t link_session::waiting_sends() const noexcept { return waiting_.load(std::memory_order_acquire); }

} // namespace zlink::detail
