// The two stores on Redis, for hosts of several processes and machines (S-131 to S-146). What is kept where, and what
// happens when the server is gone: docs/operations/redis.md. Includes nothing of CAF and nothing of a Redis client.
#pragma once

#include "zlink/defaults.hpp"
#include "zlink/location_store.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace zlink {

struct redis_options {
  /// `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS, or
  /// `unix://[[user]:password@]/path/to/socket[?db=database]`. User and password are percent-encoded. TLS takes the
  /// files `?ca=FILE&cert=FILE&key=FILE` (PEM); without `ca` the system's authorities are trusted. Nothing of user or
  /// password is ever logged or part of an error (O-152).
  std::string url = {};
  /// Begins every key, in braces, so that all keys lie in one slot of a Redis Cluster (S-131). 1 to 256 bytes of UTF-8
  /// without braces, white space and control characters. Deployments, and the two stores of one, each take their own
  /// (S-136).
  std::string key_prefix = {};
  /// Waiting for a connection and the command together; 1 ms to 10 min (S-136). A write that was sent and not answered
  /// by then is unclear, one that was not sent is not applied (S-137).
  std::chrono::milliseconds operation_timeout = defaults::redis_operation_timeout;
  /// Requests sent and not yet answered; later ones wait within their timeout (S-138). 1 to 65,536.
  std::uint32_t max_in_flight = defaults::redis_max_in_flight;
  /// So many replicas must have a write before it counts as applied; otherwise it is unclear (S-143). 0 to 16.
  std::uint32_t acknowledging_replicas = 0;
  /// Told in plain words about connections lost and found, and about settings of the server that put data at risk
  /// (S-143). On the store's own thread: it must be quick. Null: a line on stderr.
  std::function<void(const std::string&)> on_notice = nullptr;
};

/// A connection and a thread of its own, on which completions are called; only a request beyond 65,536 outstanding ones
/// or 256 MiB of them is refused on the caller's thread. Neither waits for the server: it is looked for from now on
/// until the store is destroyed, which ends what is under way. Throw `configuration_error` for options that can never
/// work (S-160). A server that answers and refuses (password, database, a replica) shows at the start of a host.
std::shared_ptr<location_store> make_redis_location_store(redis_options options);
std::shared_ptr<relocation_store> make_redis_relocation_store(redis_options options);

} // namespace zlink
