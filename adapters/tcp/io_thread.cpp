#include "adapters/tcp/io_thread.hpp"

#include "zlink/execution/signals_blocked.hpp"

#include <boost/asio/post.hpp>

#include <pthread.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace zlink::detail {

namespace {

constexpr long reminder_ns = 100'000;

} // namespace

io_thread::io_thread() {
  const int alarm = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (alarm < 0)
    throw std::system_error{errno, std::generic_category(), "timerfd_create"};
  alarm_.assign(alarm);
}

std::shared_ptr<io_thread> io_thread::start() {
  std::shared_ptr<io_thread> made{new io_thread};
  const signals_blocked blocked{signals_blocked::which::all};
  std::lock_guard guard{made->mutex_}; // the thread finds `thread_` set
  made->thread_ = std::thread{[self = made] {
    { std::lock_guard begun{self->mutex_}; }
    self->wait_for_alarm();
    self->context_.run();
  }};
  ::pthread_setname_np(made->thread_.native_handle(), "zlink.tcp");
  return made;
}

void io_thread::post(unique_function<void()> job) {
  {
    std::lock_guard guard{mutex_};
    if (ended_)
      return; // `job` is destroyed after the lock is released: its captures may post
    jobs_.push_back(std::move(job));
    if (std::exchange(posted_, true))
      return;
  }
  boost::asio::post(context_, [this] { run_jobs(); });
}

void io_thread::run_jobs() {
  {
    std::lock_guard guard{mutex_};
    running_.swap(jobs_);
    posted_ = false;
  }
  for (auto& job : running_) {
    job();
    job.reset();
  }
  running_.clear();
}

void io_thread::remind(unique_function<void()> job) {
  std::lock_guard guard{mutex_};
  if (ended_)
    return;
  reminders_.push_back(std::move(job));
  if (reminders_.size() != 1)
    return;
  itimerspec once{};
  once.it_value.tv_nsec = reminder_ns;
  ::timerfd_settime(alarm_.native_handle(), 0, &once, nullptr); // fails for a bad descriptor or time only
}

void io_thread::wait_for_alarm() {
  alarm_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& failed) {
    if (failed)
      return; // it is being closed
    ring();
    wait_for_alarm();
  });
}

void io_thread::ring() {
  std::uint64_t rung = 0;
  if (::read(alarm_.native_handle(), &rung, sizeof rung) != static_cast<ssize_t>(sizeof rung))
    return;
  {
    std::lock_guard guard{mutex_};
    ringing_.swap(reminders_);
  }
  for (auto& job : ringing_)
    job();
  ringing_.clear();
}

void io_thread::end() {
  std::vector<unique_function<void()>> dropped;
  std::vector<unique_function<void()>> unrung;
  {
    std::lock_guard guard{mutex_};
    if (std::exchange(ended_, true))
      return;
  }
  boost::asio::post(context_, [this] {
    work_.reset();
    boost::system::error_code ignored;
    alarm_.cancel(ignored);
  });
  if (running_here())
    thread_.detach();
  else
    thread_.join();
  std::lock_guard guard{mutex_};
  dropped.swap(jobs_);
  unrung.swap(reminders_);
}

} // namespace zlink::detail
