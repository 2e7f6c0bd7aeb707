#include "zlink/execution/timer_wheel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using zlink::steady_duration;
using zlink::steady_time;
using zlink::detail::timer_wheel;
using zlink::detail::wheel_entry;

namespace {

steady_time at(steady_duration since_boot) { return steady_time{since_boot}; }

struct numbered : wheel_entry {
  int number = 0;
};

std::vector<int> pop_all(timer_wheel& wheel) {
  std::vector<int> numbers;
  while (auto* entry = wheel.pop_expired())
    numbers.push_back(static_cast<numbered*>(entry)->number);
  return numbers;
}

std::vector<int> expire(timer_wheel& wheel, steady_time now) {
  wheel.advance(now);
  return pop_all(wheel);
}

// The same contract, written the slow and obvious way.
class wheel_model {
public:
  explicit wheel_model(steady_time now) : now_ms_(floor_ms(now)) {}
  void insert(int number, steady_time due) {
    const auto due_ms = std::max(now_ms_, (due.time_since_epoch().count() + 999'999) / 1'000'000);
    place_[number] = waiting_.emplace(due_ms, number); // a multimap keeps equal keys in order of insertion
  }
  bool cancel(int number) {
    const auto found = place_.find(number);
    if (found == place_.end())
      return false;
    waiting_.erase(found->second);
    place_.erase(found);
    return true;
  }
  std::vector<int> expire(steady_time now) {
    now_ms_ = std::max(now_ms_, floor_ms(now));
    std::vector<int> numbers;
    while (!waiting_.empty() && waiting_.begin()->first <= now_ms_) {
      numbers.push_back(waiting_.begin()->second);
      cancel(numbers.back());
    }
    return numbers;
  }
  std::size_t size() const { return waiting_.size(); }
  steady_time earliest() const {
    return waiting_.empty() ? steady_time::max() : at(std::chrono::milliseconds{waiting_.begin()->first});
  }

private:
  static std::int64_t floor_ms(steady_time t) { return t.time_since_epoch().count() / 1'000'000; }
  std::int64_t now_ms_;
  std::multimap<std::int64_t, int> waiting_;
  std::map<int, std::multimap<std::int64_t, int>::iterator> place_;
};

void release(timer_wheel& wheel, std::deque<numbered>& entries) {
  for (auto& entry : entries)
    wheel.cancel(entry);
}

} // namespace

TEST_CASE("an entry expires at its tick, rounded up, never before") {
  timer_wheel wheel{at(10ms)};
  numbered entry;
  wheel.insert(entry, at(12ms + 1ns));
  CHECK(wheel.next_due() == at(13ms));
  CHECK(expire(wheel, at(12ms)).empty());
  CHECK(expire(wheel, at(13ms - 1ns)).empty());
  CHECK(entry.linked());
  CHECK(expire(wheel, at(13ms)).size() == 1);
  CHECK_FALSE(entry.linked());
  CHECK(wheel.next_due() == steady_time::max());
}

TEST_CASE("X-138 entries of one batch expire by due tick, within a tick by insertion") {
  timer_wheel wheel{at(0ms)};
  std::deque<numbered> entries(6);
  const steady_duration due[] = {5000ms, 70ms, 5000ms, 1ms, 70ms, 5000ms};
  for (int i = 0; i < 6; ++i) {
    entries[static_cast<std::size_t>(i)].number = i;
    wheel.insert(entries[static_cast<std::size_t>(i)], at(due[i]));
    if (i == 3) // later entries of a tick meet earlier ones that have come down some levels
      CHECK(expire(wheel, at(3ms)) == std::vector<int>{3});
  }
  CHECK(expire(wheel, at(1h)) == std::vector<int>{1, 4, 0, 2, 5});
}

TEST_CASE("a time that has passed is due with the next advance, and popping until null ends") {
  timer_wheel wheel{at(1s)};
  numbered entry;
  wheel.insert(entry, at(-1ms));
  CHECK(wheel.next_due() <= at(1s));
  CHECK(wheel.pop_expired() == nullptr); // not before the owner advances
  wheel.advance(at(1s));
  REQUIRE(wheel.pop_expired() == &entry);
  wheel.insert(entry, at(1s)); // as a handler does that is late again
  CHECK(wheel.pop_expired() == nullptr);
  CHECK(wheel.next_due() <= at(1s));
  wheel.advance(at(1s));
  CHECK(wheel.pop_expired() == &entry);
}

TEST_CASE("cancelling works while waiting, when overdue and when expired") {
  timer_wheel wheel{at(0ms)};
  numbered waiting, overdue, expired;
  CHECK_FALSE(wheel.cancel(waiting));
  wheel.insert(waiting, at(1h));
  wheel.insert(expired, at(1ms));
  wheel.advance(at(5ms));
  wheel.insert(overdue, at(2ms));
  CHECK(wheel.size() == 3);
  CHECK(wheel.cancel(waiting));
  CHECK(wheel.cancel(overdue));
  CHECK(wheel.cancel(expired));
  CHECK_FALSE(wheel.cancel(expired));
  CHECK(wheel.size() == 0);
  CHECK(wheel.next_due() == steady_time::max());
  CHECK(expire(wheel, at(2h)).empty());
}

TEST_CASE("the last entry of a slot leaves nothing to wake up for") {
  timer_wheel wheel{at(0ms)};
  numbered stays, goes;
  wheel.insert(goes, at(100ms));
  wheel.insert(stays, at(100s));
  CHECK(wheel.next_due() <= at(100ms));
  wheel.cancel(goes);
  CHECK(wheel.next_due() > at(100ms));
  wheel.cancel(stays);
}

TEST_CASE("deadlines of many years and of the end of time keep their place") {
  const auto start = at(3h + 7ms);
  timer_wheel wheel{start};
  const auto year = 365 * 24h;
  numbered forever, century, decade;
  forever.number = 3, century.number = 2, decade.number = 1;
  wheel.insert(forever, steady_time::max());
  wheel.insert(century, start + 100 * year);
  wheel.insert(decade, start + 10 * year);

  // An owner that wakes only when told to arrives exactly, after few wake-ups.
  const std::pair<steady_time, int> expected[] = {{start + 10 * year, 1}, {start + 100 * year, 2}};
  for (const auto& [due, number] : expected) {
    int wakeups = 0;
    for (std::vector<int> got; got.empty();) {
      const auto next = wheel.next_due();
      REQUIRE(next <= due);
      got = expire(wheel, next);
      if (!got.empty()) {
        CHECK(next == due);
        CHECK(got == std::vector<int>{number});
      }
      ++wakeups;
    }
    CHECK(wakeups <= 9);
  }
  CHECK(expire(wheel, steady_time::max() - 1ms).empty());
  CHECK(expire(wheel, steady_time::max()) == std::vector<int>{3});
}

TEST_CASE("time that stands still or goes back expires nothing twice") {
  timer_wheel wheel{at(100ms)};
  numbered entry;
  wheel.insert(entry, at(200ms));
  wheel.advance(at(150ms));
  wheel.advance(at(10ms));
  CHECK(wheel.next_due() <= at(200ms));
  numbered passed;
  wheel.insert(passed, at(120ms));
  CHECK(expire(wheel, at(10ms)).size() == 1); // it is not 10 ms again
  CHECK(expire(wheel, at(199ms)).empty());
  CHECK(expire(wheel, at(200ms)).size() == 1);
  CHECK(expire(wheel, at(200ms)).empty());
}

TEST_CASE("random inserts, cancels and steps agree with an ordered map") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random{seed};
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    auto now = at(steady_duration{below(1ULL << 50)});
    timer_wheel wheel{now};
    wheel_model model{now};
    std::deque<numbered> entries(300);
    for (int i = 0; i < 300; ++i)
      entries[static_cast<std::size_t>(i)].number = i;

