// How many operations of a host may be under way: requests, waiting sends and worker calls.
#pragma once

#include "zlink/defaults.hpp"
#include "zlink/execution/fair_limit.hpp"

#include <cstdint>

namespace zlink::detail {

/// An operation enters before anything of it is sent, and leaves when it has ended. One that finds no room waits in
/// line with its entry, and is cancelled there when its own deadline or its caller comes first.
class operation_limit final : public fair_limit {
public:
  explicit operation_limit(std::uint32_t max_operations = defaults::max_operations) noexcept
    : fair_limit(max_operations) {}
};

} // namespace zlink::detail
