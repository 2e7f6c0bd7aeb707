// Changes of membership under way, for a shutdown that waits for them.
#pragma once

#include "zlink/membership/memberships.hpp"

namespace zlink::detail {

class memberships::work_count {
public:
  explicit work_count(memberships& owner) noexcept : owner_(owner) { ++owner_.under_way_; }
  ~work_count() { --owner_.under_way_; }
  work_count(const work_count&) = delete;
  work_count& operator=(const work_count&) = delete;

private:
  memberships& owner_;
};

} // namespace zlink::detail
