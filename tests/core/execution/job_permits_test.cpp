#include "zlink/execution/job_permits.hpp"

#include "zlink/error.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using zlink::configuration_error;
using zlink::detail::job_permits;
using zlink::detail::limit_waiter;
using zlink::detail::pressure_thresholds;

namespace {

/// A peer with records to hand in: takes a permit for each and writes down that it got it.
class source final : public limit_waiter {
public:
  source(char name, std::string& taken) : name_(name), taken_(taken) {}
  void on_entered() noexcept override { taken_ += name_; }
  void ask(job_permits& permits) {
    if (permits.acquire(*this))
      taken_ += name_;
  }

private:
  char name_;
  std::string& taken_;
};

struct counting_source final : limit_waiter {
  void on_entered() noexcept override { ++entered; }
  std::atomic<int> entered{0};
};

using reports = std::vector<std::pair<bool, std::uint64_t>>;

} // namespace

TEST_CASE("X-103 with one permit the second source waits until the first permit is returned") {
  job_permits permits{1, {}, nullptr};
  std::string taken;
  source a{'a', taken}, b{'b', taken};
  a.ask(permits);
  CHECK(taken == "a");
  b.ask(permits);
  CHECK(taken == "a");
  CHECK(permits.in_use() == 1);
  permits.release(); // the first handler begins
  CHECK(taken == "ab");
  CHECK(permits.in_use() == 1);
  permits.release();
  CHECK(permits.in_use() == 0);
}

TEST_CASE("X-103 saturated, sources are served longest-waiting first, each once per wait, and none is lost") {
  job_permits permits{2, {}, nullptr};
  std::string taken;
  source a{'a', taken}, b{'b', taken}, c{'c', taken};
  a.ask(permits);
  a.ask(permits);
  for (auto* who : {&c, &a, &b, &c, &a}) // c and a ask twice, and wait once
    who->ask(permits);
  CHECK(permits.waiting() == 3);
  permits.release();
  CHECK(taken == "aac");
  c.ask(permits); // more of c: behind those that wait
  permits.release();
  permits.release();
  CHECK(taken == "aacab");
  permits.release();
  CHECK(taken == "aacabc");
  permits.release();
  permits.release();
  CHECK(permits.in_use() == 0);
}

TEST_CASE("X-103 a waiting source can give up") {
  job_permits permits{1, {}, nullptr};
  std::string taken;
  source a{'a', taken}, b{'b', taken}, c{'c', taken};
  for (auto* who : {&a, &b, &c})
    who->ask(permits);
  CHECK(permits.cancel(b));
  CHECK_FALSE(permits.cancel(b));
  permits.release();
  CHECK(taken == "ac");
  permits.release();
}

TEST_CASE("X-105 ten permits pause at eight and run again at six; between, nothing changes") {
  reports seen;
  job_permits permits{10, {}, [&](bool paused, std::uint64_t version) { seen.emplace_back(paused, version); }};
  counting_source from;
  const auto acquire_to = [&](std::uint32_t n) {
    while (permits.in_use() < n)
      REQUIRE(permits.acquire(from));
  };
  const auto release_to = [&](std::uint32_t n) {
    while (permits.in_use() > n)
      permits.release();
  };
  acquire_to(7);
  CHECK_FALSE(permits.paused());
  acquire_to(8);
  CHECK(permits.paused());
  release_to(7);
  CHECK(permits.paused());
  acquire_to(10);
  release_to(7);
  CHECK(permits.paused());
  CHECK(seen == reports{{true, 1}});
  release_to(6);
  CHECK_FALSE(permits.paused());
  acquire_to(7);
  release_to(0);
  acquire_to(7);
  CHECK(seen == reports{{true, 1}, {false, 2}}); // equal values are not reported again
  acquire_to(8);
  CHECK(seen == reports{{true, 1}, {false, 2}, {true, 3}});
  release_to(0);
}

