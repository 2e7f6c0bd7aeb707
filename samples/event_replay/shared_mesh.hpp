// What processes must have in common to be nodes of one mesh: the stores where they meet, and a secret.
#pragma once

#include <zlink/zlink.hpp>

#include <cstddef>
#include <string>

/// Whether a node can be reached, and its answer.
struct knock {};
struct knocked {};
ZLINK_PACKET(knock, "packages.knock")
ZLINK_PACKET(knocked, "packages.knocked")

struct shared_mesh {
  /// The mesh's name, whether its nodes share a process or a Redis.
  static constexpr const char* name = "packages";

  std::string redis_url;
  /// Begins every key, and no other run has it: a Redis may be shared, and nobody else's keys are touched.
  std::string key_prefix;
  /// Keeps out whoever else has a shell on this machine.
  std::string secret;

  /// For the hosts of processes.
  static zlink::host_options options();
  /// A mesh of its own on that Redis.
  static shared_mesh fresh(std::string redis_url);
  /// Gives the host its stores and declares its node. Roles are the caller's matter.
  zlink::mesh_node& declare(zlink::host& host) const;
};

/// Routing ids of node `index` begin with this.
std::string node_prefix(std::size_t index);
/// Lets a node hold packages.
void serve_packages(zlink::mesh_node& node);
/// The life of a node process: serves until SIGTERM. Returns the exit code.
int run_node(std::size_t index, const shared_mesh& shared);
/// The same, and it may be replaced: told `node_leaves`, it hands its packages to other nodes, tells its parent the same
/// signal, and ends when nobody's messages come this way any more.
int run_replaceable_node(std::size_t index, const shared_mesh& shared);
