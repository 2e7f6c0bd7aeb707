// What the Redis server does for the Location Store. Each script is one atomic step there (S-132).
//
// Keys, all behind "{prefix}:" and so in one slot:
//   m        hash: `epoch` random id of this data set, `last` number of the latest version, `snapshots` live ones' ids
//   v:KEY    one value: version (32 bytes), expiry (16 digits, microseconds, zeros for never), then the bytes
//   i        sorted set of every key, all of score 0: byte order
//   x        sorted set: keys with an expiry, by it; may be behind the values, which decide
//   s:ID     hash of a scan snapshot: prefix, instants, bytes retained; s:ID:k (sorted set) and s:ID:r (hash) hold the
//            former state of what changed since
#pragma once

#include "adapters/location/redis_script.hpp"

#include <cstddef>

namespace zlink::adapters {

/// A version is the epoch (16 bytes) and a number (16 digits) that grows with every commit and is never behind the
/// server's clock in microseconds. A wiped data set gets another epoch; one that lost its latest commits goes on at the
/// clock, beyond what was lost. So no version comes twice (S-12, S-132).
inline constexpr std::size_t redis_epoch_bytes = 16;
inline constexpr std::size_t redis_version_bytes = 32;
inline constexpr std::size_t redis_header_bytes = 48;

/// KEYS[1] m. ARGV: epoch to take if there is none; number of conditions; conditions "m" KEY | "v" KEY VERSION |
/// "b" KEY BYTES; mutations "p" KEY BYTES | "r" KEY BYTES MILLISECONDS | "d" KEY.
/// Answers {1, now, version} or {0, now}.
const redis_script& redis_write_script();
/// KEYS[1] m. ARGV: KEY. Answers {now, value} or {now}; whether it has expired is for the caller to compare.
const redis_script& redis_read_script();
/// KEYS[1] m. ARGV: prefix, snapshot id or "", last key or "", limit, epoch to take if there is none.
/// Answers {0, now}: Expired; or {1, now, snapshot id or "", last key, KEY, value, KEY, value, ...}.
const redis_script& redis_scan_script();

} // namespace zlink::adapters
