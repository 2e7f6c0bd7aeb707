// The Actors of one Spot. Touched inside the Spot's gate only.
#pragma once

#include "zlink/execution/counted.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zlink::detail {

class actor_object;

/// Costs one pointer as long as no Actor has come.
class spot_members {
public:
  static constexpr auto nobody = static_cast<std::size_t>(-1);

  spot_members() noexcept;
  ~spot_members();
  spot_members(const spot_members&) = delete;
  spot_members& operator=(const spot_members&) = delete;

  std::size_t count() const noexcept;
  /// The place of the first who is at `place` or behind it, in the order in which they came; or `nobody`.
  std::size_t next(std::size_t place) const noexcept;
  /// Null: nobody is there any more.
  const actor_object* at(std::size_t place) const noexcept;
  counted_ptr<actor_object> who(std::size_t place) const noexcept;
  /// No effect if it is here.
  void add(counted_ptr<actor_object> actor);
  void remove(const actor_object& actor) noexcept;
  /// Let in, and not here yet: the Spot is not closed meanwhile (C-114, J-167).
  void expect();
  void expected_came() noexcept;
  bool none() const noexcept;
  bool expecting() const noexcept;
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
