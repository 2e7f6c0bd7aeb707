// Hosts that are registered wrongly, and what they say.
#pragma once

#include "tests/contract/creation/scripted_spots.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace creation_test {

using zlink::configuration_error;

/// The mistakes with which a host that was registered so refuses to start; nothing listened and nothing was written.
inline std::vector<std::string> refused(const std::function<void(zlink::host&)>& registration,
                                        const std::function<void(zlink::host_options&)>& adjust = {}) {
  int transports = 0;
  mesh net{{.hosts = 1, .adjust = [&](std::size_t, zlink::host_options& options) {
              if (adjust)
                adjust(options);
              options.transport = [&, inner = options.transport](caf::actor_system& system, const std::string& name) {
                ++transports;
                return inner(system, name);
              };
            }}};
  std::vector<std::string> mistakes;
  try {
    net.start(registration);
  } catch (const configuration_error& what) {
    CHECK(what.kind() == error_kind::invalid_configuration);
    mistakes = what.mistakes();
  }
  CHECK((mistakes.empty() || (transports == 0 && net.faults(0).log().empty())));
  for (const auto& one : mistakes)
    CHECK(one.size() > 20); // a sentence, not a word
  return mistakes;
}
inline bool names(const std::vector<std::string>& mistakes, const std::string& what) {
  return std::ranges::any_of(mistakes, [&](const auto& one) { return one.find(what) != std::string::npos; });
}

} // namespace creation_test
