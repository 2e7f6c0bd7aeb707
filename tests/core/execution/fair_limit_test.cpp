#include "zlink/execution/operation_limit.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

using zlink::detail::fair_limit;
using zlink::detail::limit_waiter;
using zlink::detail::operation_limit;

namespace {

struct counting_waiter : limit_waiter {
  void on_entered() noexcept override { ++entered; }
  int entered = 0;
};

} // namespace

TEST_CASE("X-100 the 4,097th operation waits for an entry and gets it when one ends") {
  operation_limit limit;
  CHECK(limit.limit() == 4096);
  for (int i = 0; i < 4096; ++i)
    REQUIRE(limit.try_enter());
  CHECK_FALSE(limit.try_enter());
  counting_waiter waiter;
  CHECK_FALSE(limit.enter(waiter));
  CHECK(limit.waiting() == 1);
  CHECK(waiter.entered == 0);
  limit.leave();
  CHECK(waiter.entered == 1);
  CHECK(limit.waiting() == 0);
  CHECK(limit.inside() == 4096); // the place went from hand to hand
  limit.leave();
  CHECK(waiter.entered == 1);
  CHECK(limit.inside() == 4095);
  CHECK(limit.try_enter());
}

TEST_CASE("X-103 a place that is left by who may be used goes to a waiter on that thread, and to others as before") {
  struct worker final : limit_waiter {
    void on_entered() noexcept override { ++told; }
    void on_entered_here() noexcept override {
      ++here;
      limit->leave(); // its work is done: the next one is told in the usual way
    }
    fair_limit* limit = nullptr;
    int told = 0;
    int here = 0;
  };
  fair_limit limit{1};
  REQUIRE(limit.try_enter());
  worker first;
  worker second;
  first.limit = &limit;
  CHECK_FALSE(limit.enter(first));
  CHECK_FALSE(limit.enter(second));
  limit.leave_here();
  CHECK(first.here == 1);
  CHECK(first.told == 0);
  CHECK(second.here == 0);
  CHECK(second.told == 1);
  counting_waiter usual; // one that knows nothing of it
  CHECK_FALSE(limit.enter(usual));
  limit.leave_here();
  CHECK(usual.entered == 1);
  limit.leave_here();
  CHECK(limit.inside() == 0);
}

TEST_CASE("X-100 a waiting operation that ends first leaves the line and is not called") {
  operation_limit limit{1};
  REQUIRE(limit.try_enter());
  std::array<counting_waiter, 3> waiters;
  for (auto& waiter : waiters)
    CHECK_FALSE(limit.enter(waiter));
  CHECK(limit.cancel(waiters[1]));
  CHECK_FALSE(limit.cancel(waiters[1]));
  limit.leave();
  limit.leave();
  CHECK(waiters[0].entered == 1);
  CHECK(waiters[1].entered == 0);
  CHECK(waiters[2].entered == 1);
  CHECK_FALSE(limit.cancel(waiters[0])); // too late: it is inside
  limit.leave();
  CHECK(limit.inside() == 0);
}

TEST_CASE("X-100 when all waiters have gone the limit is as if nobody had waited") {
  operation_limit limit{1};
  counting_waiter waiter;
  CHECK(limit.enter(waiter));
  CHECK_FALSE(limit.enter(waiter));
  CHECK(limit.cancel(waiter));
  limit.leave();
  CHECK(waiter.entered == 0);
  CHECK(limit.inside() == 0);
  CHECK(limit.enter(waiter));
  limit.leave();
}

TEST_CASE("X-103 who asks again while waiting keeps its place, and nobody enters past a waiter") {
  fair_limit limit{1};
  REQUIRE(limit.try_enter());
  counting_waiter first, second;
  CHECK_FALSE(limit.enter(first));
  CHECK_FALSE(limit.enter(second));
  CHECK_FALSE(limit.enter(first));
  CHECK(limit.waiting() == 2);
  CHECK_FALSE(limit.try_enter());
  limit.leave();
  CHECK(first.entered == 1);
  CHECK(second.entered == 0);
  CHECK_FALSE(limit.enter(first)); // asks for another: now behind the second
  limit.leave();
  CHECK(second.entered == 1);
  CHECK(first.entered == 1);
  limit.leave();
  CHECK(first.entered == 2);
  limit.leave();
  CHECK(limit.inside() == 0);
}

namespace {

/// A thread that enters, works inside, and leaves, many times; half of its waits it tries to cancel.
class visitor final : public limit_waiter {
public:
  visitor(fair_limit& limit, std::atomic<int>& inside, std::atomic<bool>& good)
    : limit_(limit), inside_(inside), good_(good) {}

  void on_entered() noexcept override { entered_.fetch_add(1); }

  void visit(int times, int most) {
    for (int i = 0; i < times; ++i) {
      if (!limit_.enter(*this)) {
        if (i % 2 == 0 && limit_.cancel(*this)) {
          ++cancelled_;
          continue;
        }
        ++waited_;
        while (entered_.load() < waited_)
          std::this_thread::yield();
      }
      if (inside_.fetch_add(1) + 1 > most)
        good_ = false;
      ++visits_;
      inside_.fetch_sub(1);
      limit_.leave();
    }
  }
  int visits() const { return visits_; }
  int cancelled() const { return cancelled_; }
  bool settled() const { return entered_.load() == waited_; }

private:
  fair_limit& limit_;
  std::atomic<int>& inside_;
  std::atomic<bool>& good_;
  std::atomic<int> entered_{0};
  int waited_ = 0, visits_ = 0, cancelled_ = 0;
};

} // namespace

TEST_CASE("X-103 among entering, being let in and cancelling exactly one wins, and no place is lost") {
  constexpr int threads = 4, rounds = 10'000, most = 2;
  fair_limit limit{most};
  std::atomic<int> inside{0};
  std::atomic<bool> good{true};
  std::deque<visitor> visitors;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&, who = &visitors.emplace_back(limit, inside, good)] { who->visit(rounds, most); });
  for (auto& thread : running)
    thread.join();
  CHECK(good);
  CHECK(limit.inside() == 0);
  CHECK(limit.waiting() == 0);
  for (const auto& each : visitors) {
    CHECK(each.visits() + each.cancelled() == rounds);
    CHECK(each.settled());
  }
}
