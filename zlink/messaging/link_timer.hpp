// The one alarm of a link session, on the host's wheel (S-64, X-110).
#pragma once

#include "zlink/execution/counted.hpp"
#include "zlink/execution/infrastructure.hpp"

namespace zlink::detail {

class link_session;

/// Calls the session's `on_alarm()` inside the infrastructure unit. Holds the session while an alarm is set.
class link_timer final : public counted, private timed {
public:
  explicit link_timer(infrastructure& infra) noexcept;

  /// Sets the alarm, or moves it. Any thread.
  void set(counted_ptr<link_session> session, steady_time due);
  void cancel();

private:
  ~link_timer() override;
  void expired() noexcept override;
  void dropped() noexcept override;

  infrastructure& infra_;
  counted_ptr<link_session> session_; ///< infrastructure unit only
};

} // namespace zlink::detail
