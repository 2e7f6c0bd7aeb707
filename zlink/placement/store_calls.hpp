// Store calls and pauses of one keeper (lease, registration, directory, sweep): each ends by an instant of its own, and all
// end when the keeper stops, so that no timer and no answer outlives it (S-119).
#pragma once

#include "zlink/placement/repository.hpp"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace zlink::placement {

/// Every member is called inside the infrastructure unit; tasks go on there.
class store_calls {
public:
  store_calls(detail::infrastructure& unit, std::shared_ptr<location_store> store)
    : unit_(unit), store_(std::move(store)) {}
  ~store_calls() { stop(); }
  store_calls(const store_calls&) = delete;
  store_calls& operator=(const store_calls&) = delete;

  /// Ends when `begin(done)` has called `done(T)`, on whatever thread; with nothing if `until` or `stop()` comes first. An
  /// answer after that is dropped (S-159). `begin` is not called after `stop()`.
  template <class T, class Begin>
  task<std::optional<T>> within(steady_time until, Begin begin);

  /// As `repository::read`. No answer in time is an unclear failure.
  template <class Record>
  task<read_outcome<Record>> read(std::string key, steady_time until);
  /// A batch of its own. No answer in time: unclear, and what happens later is for a re-read to find out (S-156).
  task<store_outcome<store_write_result>> write(store_batch batch, steady_time until);
  task<store_outcome<store_scan_result>> scan(std::string prefix, std::string cursor, std::size_t limit,
                                              steady_time until);
  /// Ends at `due`, or at once after `stop()`.
  task<void> pause_until(steady_time due);
  /// Ends every pause.
  void wake();

  /// Ends everything that is under way, and whatever begins later at once.
  void stop();
  bool stopped() const noexcept { return stopped_; }
  steady_time now() const noexcept { return unit_.time().now(); }
  detail::infrastructure& unit() const noexcept { return unit_; }

private:
  struct call : detail::timed, std::enable_shared_from_this<call> {
    explicit call(store_calls& owner) noexcept : home(&owner) {}
    void expired() noexcept final {
      const auto self = shared_from_this();
      give_up();
    }
    void give_up() noexcept {
      if (leave())
        end_empty();
    }
    /// False: ended before. Whoever calls this holds a reference.
    bool leave() noexcept;
    virtual void end_empty() noexcept = 0;
    virtual bool is_pause() const noexcept { return false; }

    store_calls* home; ///< null once ended
  };
  template <class T>
  struct call_for;
  struct pause;

  void open(const std::shared_ptr<call>& what, steady_time until);
  static store_failure no_answer() { return {store_failure_class::unclear, "the store did not answer in time"}; }

  detail::infrastructure& unit_;
  const std::shared_ptr<location_store> store_;
  std::set<std::shared_ptr<call>> open_;
  bool stopped_ = false;
};

template <class T>
struct store_calls::call_for final : call {
  explicit call_for(store_calls& owner) : call(owner) { ended->dispatcher = owner.unit_.unit(); }
  void answer(T value) {
    if (leave())
      ended->set(std::optional<T>{std::move(value)});
  }
  void end_empty() noexcept override { ended->set(std::optional<T>{}); }

  detail::counted_ptr<detail::operation<std::optional<T>>> ended =
    detail::new_counted<detail::operation<std::optional<T>>>();
};

template <class T, class Begin>
task<std::optional<T>> store_calls::within(steady_time until, Begin begin) {
  auto waiting = std::make_shared<call_for<T>>(*this);
  open(waiting, until);
  if (!stopped_)
    begin([unit = unit_.unit(), waiting](T value) mutable {
      unit->post(
        [waiting = std::move(waiting), value = std::move(value)]() mutable { waiting->answer(std::move(value)); });
    });
  return task<std::optional<T>>{waiting->ended};
}

template <class Record>
task<read_outcome<Record>> store_calls::read(std::string key, steady_time until) {
  auto reading =
    within<store_outcome<store_read_result>>(until, [&](auto done) { store_->read(std::move(key), std::move(done)); });
  auto answer = co_await std::move(reading);
  if (!answer)
    co_return no_answer();
  if (!*answer)
    co_return answer->failure();
  auto seen = observe<Record>(**answer);
  if (const auto* fault = std::get_if<record_fault>(&seen))
    co_return *fault;
  co_return std::move(std::get<observed<Record>>(seen));
}

} // namespace zlink::placement
