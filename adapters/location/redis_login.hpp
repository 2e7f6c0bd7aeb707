// What is said first on every new connection to a Redis server: who we are, which database, and whether it will do.
#pragma once

#include "adapters/location/redis_address.hpp"
#include "adapters/location/redis_reply.hpp"
#include "adapters/location/redis_script.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace zlink::adapters {

/// Why a connection is of no use.
struct redis_trouble {
  std::string text;
  bool misconfigured = false; ///< the next attempt will end the same way until a setting changes
};

/// Only a primary is of use (S-134).
std::optional<redis_trouble> judge_role(const redisReply& reply);

class redis_login {
public:
  redis_login(const redis_address& address, const std::vector<const redis_script*>& scripts);
  /// Every command, in one go.
  const std::string& commands() const noexcept { return commands_; }
  bool complete() const noexcept { return open_.empty(); }
  /// The next reply. Trouble: the connection is of no use.
  std::optional<redis_trouble> answered(const redisReply& reply);
  /// Settings of the server that put data at risk, in plain words (S-143); once complete.
  std::vector<std::string> warnings() const;

private:
  enum class step : std::uint8_t { authenticate, select, role, info, save, load };
  void say(step what, const std::string& command);
  std::optional<redis_trouble> judge_login_error(step what, std::string_view error) const;
  std::optional<redis_trouble> judge_info(std::string_view info);

  const std::uint32_t database_;
  const bool has_password_;
  std::string commands_;
  std::deque<step> open_;
  std::string eviction_; // empty: unknown or no bound of memory
  bool append_only_ = true;
  bool snapshots_ = true;
};

} // namespace zlink::adapters
