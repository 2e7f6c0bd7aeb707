// The runtime root: owns nodes, infrastructure, stores' use, and the life of everything registered (C-1).
#pragma once

#include "zlink/clock.hpp"
#include "zlink/defaults.hpp"
#include "zlink/dispatch_error.hpp"
#include "zlink/execution/executor.hpp"
#include "zlink/location_store.hpp"
#include "zlink/manager.hpp"
#include "zlink/mesh_node.hpp"
#include "zlink/mesh_transport.hpp"
#include "zlink/packet.hpp"
#include "zlink/queries.hpp"
#include "zlink/relocate.hpp"
#include "zlink/task.hpp"
#include "zlink/trace.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <caf/actor.hpp>
#include <caf/fwd.hpp>

namespace zlink {

class codec;

namespace detail {
class host_runtime;
class link_transport;
} // namespace detail

/// O-15. Values are fixed.
enum class host_state : std::uint8_t {
  preparing = 0,
  serving = 1,
  relocating = 2,
  relocated = 3,
  draining = 4,
  stopped = 5,
  error = 6,
};
const char* to_string(host_state state) noexcept;

/// L-243.
enum class shutdown_outcome : std::uint8_t { stopped = 0, force_stopped = 1 };
enum class shutdown_reason : std::uint8_t { none = 0, deadline_exceeded = 1, teardown_failed = 2 };
const char* to_string(shutdown_outcome outcome) noexcept;
const char* to_string(shutdown_reason reason) noexcept;
struct shutdown_result {
  shutdown_outcome outcome = shutdown_outcome::stopped;
  shutdown_reason reason = shutdown_reason::none;
};

/// What a host is doing, for operators (O-16).
struct host_status {
  host_state state = host_state::preparing;
  bool is_ready = false;        ///< in Serving only
  bool accepting_work = false;  ///< objects here take work: state, and the ownership lease where objects need it
  /// After Relocated: nothing here forwards messages or may still have to repeat a part of a move (L-231). `shutdown()` is
  /// allowed before, and gives both up.
  bool safe_to_shutdown = false;
  std::optional<relocate_result> last_relocation = std::nullopt; ///< how the last `relocate()` that ran ended
  std::size_t spots = 0;        ///< Spots here, Entry Spots included
  std::size_t actors = 0;       ///< Actors here
  std::size_t operations = 0;   ///< calls under way from outside of turns
};

/// What listens (C-17).
enum class listener_kind : std::uint8_t { mesh = 0, stream = 1 };
const char* to_string(listener_kind kind) noexcept;
struct listener_status {
  listener_kind kind = listener_kind::mesh;
  std::string name;                                ///< as configured: the mesh name
  std::string endpoint;                            ///< as peers are told, with the port that was bound
  std::chrono::system_clock::time_point observed{};
};

struct spot_actor_options {
  /// Stable type to activate if the id is missing; empty: existing Spots only.
  std::string instance_spot = {};
  /// The mesh of a new Spot; empty: the only one with an object role.
  std::string in_mesh = {};
  /// How long a CAF one-way message waits for room before it is dropped and counted (D-3); 0: the mesh's send timeout.
  std::chrono::milliseconds send_timeout{0};
};

/// Settings that are read once. Durations > 0, else `start()` throws.
struct host_options {
  std::uint64_t application_version = 0;
  /// Hosts that are taken down together: a move goes to a host of another wave, if this one has one (L-216).
  std::optional<std::uint32_t> maintenance_wave = std::nullopt;
  std::chrono::milliseconds shutdown_deadline{30'000};
  std::chrono::milliseconds lease_renew_interval = defaults::lease_renew_interval;
  std::chrono::milliseconds lease_ttl = defaults::lease_ttl;
  std::chrono::milliseconds lease_renew_timeout = defaults::lease_renew_timeout;
  std::chrono::milliseconds lease_fencing_margin = defaults::lease_fencing_margin;
  std::chrono::milliseconds discovery_polling_interval = defaults::discovery_polling_interval;
  std::chrono::milliseconds store_failure_grace = defaults::store_failure_grace;
  std::chrono::milliseconds route_cache_max_age = defaults::route_cache_max_age;
  std::chrono::milliseconds message_follow_duration = defaults::message_follow_duration;
  /// How long the target of a move waits for the cutover, and the source may send all of it again (L-138, L-139).
  std::chrono::milliseconds relocation_cutover_wait = defaults::relocation_cutover_wait;
  /// How long a session whose Actor moves holds what its client sends; then the session is closed. Capture, restore and commit of
  /// an Actor with large state must fit in (L-173). Positive.
  std::chrono::milliseconds session_relocation_seal_timeout = defaults::session_relocation_seal_timeout;
  /// The state of moving objects travels in pieces of at most so many bytes, 1 KiB to 32 MiB (L-91, L-92).
  std::uint32_t relocation_chunk_bytes = defaults::relocation_chunk_bytes;
  /// Bytes of such pieces that a target has not taken, to one node and to all; 0: no bound (L-93).
  std::uint64_t relocation_in_flight_bytes = defaults::relocation_in_flight_bytes;
  std::uint64_t relocation_node_in_flight_bytes = 0;
  std::uint32_t application_lane_records = defaults::application_lane_records; ///< below 2^24; 0: the default (X-78)
  std::uint64_t application_lane_bytes = defaults::application_lane_bytes;     ///< below 2^36; 0: the default (X-78)
  std::chrono::milliseconds owner_time_slice = defaults::owner_time_slice;     ///< X-72
  std::uint32_t max_operations = defaults::max_operations;                     ///< X-100
  std::uint32_t publish_workers = defaults::publish_workers;                   ///< publishes under way at once (M-119)
  std::uint32_t max_jobs = 0;                                                  ///< host permits; 0: computed (X-102)
  worker_options workers = {};
  /// Told about exceptions of application code and messages that nobody serves; null: a line on stderr.
  dispatch_log on_dispatch_error = nullptr;
  /// Told of peers that transport tcp did not let in; null: a line on stderr.
  link_refusal_log on_link_refused = nullptr;
  std::string bind_host = "127.0.0.1";
  std::string advertise_host = {};
  /// Told what becomes of Spots here (O-91), on the host's infrastructure thread: it must be quick. What it throws is lost.
  std::function<void(const trace_record&)> on_trace = nullptr;

  // Injected by tests (D-20); null: the system's.
  std::shared_ptr<const zlink::clock> time = nullptr;
  std::shared_ptr<random_source> random = nullptr;
  std::shared_ptr<execution_environment> environment = nullptr;
  /// Makes the transport of a mesh; null: what the node says.
  std::function<std::shared_ptr<detail::link_transport>(caf::actor_system&, const std::string& mesh)> transport = nullptr;
};

/// Register, then `start()`. Usable from any thread; neither copied nor moved.
class host {
public:
  /// Owns an actor system of its own.
  explicit host(host_options options = {});
  /// Borrows `system`, which must outlive the host.
  explicit host(caf::actor_system& system, host_options options = {});
  host(const host&) = delete;
  host& operator=(const host&) = delete;
  /// Shuts down within `shutdown_deadline`.
  ~host();

