// Operation id -> operation, for calls made outside of turns; one table per host. Any thread.
#pragma once

#include "zlink/execution/domain.hpp"
#include "zlink/execution/operation_table.hpp"

#include <mutex>

namespace zlink::detail {

class outside_operations final : public reply_receiver {
public:
  explicit outside_operations(execution_domain& domain) noexcept : domain_(domain), watch_(*this) {}
  outside_operations(const outside_operations&) = delete;
  outside_operations& operator=(const outside_operations&) = delete;

  /// The id under which its reply comes; before anything is sent (M-131).
  std::uint64_t add(counted_ptr<operation_base> operation, steady_time due);
  /// Ends it as cancelled unless it has ended.
  void cancel(std::uint64_t id) noexcept;
  /// Ends all of them.
  void fail_all(const error& why) noexcept;
  std::size_t size() const noexcept;

  void receive_reply(record* reply) noexcept override;
  void ref_receiver() noexcept override {} // lives as long as the host, which outlives its links and gates
  void unref_receiver() noexcept override {}

private:
  class deadline_watch final : public timed {
  public:
    explicit deadline_watch(outside_operations& owner) noexcept : owner_(owner) {}
    void expired() noexcept override { owner_.sweep(); }

  private:
    outside_operations& owner_;
  };

  counted_ptr<operation_base> take(std::uint64_t id) noexcept;
  void release(operation_base& operation) noexcept;
  void sweep() noexcept;
  void watch(steady_time due);

  execution_domain& domain_;
  mutable std::mutex mutex_;
  operation_table table_;
  steady_time watched_ = steady_time::max();
  deadline_watch watch_;
};

} // namespace zlink::detail