    for (int step = 0; step < 4000; ++step) {
      auto& entry = entries[static_cast<std::size_t>(below(entries.size()))];
      const auto action = below(10);
      if (action < 6 && !entry.linked()) {
        // Distances of every size, so that every level and many equal ticks occur; now and then the past.
        const auto due = now + steady_duration{below(1ULL << (10 + below(45)))} - steady_duration{below(3'000'000)};
        wheel.insert(entry, due);
        model.insert(entry.number, due);
      } else if (action < 8) {
        REQUIRE(wheel.cancel(entry) == model.cancel(entry.number));
      } else {
        now += steady_duration{below(1ULL << (10 + below(44)))};
        REQUIRE(expire(wheel, now) == model.expire(now));
      }
      REQUIRE(wheel.size() == model.size());
      REQUIRE(wheel.next_due() <= std::max(model.earliest(), now));
    }
    release(wheel, entries);
  }
}

TEST_CASE("X-138 a million entries expire completely and in order") {
  constexpr std::size_t count = 1'000'000;
  timer_wheel wheel{at(0ms)};
  const auto entries = std::make_unique<wheel_entry[]>(count);
  const auto due_of = std::make_unique<std::int64_t[]>(count);
  std::mt19937_64 random{7};
  for (std::size_t i = 0; i < count; ++i) {
    due_of[i] = static_cast<std::int64_t>(random() % 600'000);
    wheel.insert(entries[i], at(std::chrono::milliseconds{due_of[i]}));
  }
  REQUIRE(wheel.size() == count);
  std::size_t popped = 0;
  bool in_order = true;
  std::pair<std::int64_t, std::size_t> last{-1, 0};
  for (auto now = 0ms; now <= 600s; now += 250ms) {
    wheel.advance(at(now));
    while (auto* entry = wheel.pop_expired()) {
      const auto index = static_cast<std::size_t>(entry - entries.get());
      const std::pair key{due_of[index], index};
      in_order = in_order && last < key && due_of[index] <= now.count();
      last = key;
      ++popped;
    }
  }
  CHECK(in_order);
  CHECK(popped == count);
  CHECK(wheel.size() == 0);
}
