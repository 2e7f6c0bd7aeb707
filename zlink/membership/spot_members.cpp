#include "zlink/membership/spot_members.hpp"

#include "zlink/membership/actor_object.hpp"

#include <algorithm>
#include <vector>

namespace zlink::detail {

struct spot_members::contents {
  std::vector<counted_ptr<actor_object>> actors; ///< null where somebody has left
  std::size_t gone = 0; ///< nulls among them

  std::size_t place_of(const actor_object& actor) const noexcept;
  void close_up() noexcept;
  std::uint32_t coming = 0;
};

spot_members::spot_members() noexcept = default;
spot_members::~spot_members() = default;

spot_members::contents& spot_members::there() {
  if (!there_)
    there_ = std::make_unique<contents>();
  return *there_;
}

bool spot_members::expecting() const noexcept { return there_ != nullptr && there_->coming != 0; }

std::size_t spot_members::count() const noexcept { return there_ == nullptr ? 0 : there_->actors.size() - there_->gone; }

std::size_t spot_members::next(std::size_t place) const noexcept {
  if (there_ == nullptr)
    return nobody;
  while (place < there_->actors.size() && !there_->actors[place])
    ++place;
  return place < there_->actors.size() ? place : nobody;
}

const actor_object* spot_members::at(std::size_t place) const noexcept {
  return there_ != nullptr && place < there_->actors.size() ? there_->actors[place].get() : nullptr;
}

counted_ptr<actor_object> spot_members::who(std::size_t place) const noexcept {
  return there_ != nullptr && place < there_->actors.size() ? there_->actors[place] : counted_ptr<actor_object>{};
}

/// Its own idea of its place is right but for the moments in which another Spot has it already.
std::size_t spot_members::contents::place_of(const actor_object& actor) const noexcept {
  if (const auto place = actor.place_in_spot(); place < actors.size() && actors[place].get() == &actor)
    return place;
  return static_cast<std::size_t>(std::ranges::find(actors, &actor, &counted_ptr<actor_object>::get) - actors.begin());
}

void spot_members::contents::close_up() noexcept {
  std::erase(actors, nullptr);
  gone = 0;
  for (std::size_t i = 0; i < actors.size(); ++i)
    actors[i]->note_place_in_spot(i);
}

void spot_members::add(counted_ptr<actor_object> actor) {
  auto& here = there();
  const auto place = actor->place_in_spot();
  if (place < here.actors.size() && here.actors[place] == actor)
    return;
  if (here.gone > here.actors.size() / 2)
    here.close_up();
  actor->note_place_in_spot(here.actors.size());
  here.actors.push_back(std::move(actor));
}

/// Costs the same however many there are, and moves nobody: a loop may go over them.
void spot_members::remove(const actor_object& actor) noexcept {
  if (there_ == nullptr)
    return;
  auto& here = *there_;
  const auto place = here.place_of(actor);
  if (place == here.actors.size())
    return;
  here.actors[place] = nullptr;
  if (++here.gone == here.actors.size()) {
    here.actors.clear();
    here.gone = 0;
  }
}

void spot_members::expect() { ++there().coming; }
void spot_members::expected_came() noexcept { --there_->coming; }
bool spot_members::none() const noexcept { return there_ == nullptr || (count() == 0 && there_->coming == 0); }

} // namespace zlink::detail
