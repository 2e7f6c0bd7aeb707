// How a program becomes a member of the cluster: everything that differs between one machine and many is in here, and all
// of it comes from the options.
#pragma once

#include "options.hpp"

#include <zlink/zlink.hpp>

#include <string>

/// The mesh's name.
inline constexpr const char* plant = "plant";

/// What a host is told before anything else.
zlink::host_options settings_of(const options& chosen);
/// Gives the host its stores and declares its node in the mesh. Roles are the caller's matter.
zlink::mesh_node& join(zlink::host& host, const options& chosen);
/// Clients are known by their routing ids: everybody else holds twins.
inline constexpr const char* client_prefix = "client-";
bool is_client(const std::string& rid);

/// A started host that calls and holds nothing. It reaches the nodes that hold twins when this returns, or 5 s have passed.
class client {
public:
  explicit client(const options& chosen);
  zlink::host& host() { return host_; }

private:
  zlink::host host_;
};
