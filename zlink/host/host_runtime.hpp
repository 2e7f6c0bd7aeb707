// Everything one host is made of, wired together. Public classes hold references into it.
#pragma once

#include "relocation/moves.hpp"
#include "zlink/codec.hpp"
#include "zlink/execution/decoding.hpp"
#include "zlink/execution/domain.hpp"
#include "zlink/execution/infrastructure.hpp"
#include "zlink/execution/job_permits.hpp"
#include "zlink/execution/operation_limit.hpp"
#include "zlink/execution/outside_operations.hpp"
#include "zlink/host.hpp"
#include "zlink/host/admission.hpp"
#include "zlink/host/host_gate.hpp"
#include "zlink/host/node_runtime.hpp"
#include "zlink/messaging/outbound.hpp"
#include "zlink/messaging/publications.hpp"
#include "zlink/messaging/waiting_sends.hpp"
#include "zlink/objects/activation.hpp"
#include "zlink/objects/closing.hpp"
#include "zlink/objects/object_queries.hpp"
#include "zlink/objects/object_table.hpp"
#include "zlink/objects/row_recovery.hpp"
#include "zlink/membership/memberships.hpp"
#include "zlink/objects/creations.hpp"
#include "zlink/placement/ownership.hpp"
#include "zlink/placement/repository.hpp"
#include "zlink/placement/sweep.hpp"
#include "zlink/session/bound_routes.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zlink::detail {

class host_relocate;

class host_runtime {
public:
  host_runtime(caf::actor_system& system, host_options options);
  ~host_runtime();
  host_runtime(const host_runtime&) = delete;
  host_runtime& operator=(const host_runtime&) = delete;

  // -- configuration, before start -------------------------------------------------------------------------------------
  mesh_node& add_mesh(std::string name);
  mesh_node& mesh(const std::string& name);
  node_runtime* find_node(std::string_view mesh_name) noexcept;
  /// The node of a call that names no mesh: the only one with an object role; else why there is none (C-44).
  std::variant<node_runtime*, error> default_node();
  std::variant<node_runtime*, error> node_for(const std::optional<std::string>& mesh);
  /// The one node of this host that takes part in the channel, or null (M-93).
  node_runtime* channel_node(std::string_view channel) noexcept;
  /// Discovery shows that Entry Spot now (M-156). Any thread.
  bool lists_entry_spot(std::string_view id) const;
  void require_configuring(const char* what) const;
  bool configuring() const noexcept { return state.load() == host_state::preparing && !start_begun_; }

  // -- life ------------------------------------------------------------------------------------------------------------
  /// C-46. Begins at once; ends when the host serves, or with what `start()` throws.
  task<void> start();
  /// Why `start()` failed, as the exception it throws; after its task has failed.
  std::optional<configuration_error> start_failure;
  task<shutdown_result> shutdown();
  /// Nobody can tell any more what the store shows of this host: it ends, and says so (L-221). Inside the unit.
  void shut_down_forced();
  /// Blocks until the infrastructure has ended; after `shutdown()`.
  void end() noexcept;
  /// After a forced shutdown: a handler still runs, so nothing that it may use can be destroyed.
  bool left_behind() const noexcept { return left_behind_.load(); }

  /// The token of the lease; zero while there is none, which no record names. Inside the infrastructure unit.
  placement::owner_token token() const noexcept;
  /// Why a new call may not start now, or nothing (O-4, X-168, C-19). `only_ends`: it adds nothing to a node that drains
  /// (J-164). Any thread.
  std::optional<error> refuse_call(bool needs_objects, bool only_ends = false);
  /// Why that is not begun in the state the host is in, or nothing (L-260). Any thread.
  std::optional<error> refuse(host_work work) const;
  /// Why no work of an owned object may begin now, or nothing (S-40, S-41). Any thread.
  std::optional<error> refuse_owned_work() const;
  bool ending() const noexcept { return state.load() >= host_state::draining; }
  std::chrono::milliseconds default_request_timeout();
  std::chrono::milliseconds default_send_timeout();
  /// At run time: published inside the call (O-133).
  void change_weight(node_runtime& node, std::uint32_t weight);
  /// At run time: peers are told, and it is published (M-101, O-134). Any thread.
  void change_channel_weight(node_runtime& node, const std::string& channel, std::uint32_t weight);
  /// Peers are told whether this host is to be selected, in the state it is in now (L-260). Inside the unit.
  void tell_selection();
  host_status status() const;
  listener_status listener(listener_kind kind, const std::string& name) const;
  /// Tells the host's `on_trace`, if there is one. Inside the unit.
  void trace(const hosted_object& object, std::string_view event, std::string_view reason = {}) noexcept;
  /// The same of an object that moves to `node`, and is not there yet.
  void trace_move(const std::string& address, std::uint64_t generation, std::string_view event, const node_runtime& node) noexcept;
  /// The same for what is told of no single object (O-110). Inside the unit.
  void trace(const trace_record& told) noexcept;

