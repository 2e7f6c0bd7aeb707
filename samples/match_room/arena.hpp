// What processes must have in common to be nodes of the one mesh in which matches are played.
#pragma once

#include "match_packets.hpp"

#include <zlink/zlink.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

struct arena {
  static constexpr const char* mesh = "arena";

  std::string redis_url;
  std::string key_prefix = "match_room";
  std::string secret; ///< keeps out whoever else has a shell on this machine

  /// Keys and a secret that no other run has.
  static arena fresh(std::string redis_url);
  /// Settings that all hosts of the mesh share.
  static zlink::host_options settings();
  /// Gives the host its stores and declares its node. Roles are the caller's matter.
  zlink::mesh_node& declare(zlink::host& host, const std::string& name) const;
};

/// The name that a node was given, of its routing id.
std::string name_of(const std::string& rid);

/// A node, and what it says about itself; nothing if it did not answer.
struct seen_node {
  std::string rid;
  std::optional<node_report> report;
};

/// A started host that calls and holds nothing.
class visitor {
public:
  /// Returns when it reaches every node that there is, `nodes` at least. Throws `std::runtime_error` after a minute.
  explicit visitor(const arena& where, std::size_t nodes = 1);
  zlink::host& host() { return host_; }
  /// All nodes that live and can hold matches.
  std::vector<seen_node> look_around();
  /// The routing id of the live node of that name; throws `std::runtime_error` if there is none.
  std::string find(const std::string& name);

private:
  zlink::host host_;
};
