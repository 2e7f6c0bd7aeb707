// The Actors of one Spot. Touched inside the Spot's gate only.
#pragma once

#include "zlink/execution/counted.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace zlink::detail {

class actor_object;

/// Costs one pointer as long as no Actor has come.
class spot_members {
public:
  using list = std::vector<counted_ptr<actor_object>>;

  const list& all() const noexcept {
    static const list none;
    return there_ == nullptr ? none : there_->actors;
  }
  void add(counted_ptr<actor_object> actor) { data().actors.push_back(std::move(actor)); }
  bool remove(const actor_object& actor) noexcept {
    if (there_ == nullptr)
      return false;
    auto& actors = there_->actors;
    const auto i = std::ranges::find(actors, &actor, [](const auto& each) { return static_cast<const actor_object*>(each.get()); });
    if (i == actors.end())
      return false;
    actors.erase(i);
    return true;
  }
  /// Let in, and not here yet: the Spot is not closed meanwhile (C-114, J-167).
  void expect() { ++data().coming; }
  void expected_came() noexcept { --there_->coming; }
  bool none() const noexcept { return there_ == nullptr || (there_->actors.empty() && there_->coming == 0); }

private:
  struct data_of {
    list actors;
    std::uint32_t coming = 0;
  };
  data_of& data() {
    if (!there_)
      there_ = std::make_unique<data_of>();
    return *there_;
  }
  std::unique_ptr<data_of> there_;
};

} // namespace zlink::detail
