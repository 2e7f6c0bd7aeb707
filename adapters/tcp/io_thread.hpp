// The thread on which a transport's sockets live. The only header of this folder that knows Asio's loop.
#pragma once

#include "zlink/unique_function.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace zlink::detail {

/// Held by the transport and by its connections; ends with the transport.
class io_thread : public std::enable_shared_from_this<io_thread> {
public:
  /// Its thread runs.
  static std::shared_ptr<io_thread> start();
  io_thread(const io_thread&) = delete;
  io_thread& operator=(const io_thread&) = delete;

  /// Runs `job` on the thread, in order of posting, behind the events of sockets that are due. After `end()` it is dropped.
  /// Any thread.
  void post(unique_function<void()> job);
  /// The same about 100 us from now: one alarm for all that is asked for meanwhile, and no other thread is woken for it.
  void remind(unique_function<void()> job);
  /// Nothing more is posted. The thread goes on until its sockets and timers are done, which their owners see to; this call
  /// waits for it, except on the thread itself.
  void end();
  bool running_here() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }
  boost::asio::io_context& context() noexcept { return context_; }

private:
  io_thread();
  void run_jobs();
  void wait_for_alarm();
  void ring();

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{context_.get_executor()};
  std::mutex mutex_;
  std::vector<unique_function<void()>> jobs_;
  std::vector<unique_function<void()>> running_; ///< keeps its memory
  bool posted_ = false;                          ///< `run_jobs` is on its way
  std::vector<unique_function<void()>> reminders_; ///< not empty: the alarm is set
  std::vector<unique_function<void()>> ringing_;
  boost::asio::posix::stream_descriptor alarm_{context_};
  bool ended_ = false;
  std::thread thread_;
};

} // namespace zlink::detail
