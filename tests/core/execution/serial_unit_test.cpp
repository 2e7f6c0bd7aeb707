#include "zlink/execution/system_executor.hpp"

#include <doctest/doctest.h>

#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using zlink::steady_duration;
using zlink::steady_time;
using zlink::detail::serial_executor;

namespace {

/// Stands still until a test moves it.
class hand_clock final : public zlink::clock {
public:
  steady_time now() const noexcept override { return steady_time{steady_duration{now_ns_.load()}}; }
  std::chrono::system_clock::time_point wall_now() const noexcept override { return {}; }
  void move_to(steady_time t) { now_ns_ = t.time_since_epoch().count(); }

private:
  std::atomic<std::int64_t> now_ns_{0};
};

std::shared_ptr<serial_executor> make_unit(std::shared_ptr<const zlink::clock> time = std::make_shared<hand_clock>()) {
  return zlink::detail::make_system_environment()->make_serial("zlink-unit-under-test", std::move(time));
}

/// Returns after everything posted before has run.
void pass(serial_executor& unit) {
  std::latch passed{1};
  unit.post([&] { passed.count_down(); });
  passed.wait();
}

/// Holds the unit until released.
class held_unit {
public:
  explicit held_unit(serial_executor& unit) {
    unit.post([this] {
      entered_.count_down();
      release_.wait();
    });
    entered_.wait();
  }
  void release() { release_.count_down(); }

private:
  std::latch entered_{1};
  std::latch release_{1};
};

steady_time at(steady_duration since_boot) { return steady_time{since_boot}; }

} // namespace

TEST_CASE("D-8 a serial unit runs jobs one at a time, in the order each thread posted them, on its own thread") {
  constexpr int posters = 4, jobs_each = 2500;
  const auto unit = make_unit();
  std::array<int, posters> next{}; // touched inside the unit only: the thread sanitizer watches
  std::atomic<int> active{0};
  std::atomic<bool> good{true};
  std::latch done{posters * jobs_each};
  std::vector<std::thread> threads;
  for (int poster = 0; poster < posters; ++poster)
    threads.emplace_back([&, poster] {
      const auto posted_by = std::this_thread::get_id();
      for (int i = 0; i < jobs_each; ++i)
        unit->post([&, poster, i, posted_by] {
          const bool alone = active.fetch_add(1) == 0;
          const bool in_order = next[static_cast<std::size_t>(poster)]++ == i;
          if (!alone || !in_order || !unit->running_here() || std::this_thread::get_id() == posted_by)
            good = false;
          --active;
          done.count_down();
        });
    });
  for (auto& thread : threads)
    thread.join();
  done.wait();
  CHECK(good);
  CHECK_FALSE(unit->running_here());
  unit->stop();
}

TEST_CASE("D-8 a job posted from a job of the unit waits its turn") {
  const auto unit = make_unit();
  std::string order;
  std::latch done{1};
  held_unit held{*unit};
  unit->post([&] {
    unit->post([&] {
      order += 'c';
      done.count_down();
    });
    order += 'a';
  });
  unit->post([&] { order += 'b'; });
  held.release();
  done.wait();
  CHECK(order == "abc");
}

TEST_CASE("D-8 another unit's job is not inside this unit, and the thread bears the name") {
  const auto unit = make_unit();
  const auto other = make_unit();
  bool here = true;
  char name[16] = {};
  other->post([&] {
    here = unit->running_here();
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
  });
  pass(*other);
  CHECK_FALSE(here);
  CHECK(std::string{name} == "zlink-unit-unde");
}

TEST_CASE("O-21 the layer's threads leave the signals that end a program to whoever waits for them") {
  const auto blocks = [] {
    sigset_t mine;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mine);
    return ::sigismember(&mine, SIGTERM) == 1 && ::sigismember(&mine, SIGINT) == 1 && ::sigismember(&mine, SIGCHLD) == 0;
  };
  CHECK_FALSE(blocks());
  const auto environment = zlink::detail::make_system_environment();
  std::binary_semaphore done{0};
  std::atomic<int> well{0};
  const auto look = [&] {
    well += blocks() ? 1 : 0;
    done.release();
  };
  const auto unit = environment->make_serial("unit", std::make_shared<hand_clock>());
  unit->post(look);
  done.acquire();
  const auto workers = environment->make_workers({});
  workers->submit(look);
  done.acquire();
  CHECK(well == 2);
  CHECK_FALSE(blocks()); // what made them is as before
}

TEST_CASE("D-8 what a job owns is destroyed before the next job runs") {
  const auto unit = make_unit();
  auto owned = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = owned;
  bool gone = false;
  held_unit held{*unit};
  unit->post([owned = std::move(owned)] {});
  unit->post([&] { gone = watched.expired(); });
  held.release();
  pass(*unit);
  CHECK(gone);
}

TEST_CASE("D-8 stop runs what is queued, then drops what comes later on the thread that posts it") {
  constexpr int count = 100'000;
  const auto unit = make_unit();
  std::atomic<int> ran{0};
  held_unit held{*unit};
  for (int i = 0; i < count; ++i)
    unit->post([&] { ++ran; });
  int ran_when_stopped = 0;
  std::thread stopper{[&] {
    unit->stop();
    ran_when_stopped = ran;
  }};
  const auto stopping = [&] {
    auto probe = std::make_shared<int>(0);
    const std::weak_ptr<int> watched = probe;
    unit->post([probe = std::move(probe)] {});
    return watched.expired(); // a held unit cannot have run it
  };
  while (!stopping())
    std::this_thread::yield();
  held.release();
  stopper.join();
  CHECK(ran_when_stopped == count);
  unit->stop(); // again does no harm

  struct tells_thread {
    std::thread::id* where;
    ~tells_thread() { *where = std::this_thread::get_id(); }
  };
  std::thread::id destroyed_on;
  auto told = std::make_unique<tells_thread>(tells_thread{&destroyed_on});
  destroyed_on = {};
  unit->post([&ran, told = std::move(told)] { ++ran; });
  CHECK(destroyed_on == std::this_thread::get_id());
  CHECK(ran == count);
}

