// Whether a thread gets the processors that it has work for.
#pragma once

#include <cstdint>

namespace zlink::detail {

/// Asked by one thread, of itself.
class processor_wait {
public:
  /// Of the time since the last call in which this thread had work, how long it waited for a processor, in percent. 0 at first,
  /// and where the system does not say.
  unsigned percent() noexcept;

private:
  std::uint64_t ran_ns_ = 0;
  std::uint64_t waited_ns_ = 0;
  bool begun_ = false;
};

} // namespace zlink::detail
