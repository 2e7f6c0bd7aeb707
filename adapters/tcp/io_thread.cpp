#include "adapters/tcp/io_thread.hpp"

#include <boost/asio/post.hpp>

#include <pthread.h>

#include <utility>

namespace zlink::detail {

std::shared_ptr<io_thread> io_thread::start() {
  std::shared_ptr<io_thread> made{new io_thread};
  std::lock_guard guard{made->mutex_}; // the thread finds `thread_` set
  made->thread_ = std::thread{[self = made] {
    { std::lock_guard begun{self->mutex_}; }
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

void io_thread::end() {
  std::vector<unique_function<void()>> dropped;
  {
    std::lock_guard guard{mutex_};
    if (std::exchange(ended_, true))
      return;
  }
  boost::asio::post(context_, [this] { work_.reset(); });
  if (running_here())
    thread_.detach();
  else
    thread_.join();
  std::lock_guard guard{mutex_};
  dropped.swap(jobs_);
}

} // namespace zlink::detail
