// Whatever a Join asks, its own deadline ends the wait (J-68).
#pragma once

#include "zlink/execution/infrastructure.hpp"
#include "zlink/execution/operation.hpp"
#include "zlink/task.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace zlink::detail {

/// Something that is asked within a time; touched in the unit. The first end is the one that counts.
template <class T>
class timed_question final : public counted, public timed {
public:
  timed_question(infrastructure& unit, std::string late, std::shared_ptr<std::atomic<bool>> over)
    : unit_(unit), late_(std::move(late)), over_(std::move(over)), ended_(new_counted<operation<T>>()) {
    ended_->dispatcher = unit.unit();
  }
  task<T> answer() const { return task<T>{ended_}; }
  void end(result<T> outcome) noexcept {
    if (ended_->done()) // an answer that comes later, perhaps behind the end of the host
      return;
    unit_.unschedule(*this);
    if (over_)
      over_->store(true); // before anybody hears of it: nothing begins after that (J-118)
    ended_->set(std::move(outcome));
  }
  void expired() noexcept override { end(error{error_kind::deadline_exceeded, late_ + " did not answer in time"}); }
  void dropped() noexcept override { end(error{error_kind::shutting_down, "the host has ended"}); }

private:
  infrastructure& unit_;
  std::string late_;
  std::shared_ptr<std::atomic<bool>> over_;
  counted_ptr<operation<T>> ended_;
};

/// Ends with what `asked` ends with, or with `deadline_exceeded` when the time is over; `asked` is left to itself then.
/// What it uses is its own, therefore. `over`: becomes true when nobody waits any more.
template <class T>
task<T> within(infrastructure& unit, task<T> asked, steady_time due, std::string late, std::shared_ptr<std::atomic<bool>> over = nullptr) {
  auto question = new_counted<timed_question<T>>(unit, std::move(late), std::move(over));
  unit.schedule(*question, due);
  start_coroutine(as_result(std::move(asked)), [question](result<result<T>> outcome) { question->end(std::move(*outcome)); });
  return question->answer();
}

} // namespace zlink::detail
