// How the links of a mesh node travel, who is let in, and who hears of those that are not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace zlink {

/// What carries a node's links; the same for all nodes of a mesh. Values are fixed.
enum class mesh_transport : std::uint8_t {
  caf = 0, ///< CAF's remoting, with the TLS settings of the actor system
  tcp = 1, ///< TCP of our own, with `mesh_node::tls` and `mesh_node::secret`
};
const char* to_string(mesh_transport kind) noexcept;

/// Mutual TLS: paths of PEM files, all three needed (O-141). Read once, at start.
struct mesh_tls {
  std::string cert = {}; ///< the node's certificate, then those between it and the authority
  std::string key = {};  ///< its private key, without pass phrase
  std::string ca = {};   ///< authorities that peers' certificates must come from
};

/// Somebody who was not let in, or was cut off for breaking the protocol of the link.
struct link_refusal {
  std::string mesh = {};
  std::string peer = {};             ///< its address without port, or where this node dialled
  std::string reason = {};           ///< without anything the peer sent
  std::uint64_t further = 0;         ///< of the same peer since the last one that was told
  std::uint64_t total = 0;           ///< of all peers of this node, this one included
};

/// One line without its end.
std::string to_string(const link_refusal& what);

/// Called on the link's thread, at most once for a peer and minute: must return soon. What it throws is dropped (O-115).
using link_refusal_log = std::function<void(const link_refusal&)>;

} // namespace zlink
