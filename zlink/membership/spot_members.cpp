#include "zlink/membership/spot_members.hpp"

#include "zlink/membership/actor_object.hpp"

#include <algorithm>

namespace zlink::detail {

struct spot_members::contents {
  list actors;
  std::uint32_t coming = 0;
};

spot_members::spot_members() noexcept = default;
spot_members::~spot_members() = default;

spot_members::contents& spot_members::there() {
  if (!there_)
    there_ = std::make_unique<contents>();
  return *there_;
}

const spot_members::list& spot_members::all() const noexcept {
  static const list nobody;
  return there_ == nullptr ? nobody : there_->actors;
}

void spot_members::add(counted_ptr<actor_object> actor) { there().actors.push_back(std::move(actor)); }

void spot_members::remove(const actor_object& actor) noexcept {
  if (there_ == nullptr)
    return;
  auto& actors = there_->actors;
  const auto i = std::ranges::find(actors, &actor, &counted_ptr<actor_object>::get);
  if (i != actors.end())
    actors.erase(i);
}

void spot_members::expect() { ++there().coming; }
void spot_members::expected_came() noexcept { --there_->coming; }
bool spot_members::none() const noexcept { return there_ == nullptr || (there_->actors.empty() && there_->coming == 0); }

} // namespace zlink::detail
