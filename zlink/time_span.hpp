// A length of time as callers give it, in any unit.
#pragma once

#include <chrono>
#include <concepts>

namespace zlink {

/// Made from any whole `std::chrono` duration without a wrap: beyond about 292 years it stays at the longest or shortest
/// value, which every check of a range refuses (M-15).
class time_span {
public:
  template <class Rep, class Period>
    requires std::convertible_to<std::chrono::duration<Rep, Period>, std::chrono::nanoseconds>
  constexpr time_span(std::chrono::duration<Rep, Period> given) noexcept : span_(fit(given)) {}

  constexpr std::chrono::nanoseconds nanoseconds() const noexcept { return span_; }
  /// Rounded up.
  constexpr std::chrono::milliseconds milliseconds() const noexcept {
    return std::chrono::ceil<std::chrono::milliseconds>(span_);
  }

private:
  static constexpr std::chrono::milliseconds longest =
    std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds::max());

  template <class Given>
  static constexpr std::chrono::nanoseconds fit(Given given) noexcept {
    if (given > std::chrono::duration_cast<Given>(longest))
      return longest;
    if (given < std::chrono::duration_cast<Given>(-longest))
      return -longest;
    return given;
  }

  std::chrono::nanoseconds span_;
};

} // namespace zlink
