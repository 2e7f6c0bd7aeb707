#include "zlink/placement/store_calls.hpp"

#include <vector>

namespace zlink::placement {

/// A call that nobody answers.
struct store_calls::pause final : call {
  explicit pause(store_calls& owner) : call(owner) { ended->dispatcher = owner.unit_.unit(); }
  void end_empty() noexcept override { ended->set(result<void>{}); }
  bool is_pause() const noexcept override { return true; }

  detail::counted_ptr<detail::operation<void>> ended = detail::new_counted<detail::operation<void>>();
};

bool store_calls::call::leave() noexcept {
  if (home == nullptr)
    return false;
  auto& from = *std::exchange(home, nullptr);
  from.unit_.unschedule(*this);
  from.open_.erase(shared_from_this());
  return true;
}

void store_calls::open(const std::shared_ptr<call>& what, steady_time until) {
  open_.insert(what);
  if (stopped_)
    what->give_up();
  else
    unit_.schedule(*what, until);
}

task<store_outcome<store_write_result>> store_calls::write(store_batch batch, steady_time until) {
  auto writing = within<store_outcome<store_write_result>>(
    until, [&](auto done) { store_->write(std::move(batch), std::move(done)); });
  auto answer = co_await std::move(writing);
  if (!answer)
    co_return no_answer();
  co_return std::move(*answer);
}

task<store_outcome<store_scan_result>> store_calls::scan(std::string prefix, std::string cursor, std::size_t limit,
                                                         steady_time until) {
  auto scanning = within<store_outcome<store_scan_result>>(
    until, [&](auto done) { store_->scan(std::move(prefix), std::move(cursor), limit, std::move(done)); });
  auto answer = co_await std::move(scanning);
  if (!answer)
    co_return no_answer();
  co_return std::move(*answer);
}

task<void> store_calls::pause_until(steady_time due) {
  auto waiting = std::make_shared<pause>(*this);
  open(waiting, due);
  return task<void>{waiting->ended};
}

void store_calls::wake() {
  std::vector<std::shared_ptr<call>> pauses;
  for (const auto& one : open_)
    if (one->is_pause())
      pauses.push_back(one);
  for (const auto& one : pauses)
    one->give_up();
}

void store_calls::stop() {
  stopped_ = true;
  const std::vector<std::shared_ptr<call>> all{open_.begin(), open_.end()};
  for (const auto& one : all)
    one->give_up();
}

} // namespace zlink::placement
