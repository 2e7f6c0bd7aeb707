#include "zlink/packet_type.hpp"

#include "zlink/identity.hpp"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <typeindex>

namespace zlink::detail {

namespace {

struct registry {
  std::shared_mutex lock;
  std::map<std::string_view, const packet_type*> by_name;
  std::map<std::type_index, const packet_type*> by_type;
  std::vector<std::string> mistakes;

  /// Made on first use and never destroyed: static objects of any file use it, in any order.
  static registry& instance() {
    static auto* one = new registry;
    return *one;
  }
};

std::string quoted(std::string_view name) { return '"' + std::string{name} + '"'; }

} // namespace

const packet_type* find_packet(std::string_view name) noexcept {
  auto& all = registry::instance();
  std::shared_lock guard{all.lock};
  const auto found = all.by_name.find(name);
  return found == all.by_name.end() ? nullptr : found->second;
}

void register_packet(const packet_type& type) {
  auto& all = registry::instance();
  std::unique_lock guard{all.lock};
  if (!is_valid_id(type.name)) {
    all.mistakes.push_back("packet name " + quoted(type.name) + " of type " + type.type->name()
                           + " is not 1 to 255 bytes of UTF-8");
    return;
  }
  const auto same_name = all.by_name.find(type.name);
  if (same_name != all.by_name.end() && *same_name->second->type != *type.type) {
    all.mistakes.push_back("packet name " + quoted(type.name) + " is declared for two types, "
                           + same_name->second->type->name() + " and " + type.type->name()
                           + "; give one of them another name");
    return;
  }
  const auto [same_type, added] = all.by_type.try_emplace(*type.type, &type);
  if (!added && same_type->second->name != type.name) {
    all.mistakes.push_back("packet type " + std::string{type.type->name()} + " has two names, "
                           + quoted(same_type->second->name) + " and " + quoted(type.name) + "; keep one of them");
    return;
  }
  all.by_name.try_emplace(type.name, &type);
}

std::vector<const packet_type*> registered_packets() {
  auto& all = registry::instance();
  std::shared_lock guard{all.lock};
  std::vector<const packet_type*> found;
  found.reserve(all.by_name.size());
  for (const auto& [name, type] : all.by_name)
    found.push_back(type);
  return found;
}

std::vector<std::string> packet_registration_mistakes() {
  auto& all = registry::instance();
  std::shared_lock guard{all.lock};
  return all.mistakes;
}

} // namespace zlink::detail
