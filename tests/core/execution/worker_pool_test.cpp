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

/// Tells when its thread ends, once per thread that touched it.
struct end_of_thread {
  std::latch* ended = nullptr;
  ~end_of_thread() {
    if (ended)
      ended->count_down();
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

TEST_CASE("D-8 threads above the minimum end after the idle timeout, and come again") {
  const auto pool = make_pool(1, 4, 1ms);
  for (int round = 0; round < 3; ++round) {
    std::latch entered{4}, open{1}, ended{3};
    for (int i = 0; i < 4; ++i)
      pool->submit([&] {
        at_end.ended = &ended;
        entered.count_down(); // four at once, so four threads
        open.wait();
      });
    entered.wait();
    open.count_down();
    ended.wait();
    std::latch survivor{1}; // the minimum stays, and forgets this round's latch
    pool->submit([&] {
      at_end.ended = nullptr;
      survivor.count_down();
    });
    survivor.wait();
  }
  pool->stop();
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
  std::latch entered{processors}, open{1}, last{1};
  std::atomic<bool> beyond{false};
  for (std::ptrdiff_t i = 0; i < processors; ++i)
    pool->submit([&] {
      entered.count_down();
      open.wait();
    });
  entered.wait(); // so many run at once
  pool->submit([&] {
    beyond = true;
    last.count_down();
  });
  CHECK_FALSE(beyond); // and no more
  open.count_down();
  last.wait();
  pool->stop();
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
  auto pool = make_pool(2, 2);
  std::latch ready{1}, ended{2};
  std::string name;
  pool->submit([&] {
    at_end.ended = &ended;
    char buffer[16] = {};
    ::pthread_getname_np(::pthread_self(), buffer, sizeof buffer);
    name = buffer;
    ready.wait();
    pool->stop();
    pool.reset();
    ended.count_down();
  });
  ready.count_down();
  ended.wait();
  CHECK(name.starts_with("zlink-worker-"));
}
