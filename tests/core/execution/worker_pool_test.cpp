#include "zlink/execution/system_executor.hpp"

#include <doctest/doctest.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using zlink::worker_options;
using zlink::detail::worker_pool;

namespace {

std::shared_ptr<worker_pool> make_pool(std::uint32_t min_threads, std::uint32_t max_threads,
                                       std::chrono::milliseconds idle_timeout = 1h) {
  return zlink::detail::make_system_environment()->make_workers(
    {.min_threads = min_threads, .max_threads = max_threads, .idle_timeout = idle_timeout});
}

/// Counts the threads that end, each one once, whoever still listens.
using thread_ends = std::counting_semaphore<>;
struct end_of_thread {
  std::shared_ptr<thread_ends> ended;
  ~end_of_thread() {
    if (ended)
      ended->release();
  }
};
thread_local end_of_thread at_end;

} // namespace

TEST_CASE("X-117 a pool of two with two blocked bodies starts the third when one ends, then the rest in order") {
  const auto pool = make_pool(1, 2);
  std::counting_semaphore<2> release{0};
  std::latch both_entered{2}, rest_done{3};
  std::mutex mutex;
  std::vector<int> begun;
  std::atomic<int> blocked{0};
  const auto begin = [&](int i) {
    std::lock_guard lock{mutex};
    begun.push_back(i);
  };
  for (int i = 0; i < 2; ++i)
    pool->submit([&, i] {
      begin(i);
      ++blocked;
      both_entered.count_down();
      release.acquire();
      --blocked;
    });
  both_entered.wait();
  bool while_both_blocked = false;
  for (int i = 2; i < 5; ++i)
    pool->submit([&, i] {
      begin(i);
      while_both_blocked = while_both_blocked || blocked == 2;
      rest_done.count_down();
    });
  release.release(); // one thread does the rest, the other stays blocked
  rest_done.wait();
  CHECK(blocked == 1);
  release.release();
  pool->stop();
  CHECK_FALSE(while_both_blocked);
  CHECK(std::set<int>{begun[0], begun[1]} == std::set<int>{0, 1});
  CHECK(std::vector<int>(begun.begin() + 2, begun.end()) == std::vector<int>{2, 3, 4});
}

TEST_CASE("X-117 bodies beyond the pool wait without a cap, and all run") {
  const auto pool = make_pool(1, 2);
  constexpr int count = 100'000;
  std::latch entered{2}, open{1}, done{count};
  for (int i = 0; i < 2; ++i)
    pool->submit([&] {
      entered.count_down();
      open.wait();
    });
  entered.wait();
  for (int i = 0; i < count; ++i)
    pool->submit([&] { done.count_down(); });
  open.count_down();
  done.wait();
  pool->stop();
}

namespace {

/// Returns when `threads` bodies have run at once, so on as many threads, which report their end to `ended`.
void use_threads(worker_pool& pool, std::ptrdiff_t threads, const std::shared_ptr<thread_ends>& ended) {
  std::latch entered{threads}, left{threads};
  for (std::ptrdiff_t i = 0; i < threads; ++i)
    pool.submit([&] {
      at_end.ended = ended;
      entered.arrive_and_wait();
      left.count_down();
    });
  left.wait();
}

} // namespace

TEST_CASE("D-8 threads above the minimum end after the idle timeout, come again, and the minimum stays") {
  const auto ended = std::make_shared<thread_ends>(0);
  const auto pool = make_pool(1, 4, 1ms);
  for (int round = 0; round < 3; ++round) {
    use_threads(*pool, 4, ended);
    for (int i = 0; i < 3; ++i)
      ended->acquire();
  }
  const auto other_ended = std::make_shared<thread_ends>(0);
  const auto slower = make_pool(1, 2, 30ms); // its thread ends when that of the first pool would have ended long ago
  use_threads(*slower, 2, other_ended);
  other_ended->acquire();
  CHECK_FALSE(ended->try_acquire());
  pool->stop();
  ended->acquire();
}

TEST_CASE("D-8 the maximum defaults to the number of processors, and options outside their range are refused") {
  const auto environment = zlink::detail::make_system_environment();
  CHECK(worker_options{}.min_threads == 1);
  CHECK(worker_options{}.idle_timeout == 30'000ms);
  CHECK_THROWS_AS(environment->make_workers({.min_threads = 0}), std::invalid_argument);
  CHECK_THROWS_AS(environment->make_workers({.min_threads = 3, .max_threads = 2}), std::invalid_argument);
  CHECK_THROWS_AS(environment->make_workers({.idle_timeout = 0ms}), std::invalid_argument);
  CHECK_THROWS_AS(environment->make_workers({.idle_timeout = -1ms}), std::invalid_argument);

  const auto pool = environment->make_workers({});
  const auto processors = static_cast<std::ptrdiff_t>(std::max(1U, std::thread::hardware_concurrency()));
  constexpr int more = 1000;
  std::latch entered{processors}, open{1}, done{processors + more};
  std::atomic<int> threads{0};
  const auto count_thread = [&threads] {
    thread_local const void* counted_in = nullptr;
    if (std::exchange(counted_in, &threads) != &threads)
      ++threads;
  };
  for (std::ptrdiff_t i = 0; i < processors; ++i)
    pool->submit([&] {
      count_thread();
      entered.count_down();
      open.wait();
      done.count_down();
    });
  entered.wait(); // so many run at once
  for (int i = 0; i < more; ++i)
    pool->submit([&] {
      count_thread();
      done.count_down();
    });
  open.count_down();
  done.wait();
  pool->stop();
  CHECK(threads == processors); // and never more
}

TEST_CASE("D-8 stop waits for bodies that have begun and destroys the others unrun") {
  const auto pool = make_pool(1, 1);
  std::latch entered{1}, open{1};
  std::atomic<bool> ended{false}, later_ran{false};
  pool->submit([&] {
    entered.count_down();
    open.wait();
    ended = true;
  });
  entered.wait();
  std::latch dropped{1};
  std::unique_ptr<std::latch, void (*)(std::latch*)> owned{&dropped, [](std::latch* told) { told->count_down(); }};
  pool->submit([&, owned = std::move(owned)] { later_ran = true; });
  std::thread stopper{[&] {
    pool->stop();
    CHECK(ended);
  }};
  dropped.wait(); // while the first still runs
  CHECK_FALSE(ended);
  open.count_down();
  stopper.join();
  CHECK(ended);
  pool->submit([&] { later_ran = true; });
  CHECK_FALSE(later_ran);
}

TEST_CASE("D-8 a pool can be stopped, and dropped, by its own body, and names its threads") {
  const auto ended = std::make_shared<thread_ends>(0);
  auto pool = make_pool(2, 2);
  std::latch ready{1};
  std::string name;
  pool->submit([&] {
    at_end.ended = ended;
    char buffer[16] = {};
    ::pthread_getname_np(::pthread_self(), buffer, sizeof buffer);
    name = buffer;
    ready.wait();
    pool->stop();
    pool.reset();
  });
  ready.count_down();
  ended->acquire();
  CHECK(name.starts_with("zlink-worker-"));
}
