#include "zlink/messaging/ingress.hpp"

#include <cstring>
#include <utility>

namespace zlink::detail {

namespace {

/// Frames in a row on the thread whose permit was taken: its own work waits meanwhile.
constexpr unsigned frames_for_a_stranger = 16;
constexpr unsigned frames_in_a_row = defaults::receive_burst_records;
/// The peer is told of so much at once, or of all when nothing waits any more.
constexpr std::uint64_t told_together_bytes = 16 * 1024;
/// A line that took more gives its memory back when it is empty.
constexpr std::size_t usual_line_bytes = 1024 * 1024;

} // namespace

// -- the line ---------------------------------------------------------------------------------------------------------

void ingress::line::add(const label& what, byte_view frame) {
  const auto* first = reinterpret_cast<const std::byte*>(&what);
  content.insert(content.end(), first, first + sizeof what);
  content.insert(content.end(), frame.begin(), frame.end());
}

ingress::label ingress::line::front(byte_view& frame) const noexcept {
  label what;
  std::memcpy(static_cast<void*>(&what), content.data() + done, sizeof what);
  frame = byte_view{content}.subspan(done + sizeof what, what.frame_bytes);
  return what;
}

void ingress::line::pop(const label& front) noexcept { done += sizeof front + front.frame_bytes; }

// -- ingress ----------------------------------------------------------------------------------------------------------

ingress::ingress(job_permits& permits, const std::string& source, delivery deliver,
                 unique_function<void(unique_function<void()>)> later)
  : permits_(permits), source_(source), deliver_(std::move(deliver)), later_(std::move(later)) {}

bool ingress::may_deliver_now() {
  return !someone_waits_.load(std::memory_order_acquire) && permits_.try_acquire();
}

void ingress::wait(link_session& link, byte_view frame, std::uint32_t wire_bytes, steady_time arrived) {
  {
    std::lock_guard guard{mutex_};
    if (waiting_.empty() || waiting_.back().link.get() != &link)
      waiting_.push_back({counted_ptr<link_session>::share(&link), std::exchange(spare_, {})});
    waiting_.back().add({arrived, static_cast<std::uint32_t>(frame.size()), wire_bytes}, frame);
    if (in_line_)
      return;
    someone_waits_.store(true, std::memory_order_relaxed);
    in_line_ = shared_from_this();
  }
  if (permits_.acquire(*this)) // one came free in between
    on_entered_here();
}

void ingress::on_entered() noexcept {
  std::shared_ptr<ingress> self;
  {
    std::lock_guard guard{mutex_};
    self = in_line_;
  }
  later_([self] { self->drain(frames_in_a_row); });
}

/// The thread that begins a job takes in what gets its permit: a change of threads for each message would cost more than
/// the message.
void ingress::on_entered_here() noexcept {
  const auto self = shared_from_this();
  drain(frames_for_a_stranger);
}

void ingress::drain(unsigned most) {
  do {
    if (most-- == 0) {
      on_entered();
      return;
    }
    deliver_front();
  } while (next_permitted());
}

void ingress::deliver_front() {
  if (drained_.empty())
    take_line();
  byte_view frame;
  const auto front = drained_.front(frame);
  deliver_(*drained_.link, frame, front.arrived);
  drained_.pop(front);
  consumed_ += front.wire_bytes;
  if (consumed_ >= told_together_bytes)
    tell_consumed();
}

void ingress::take_line() {
  tell_consumed();
  auto before = std::move(drained_.link); // let go of outside of the lock
  std::lock_guard guard{mutex_};
  if (drained_.content.capacity() <= usual_line_bytes)
    std::swap(spare_, drained_.content);
  spare_.clear();
  drained_ = std::move(waiting_.front());
  waiting_.pop_front();
}

void ingress::tell_consumed() {
  if (consumed_ != 0)
    drained_.link->consumed(std::exchange(consumed_, 0));
}

bool ingress::next_permitted() { return (more_waits() || !leave_line()) && permits_.acquire(*this); }

bool ingress::more_waits() {
  if (!drained_.empty())
    return true;
  {
    std::lock_guard guard{mutex_};
    if (!waiting_.empty())
      return true;
  }
  tell_consumed();
  return false;
}

/// False: something has come in the meantime.
bool ingress::leave_line() {
  std::shared_ptr<ingress> self; // both are let go of outside of the lock
  const auto link = std::move(drained_.link);
  std::lock_guard guard{mutex_};
  if (!waiting_.empty())
    return false;
  self = std::move(in_line_);
  someone_waits_.store(false, std::memory_order_release);
  return true;
}

} // namespace zlink::detail
