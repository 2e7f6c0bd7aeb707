#include "zlink/execution/gathering.hpp"

#include <utility>

namespace zlink::detail {

constinit thread_local gathering* gathering::here_ = nullptr;

gathering::gathering() noexcept : outer_(std::exchange(here_, this)) {}

gathering::~gathering() {
  here_ = outer_;
  for (std::size_t i = 0; i < count_; ++i)
    waiting_[i]->send_gathered();
}

bool gathering::add(gatherer& what) noexcept {
  if (!here())
    return false;
  auto* const here = here_;
  for (std::size_t i = 0; i < here->count_; ++i)
    if (here->waiting_[i].get() == &what)
      return true;
  if (here->count_ == here->waiting_.size())
    return false;
  here->waiting_[here->count_++] = counted_ptr<gatherer>::share(&what);
  return true;
}

} // namespace zlink::detail
