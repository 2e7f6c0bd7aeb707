#include "zlink/timer.hpp"

#include <stdexcept>

namespace zlink::detail {

void require_valid_timer(std::string_view name, std::chrono::milliseconds period, const timer_options& options) {
  if (name.empty())
    throw std::invalid_argument{"timer name is empty; give every timer of an object a name of its own"};
  const auto timer = "timer \"" + std::string{name} + "\": ";
  if (period < std::chrono::milliseconds{1})
    throw std::invalid_argument{timer + "the period is " + std::to_string(period.count())
                                + " ms; it must be at least 1 ms"};
  if (period > longest_timer_period)
    throw std::invalid_argument{timer + "the period is longer than a hundred years"};
  if (options.overrun == timer_overrun::catch_up_bounded && options.max_catch_up_ticks < 1)
    throw std::invalid_argument{timer + "max_catch_up_ticks is " + std::to_string(options.max_catch_up_ticks)
                                + "; under catch_up_bounded it must be at least 1"};
}

} // namespace zlink::detail