TEST_CASE("D-8 a dropped job may post to the same unit while it is destroyed") {
  const auto unit = make_unit();
  unit->stop();
  struct posts_on_destruction {
    serial_executor* unit;
    ~posts_on_destruction() {
      unit->post([] {});
    }
  };
  auto poster = std::make_shared<posts_on_destruction>(posts_on_destruction{unit.get()});
  unit->post([poster = std::move(poster)] {});
}

TEST_CASE("D-8 a unit can be stopped, and dropped, by its own job") {
  auto unit = make_unit();
  std::latch dropped{1}, posted{1};
  std::atomic<bool> later_ran{false};
  unit->post([&] {
    posted.wait();
    unit->stop();
    unit->post([&] { later_ran = true; });
  });
  unit->post([&] {
    unit.reset();
    dropped.count_down();
  });
  posted.count_down();
  dropped.wait();
  CHECK_FALSE(later_ran);
}

TEST_CASE("D-8 an alarm rings once, at its time or later, never before") {
  const auto time = std::make_shared<hand_clock>();
  const auto unit = make_unit(time);
  std::vector<steady_time> rung; // inside the unit only
  bool inside = false;
  unit->on_alarm([&] {
    rung.push_back(time->now());
    inside = unit->running_here();
  });
  unit->alarm_at(at(1h));
  time->move_to(at(1h - 1ns));
  pass(*unit);
  pass(*unit);
  CHECK(rung.empty());
  time->move_to(at(1h));
  pass(*unit); // a clock moved by hand is looked at when the next job comes
  CHECK(rung == std::vector{at(1h)});
  CHECK(inside);
  time->move_to(at(3h));
  pass(*unit);
  pass(*unit);
  CHECK(rung.size() == 1);
  unit->stop();
}

TEST_CASE("D-8 the latest alarm replaces the one before, and the end of time cancels it") {
  const auto time = std::make_shared<hand_clock>();
  const auto unit = make_unit(time);
  std::atomic<int> rung{0};
  unit->on_alarm([&] { ++rung; });
  unit->alarm_at(at(1h));
  unit->alarm_at(at(2h));
  time->move_to(at(1h));
  pass(*unit);
  CHECK(rung == 0);
  unit->alarm_at(steady_time::max());
  time->move_to(at(9h));
  pass(*unit);
  pass(*unit);
  CHECK(rung == 0);
  unit->stop();
}

TEST_CASE("D-8 a handler may set the next alarm, and one set inside a job rings without another job") {
  const auto time = std::make_shared<hand_clock>();
  const auto unit = make_unit(time);
  std::latch rung{3};
  int rings = 0;
  unit->on_alarm([&] {
    if (++rings < 3)
      unit->alarm_at(at(0ns)); // in the past: now
    rung.count_down();
  });
  unit->post([&] { unit->alarm_at(at(-1s)); });
  rung.wait();
  unit->stop();
  CHECK(rings == 3);
}

TEST_CASE("D-8 an alarm passes a long queue of jobs") {
  const auto time = std::make_shared<hand_clock>();
  const auto unit = make_unit(time);
  int jobs = 0, jobs_before_alarm = -1;
  unit->on_alarm([&] { jobs_before_alarm = jobs; });
  held_unit held{*unit};
  unit->alarm_at(at(1s));
  unit->post([&] { time->move_to(at(1s)); });
  for (int i = 0; i < 10'000; ++i)
    unit->post([&] { ++jobs; });
  held.release();
  pass(*unit);
  CHECK(jobs == 10'000);
  CHECK(jobs_before_alarm >= 0);
  CHECK(jobs_before_alarm <= 64);
  unit->stop();
}

TEST_CASE("D-8 a sleeping unit is woken by the time itself") {
  const auto time = std::make_shared<zlink::system_clock>();
  const auto unit = make_unit(time);
  std::binary_semaphore rung{0};
  steady_time rung_at{};
  unit->on_alarm([&] {
    rung_at = time->now();
    rung.release();
  });
  for (int i = 0; i < 20; ++i) {
    const auto when = time->now() + 1ms;
    unit->alarm_at(when);
    rung.acquire();
    CHECK(rung_at >= when);
  }
  unit->stop();
}

TEST_CASE("D-8 an earlier alarm from another thread cuts a long sleep short") {
  const auto time = std::make_shared<zlink::system_clock>();
  const auto unit = make_unit(time);
  std::binary_semaphore rung{0};
  unit->on_alarm([&] { rung.release(); });
  for (int i = 0; i < 200; ++i) {
    unit->alarm_at(time->now() + 24h);
    if (i % 2 == 0)
      pass(*unit); // so that some of the sleeps have begun
    unit->alarm_at(time->now());
    rung.acquire();
  }
  unit->alarm_at(time->now() + 24h);
  unit->stop(); // and so does stopping
}

TEST_CASE("D-8 the alarm handler comes first and comes once") {
  const auto unit = make_unit();
  CHECK_THROWS_AS(unit->alarm_at(at(1s)), std::logic_error);
  unit->on_alarm([] {});
  CHECK_THROWS_AS(unit->on_alarm([] {}), std::logic_error);
  unit->stop();
  unit->alarm_at(at(1s)); // too late, and harmless
}
