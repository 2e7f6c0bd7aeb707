#include "zlink/mesh_transport.hpp"

namespace zlink {

const char* to_string(mesh_transport kind) noexcept {
  switch (kind) {
    case mesh_transport::caf: return "caf";
    case mesh_transport::tcp: return "tcp";
  }
  return "unknown";
}

std::string to_string(const link_refusal& what) {
  auto line = "zlink: link refused mesh=" + what.mesh + " peer=" + what.peer + ": " + what.reason;
  if (what.further != 0)
    line += " (and " + std::to_string(what.further) + " before, not told)";
  return line;
}

} // namespace zlink
