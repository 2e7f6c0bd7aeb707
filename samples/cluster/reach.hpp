// Which nodes of the mesh a node can talk to: each serving node answers this question about itself.
#pragma once

#include <zlink/zlink.hpp>

#include <string>
#include <vector>

/// Question to a node: whom do you reach?
struct ask_reach {};
struct reach {
  std::vector<std::string> reached; ///< routing ids of other live nodes with twins that answered
  std::vector<std::string> missed;  ///< and of those that did not
};

/// Question to a node: are you there?
struct ask_presence {};
struct presence {};

ZLINK_PACKET(ask_reach, "cluster.ask_reach")
ZLINK_PACKET(reach, "cluster.reach", reached, missed)
ZLINK_PACKET(ask_presence, "cluster.ask_presence")
ZLINK_PACKET(presence, "cluster.presence")

/// Lets the node answer both. `host` is the node's, `mesh` its mesh.
void serve_reach(zlink::mesh_node& node, zlink::host& host, const std::string& mesh);