TEST_CASE("X-105 waiters do not count, and a permit that changes hands changes nothing") {
  reports seen;
  job_permits permits{2, {.pause_percent = 100, .resume_percent = 50}, [&](bool paused, std::uint64_t version) {
                        seen.emplace_back(paused, version);
                      }};
  counting_source a, b, c;
  CHECK(permits.acquire(a));
  CHECK(permits.acquire(a));
  CHECK_FALSE(permits.acquire(b));
  CHECK_FALSE(permits.acquire(c));
  CHECK(permits.in_use() == 2);
  permits.release();
  permits.release();
  CHECK(seen == reports{{true, 1}});
  permits.release();
  CHECK(seen == reports{{true, 1}, {false, 2}});
  permits.release();
}

TEST_CASE("X-105 the pause count is rounded up and the resume count down") {
  struct row {
    std::uint32_t count;
    pressure_thresholds thresholds;
    std::uint32_t pauses_at, resumes_at;
  };
  const row rows[] = {
    {10, {}, 8, 6},
    {1, {}, 1, 0},
    {3, {}, 3, 1},                                           // 2.4 and 1.8
    {11, {}, 9, 6},                                          // 8.8 and 6.6
    {128, {.pause_percent = 1, .resume_percent = 0}, 2, 0},  // 1.28
    {7, {.pause_percent = 100, .resume_percent = 99}, 7, 6}, // 6.93
  };
  for (const auto& each : rows) {
    CAPTURE(each.count);
    job_permits permits{each.count, each.thresholds, nullptr};
    counting_source from;
    while (!permits.paused())
      REQUIRE(permits.acquire(from));
    CHECK(permits.in_use() == each.pauses_at);
    while (permits.paused())
      permits.release();
    CHECK(permits.in_use() == each.resumes_at);
  }
}

TEST_CASE("X-105 thresholds outside their range, or crossed, are configuration errors") {
  const auto make = [](int pause, int resume) {
    job_permits{10, {.pause_percent = pause, .resume_percent = resume}, nullptr};
  };
  CHECK_NOTHROW(make(1, 0));
  CHECK_NOTHROW(make(100, 99));
  CHECK_THROWS_AS(make(0, -1), configuration_error);
  CHECK_THROWS_AS(make(101, 60), configuration_error);
  CHECK_THROWS_AS(make(100, 100), configuration_error);
  CHECK_THROWS_AS(make(80, -1), configuration_error);
  CHECK_THROWS_AS(make(60, 60), configuration_error);
  CHECK_THROWS_AS(make(60, 80), configuration_error);
  try {
    make(101, 100);
    FAIL("accepted");
  } catch (const configuration_error& error) {
    CHECK(error.mistakes().size() == 2); // both mistakes at once
  }
}

TEST_CASE("X-105 under many threads the last report tells the truth and no version is missing") {
  for (int round = 0; round < 20; ++round) {
    std::mutex mutex;
    reports seen;
    job_permits permits{2, {.pause_percent = 100, .resume_percent = 0}, [&](bool paused, std::uint64_t version) {
                          std::lock_guard lock{mutex};
                          seen.emplace_back(paused, version);
                        }};
    const auto work = [&] {
      counting_source own;
      int waited = 0;
      for (int i = 0; i < 2000; ++i) {
        if (!permits.acquire(own)) {
          if (permits.cancel(own))
            continue;
          ++waited;
          while (own.entered < waited)
            std::this_thread::yield();
        }
        permits.release();
      }
    };
    std::thread other{work}, third{work};
    work();
    other.join();
    third.join();
    CHECK(permits.in_use() == 0);
    CHECK_FALSE(permits.paused());
    std::sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    bool alternates = true;
    for (std::size_t i = 0; i < seen.size(); ++i)
      alternates = alternates && seen[i] == std::pair<bool, std::uint64_t>{i % 2 == 0, i + 1};
    CHECK(alternates);
    CHECK(seen.size() % 2 == 0);
  }
}
