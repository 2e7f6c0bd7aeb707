// Every default value in one place, each with the clause that states it. Names end in their unit where the type does
// not say it. A value of 0 means what the comment says; it never means "unlimited" unless the comment says so.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace zlink::defaults {

using std::chrono::milliseconds;

// -- execution ------------------------------------------------------------------------------------------------------

/// Records of one application lane, `execution.lanes.application_messages`.
inline constexpr std::uint32_t application_lane_records = 1024;
/// `execution.lanes.application_bytes`.
inline constexpr std::uint64_t application_lane_bytes = 64ULL << 20;
/// Records of one lifecycle lane, `execution.lanes.lifecycle_messages`.
inline constexpr std::uint32_t lifecycle_lane_records = 128;
/// `execution.lanes.lifecycle_bytes`.
inline constexpr std::uint64_t lifecycle_lane_bytes = 4ULL << 20;
/// What every record costs besides its payload and metadata; also all that an Actor's record reserves at the
/// shared gate.
inline constexpr std::uint64_t record_overhead_bytes = 256;

/// Lifecycle turns in a row while application work is ready, `execution.lifecycle_burst`.
inline constexpr std::uint32_t lifecycle_burst = 8;
/// How long one execution object runs records back to back, `execution.owner_time_slice_ms`.
inline constexpr milliseconds owner_time_slice{10};
/// Records taken from one peer before the next peer's turn.
inline constexpr std::uint32_t receive_burst_records = 64;

/// Requests, waiting sends and worker calls in flight per host, `execution.max_operations`.
inline constexpr std::uint32_t max_operations = 4096;
/// Encoded sends that wait for room per node, `execution.send_waiters`.
inline constexpr std::uint32_t send_waiters = 1024;
/// `execution.publish_workers`.
inline constexpr std::uint32_t publish_workers = 2;
/// Outbound queue per destination, `meshes[].outbound_queue_bytes`.
inline constexpr std::uint64_t outbound_queue_bytes = 4'096'000;

/// Jobs per effective processor, by `execution.job_queue.profile`; balanced is the default profile.
inline constexpr std::uint32_t jobs_per_processor_compact = 32;
inline constexpr std::uint32_t jobs_per_processor_low_latency = 64;
inline constexpr std::uint32_t jobs_per_processor_balanced = 128;
inline constexpr std::uint32_t jobs_per_processor_throughput = 256;
/// Percent of the permits in use at which a host pauses, and at which it runs again.
inline constexpr int pressure_pause_percent = 80;
inline constexpr int pressure_resume_percent = 60;

/// Threads for CPU worker bodies; the maximum 0 stands for the number of processors.
inline constexpr std::uint32_t worker_min_threads = 1;
inline constexpr std::uint32_t worker_max_threads = 0;
/// How long a worker thread above the minimum stays without work.
inline constexpr milliseconds worker_idle_timeout{30'000};

/// Ticks delivered per catch-up interval under `catch_up_bounded`.
inline constexpr int max_catch_up_ticks = 1;

/// `meshes[].send_timeout_ms`.
inline constexpr milliseconds send_timeout{1000};
/// `meshes[].request_timeout_ms`.
inline constexpr milliseconds request_timeout{30'000};
/// The longest send or request timeout, INT_MAX milliseconds.
inline constexpr milliseconds longest_timeout{std::numeric_limits<std::int32_t>::max()};

// -- placement (04 section 5) ---------------------------------------------------------------------------------------

/// `meshes[].placement_weight`; 0 takes the node out of new placements only (C-38, C-39).
inline constexpr std::uint32_t placement_weight = 100;
inline constexpr std::uint32_t max_placement_weight = 10'000;
/// `meshes[].channels[].weight` of a server; 0 takes it out of new selections (M-96).
inline constexpr std::uint32_t channel_weight = 100;
inline constexpr std::uint32_t max_channel_weight = 10'000;
/// Actors, User and Instance Spots, and Spots of one type per node; 0 stands for no limit (C-35, C-36).
inline constexpr std::uint32_t actor_limit = 0;
inline constexpr std::uint32_t spot_limit = 0;
inline constexpr std::uint32_t spot_type_limit = 0;
/// Factory and initialise sequences at once per node (C-42).
inline constexpr std::uint32_t activation_concurrency = 128;
/// 0 turns idle eviction of Instance Spots off (C-107).
inline constexpr milliseconds instance_spot_idle_timeout{0};

// -- owner lease and store (07 section 5) ---------------------------------------------------------------------------

/// Start of one renewal to the start of the next (S-34, S-37).
inline constexpr milliseconds lease_renew_interval{5000};
inline constexpr milliseconds lease_ttl{15'000};
inline constexpr milliseconds lease_renew_timeout{3000};
/// How long before the lease expires at the store local admission ends (S-38).
inline constexpr milliseconds lease_fencing_margin{5000};
/// `location.polling_interval_ms` (07 section 5).
inline constexpr milliseconds discovery_polling_interval{1000};
/// `location.store_failure_grace_ms` (07 section 5).
inline constexpr milliseconds store_failure_grace{30'000};
/// `location.redis.operation_timeout_ms`, `relocation.redis.operation_timeout_ms`: connection and command (S-136).
inline constexpr milliseconds redis_operation_timeout{5000};
/// Requests sent to one Redis server and not yet answered (S-138).
inline constexpr std::uint32_t redis_max_in_flight = 1024;

// -- routes ---------------------------------------------------------------------------------------------------------

/// Longest use of one cached route; 0 turns the cache off (M-76).
inline constexpr milliseconds route_cache_max_age{15'000};
/// How long a moved object's former owner passes messages on; 0 stands for no follow (M-77).
inline constexpr milliseconds message_follow_duration{30'000};
/// `relocation.payload_chunk_limit_bytes` (L-91).
inline constexpr std::uint32_t relocation_chunk_bytes = 256 * 1024;
/// `relocation.in_flight_payload_budget_bytes`, to each node (L-93).
inline constexpr std::uint64_t relocation_in_flight_bytes = 16ULL << 20;
/// `relocation.cutover_wait_timeout_ms` (L-138, L-139).
inline constexpr milliseconds relocation_cutover_wait{1'000};
/// `session.relocation_seal_timeout_ms` (L-173, N-130).
inline constexpr milliseconds session_relocation_seal_timeout{3'000};
/// When both are on, the cache age stays at least this much below the follow duration (M-77).
inline constexpr milliseconds route_cache_follow_margin{5000};

} // namespace zlink::defaults
