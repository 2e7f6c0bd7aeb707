#include "package_history.hpp"

#include <string_view>

namespace {

/// FNV-1a, each text ended by a byte that occurs in none.
void add(std::uint64_t& fingerprint, std::string_view text) {
  const auto step = [&fingerprint](unsigned char byte) { fingerprint = (fingerprint ^ byte) * 1099511628211ULL; };
  for (const char c : text)
    step(static_cast<unsigned char>(c));
  step(0xff);
}

} // namespace

void package_history::apply(const package_event& event) {
  ++lines;
  if (first_seen.empty())
    first_seen = event.when;
  last_seen = event.when;

  if (event.action == "status") {
    status = event.status;
    version = event.version;
  } else if (event.action == "install") {
    ++installs;
  } else if (event.action == "upgrade") {
    ++upgrades;
  } else if (event.action == "remove" || event.action == "purge" || event.action == "disappear") {
    ++removals;
  }

  add(fingerprint, std::to_string(event.line));
  for (const auto* text : {&event.when, &event.action, &event.status, &event.version})
    add(fingerprint, *text);
}