  host_relocate& relocating() const noexcept { return *relocating_; }

  // -- parts, in order of construction -----------------------------------------------------------------------------------
  caf::actor_system& system;
  const host_options options;
  std::atomic<zlink::host*> handle{nullptr};
  std::shared_ptr<host_gate> outside_users = std::make_shared<host_gate>(*this);
  std::shared_ptr<const clock> time;
  std::shared_ptr<random_source> random;
  std::shared_ptr<execution_environment> environment;
  const std::shared_ptr<decoding> values = std::make_shared<decoding>();
  codec_registry& codecs = values->codecs;
  operation_limit operations;
  std::unique_ptr<infrastructure> infra;
  std::shared_ptr<serial_executor> dispatcher;
  std::shared_ptr<worker_pool> workers;
  execution_domain domain;
  std::unique_ptr<job_permits> permits;
  outside_operations outside;
  publications events;
  object_table objects;
  std::unique_ptr<waiting_sends> waiting;
  std::vector<std::unique_ptr<mesh_node>> nodes;

  // Made at start.
  std::shared_ptr<location_store> location;
  std::shared_ptr<relocation_store> relocation;
  bool stores_off = false;
  bool relocation_off = false;
  std::unique_ptr<placement::repository> repository;
  std::unique_ptr<placement::ownership> ownership;
  std::unique_ptr<placement::sweep> sweep;
  outbound messages;
  bound_routes sessions;
  activation activations;
  closing closings;
  creations spots;
  memberships actors;
  object_queries queries;
  moves moving;
  row_recovery recovery;

  std::atomic<host_state> state{host_state::preparing};

private:
  enum class registration_end : std::uint8_t { done, again, impossible };

  std::vector<std::string> collect_mistakes() const;
  void make_stores();
  std::optional<error> make_links();
  task<void> start_sequence();
  std::optional<error> start_without_stores();
  void end_start(std::optional<error> failure);
  task<std::optional<error>> probe_and_claim(steady_time until);
  task<std::optional<error>> start_entry(node_runtime& node);
  task<std::optional<error>> probe_location();
  void note_deadline(std::optional<steady_time> until);
  void lease_lost(const placement::owner_token& token);
  task<void> lease_regained();
  /// What the store does not show of the nodes is written, as long as the lease is held (S-43, S-44).
  task<void> keep_registered();
  task<registration_end> register_node(node_runtime& node);
  task<void> keep_weight(node_runtime& node, std::uint32_t weight);
  /// The start is to go no further; its end is told.
  bool start_interrupted();
  void sweep_idle_later();
  task<void> shutdown_sequence();
  task<void> publish_draining(steady_time until);
  task<void> end_moves(steady_time deadline);
  task<void> end_work(steady_time deadline);
  task<void> release_all(steady_time until);

  std::shared_ptr<link_transport> make_transport(const std::string& mesh);

  std::atomic<bool> start_begun_{false};
  std::atomic<bool> start_running_{false};
  bool registering_ = false;
  bool has_objects_ = false;
  bool probed_ = false; ///< the Location Store was found usable (S-20)
  counted_ptr<operation<void>> started_;
  std::mutex shutdown_mutex_;
  std::vector<counted_ptr<operation<shutdown_result>>> shutdown_waiters_;
  std::atomic<bool> left_behind_{false};
  bool shutdown_begun_ = false;
  std::optional<shutdown_result> shutdown_result_;
  bool teardown_forced_ = false; ///< unit only
  std::chrono::milliseconds idle_sweep_period_{0};
  /// Tells the domain when the admission deadline passes.
  class admission_watch final : public timed {
  public:
    explicit admission_watch(execution_domain& domain) noexcept : domain_(domain) {}
    void expired() noexcept override { domain_.admission_over.store(true, std::memory_order_release); }

  private:
    execution_domain& domain_;
  };
  admission_watch admission_watch_{domain};
  std::unique_ptr<host_relocate> relocating_;
};

} // namespace zlink::detail
