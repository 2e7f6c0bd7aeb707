// What ends an operation of the infrastructure unit, or tells that nothing will.
#pragma once

#include "zlink/execution/operation.hpp"

#include <utility>

namespace zlink::placement {

/// The end of an operation by whoever has been asked; with `shutting_down` if that one ends without an answer.
template <class T>
class awaited_answer {
public:
  explicit awaited_answer(detail::counted_ptr<detail::operation<T>> ended) noexcept : ended_(std::move(ended)) {}
  awaited_answer(awaited_answer&&) noexcept = default;
  awaited_answer& operator=(awaited_answer&&) = delete;
  ~awaited_answer() {
    if (!ended_)
      return;
    ended_->dispatcher = nullptr; // its unit has ended: whoever waits is told here, and goes no further than its own end
    ended_->fail({error_kind::shutting_down, "the host has ended"});
  }
  void operator()(result<T> outcome) { std::exchange(ended_, nullptr)->set(std::move(outcome)); }

private:
  detail::counted_ptr<detail::operation<T>> ended_;
};

} // namespace zlink::placement
