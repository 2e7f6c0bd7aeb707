#include "zlink/objects/tick_handler.hpp"

#include <string_view>

namespace zlink::detail {

namespace {

/// Changes before `main` only.
constinit const tick_registration* all_registered = nullptr;

} // namespace

tick_registration::tick_registration(const char* name, tick_invoke invoke, bool (*serves)(hosted_object&)) noexcept
  : name(name), invoke(invoke), serves(serves), next(std::exchange(all_registered, this)) {}

const char* name_of(tick_invoke invoke) noexcept {
  for (const auto* one = all_registered; one != nullptr; one = one->next)
    if (one->invoke == invoke)
      return one->name;
  return nullptr;
}

tick_invoke find_tick_handler(std::string_view name, hosted_object& object) noexcept {
  for (const auto* one = all_registered; one != nullptr; one = one->next)
    if (one->name == name && one->serves(object))
      return one->invoke;
  return nullptr;
}

} // namespace zlink::detail