  /// Declares a node; a name declared before is a `configuration_error` (C-1).
  mesh_node& add_mesh(std::string name);
  /// The node declared under that name; `configuration_error` that lists what exists.
  mesh_node& mesh(const std::string& name);
  /// Uses `store` for ownership and payloads instead of an embedded store of its own; before start, once.
  host& use_store(const embedded_store& store);
  /// Two providers, independent of each other (S-19).
  host& use_location_store(std::shared_ptr<location_store> store);
  host& use_relocation_store(std::shared_ptr<relocation_store> store);
  /// Runs without stores; then no node may have an object role (C-20).
  host& without_stores();
  /// Keeps no payloads: only for hosts whose factories are of User Spots that never move (C-32).
  host& without_relocation_store();
  /// Adds an encoding (M-37).
  host& add_codec(std::shared_ptr<const codec> added);

  /// Starts in the order of C-46 and returns when the host serves. Throws `configuration_error` with every mistake found,
  /// before any listener is bound.
  void start();
  /// Starts, serves until SIGTERM or SIGINT, shuts down. 0 after a clean stop; otherwise non-zero, and the reason is
  /// printed (O-21).
  int run();
  /// Drains, tells every Spot `host_shutdown`, releases everything; concurrent calls share one operation (L-240 to L-249).
  task<shutdown_result> shutdown();
  /// Moves every Actor, User and Instance Spot to other hosts while this one goes on serving what has not left (L-210 to
  /// L-231). Blocked is a result, not an error. Calls with equal mode and version share one operation and its first
  /// deadline; `cancel` ends this wait only. Throws `std::invalid_argument` for options that contradict themselves.
  task<relocate_result> relocate(relocate_options options = {}, std::stop_token cancel = {});

  spot_manager spots() const noexcept;
  actor_manager actors() const noexcept;
  node_client nodes() const noexcept;
  channel_client channels() const noexcept;
  /// What the Location Store shows, for operators (S-110 to S-114).
  operator_queries queries() const noexcept;
  /// A CAF handle for the address of a Spot: valid before the Spot exists and after it has moved. Messages to it are sends
  /// and requests of this host.
  caf::actor spot_actor(std::string spot_id, spot_actor_options options = {});

  host_status status() const;
  /// What listens under that name; throws `operation_failed(not_configured)` if nothing does, or not yet (C-17).
  listener_status listener(listener_kind kind, const std::string& name) const;
  caf::actor_system& system() const noexcept;

  // -- for the layer ---------------------------------------------------------------------------------------------------
  detail::host_runtime& runtime() const noexcept { return *runtime_; }

private:
  /// Takes over what a handler that does not end goes on using.
  explicit host(host& ending) noexcept;

  std::unique_ptr<caf::actor_system_config> own_config_;
  std::unique_ptr<caf::actor_system> own_system_;
  std::unique_ptr<detail::host_runtime> runtime_;
};

/// Settings of CAF that suit Spots, unless the application chose its own, and the registered packets as CAF message types
/// (D-12). Called in the constructor of a `caf::actor_system_config`.
void configure(caf::actor_system_config& config);

} // namespace zlink
