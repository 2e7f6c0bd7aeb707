// The requests of one mesh node that wait for a reply from another node: reply-route id -> where the reply goes
// (M-132). One per node rather than per link, because the reply to a followed request comes by another link (M-83).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/error.hpp"
#include "zlink/execution/record.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

namespace zlink::detail {

/// Thread-safe. Whoever takes an entry answers its route; everybody else finds nothing (M-130).
class reply_table {
public:
  reply_table() = default;
  reply_table(const reply_table&) = delete;
  reply_table& operator=(const reply_table&) = delete;
  /// Ends what is left with `shutting_down`.
  ~reply_table();

  /// The id under which `route` is found; never zero, not used again for four billion requests. `link` is any number
  /// that stands for the link the request goes by. `deadline` zero: none.
  std::uint64_t add(reply_route route, std::uint64_t link, steady_time deadline);
  /// Empty route: answered, failed or never there.
  reply_route take(std::uint64_t id) noexcept;
  /// Ends every request that went by `link` (M-135).
  void fail_link(std::uint64_t link, const error& why) noexcept;
  /// Ends those whose deadline has passed; their callers have ended themselves, this lets go of their routes.
  void expire(steady_time now) noexcept;
  std::size_t size() const noexcept;

private:
  static constexpr std::uint32_t none = 0xffff'ffff;
  struct entry {
    reply_route route; ///< receiver null: free
    std::uint64_t link = 0;
    steady_time deadline{};
    std::uint32_t generation = 1;
    std::uint32_t next_free = none;
  };
  reply_route release(std::uint32_t index) noexcept;
  template <class F>
  void fail_if(F wanted, const error& why) noexcept;

  mutable std::mutex mutex_;
  std::vector<entry> entries_;
  std::uint32_t free_ = none;
  std::size_t count_ = 0;
};

/// Answers a route with an error; an empty route is ignored.
void fail_route(reply_route route, const error& why) noexcept;

} // namespace zlink::detail
