// The Actors of one Spot. Touched inside the Spot's gate only.
#pragma once

#include "zlink/execution/counted.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace zlink::detail {

class actor_object;

/// Costs one pointer as long as no Actor has come.
class spot_members {
public:
  using list = std::vector<counted_ptr<actor_object>>;

  spot_members() noexcept;
  ~spot_members();
  spot_members(const spot_members&) = delete;
  spot_members& operator=(const spot_members&) = delete;

  const list& all() const noexcept;
  void add(counted_ptr<actor_object> actor);
  void remove(const actor_object& actor) noexcept;
  /// Let in, and not here yet: the Spot is not closed meanwhile (C-114, J-167).
  void expect();
  void expected_came() noexcept;
  bool none() const noexcept;
  /// A close has found nobody: from now on nobody is let in, unless it fails (J-167).
  void shut(bool closing) noexcept { shut_ = closing; }
  bool is_shut() const noexcept { return shut_; }

private:
  struct contents;
  contents& there();
  std::unique_ptr<contents> there_;
  bool shut_ = false;
};

} // namespace zlink::detail
