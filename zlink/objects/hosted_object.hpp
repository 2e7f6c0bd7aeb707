// What Spots and Actors have in common: who they are, which incarnation, and their place under the ceilings of their node.
#pragma once

#include "zlink/execution/execution_object.hpp"
#include "zlink/identity.hpp"
#include "zlink/placement/object_address.hpp"
#include "zlink/objects/slot_count.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

namespace zlink::detail {

class host_runtime;
class object_timers;

/// What all objects of one mesh node share.
struct object_home {
  host_runtime* host = nullptr;
  std::string mesh_name;
  std::string node_rid;
  std::chrono::milliseconds request_timeout{};
  std::chrono::milliseconds send_timeout{};
  std::chrono::milliseconds instance_idle_timeout{};
  std::uint32_t spot_limit = 0;
  std::uint32_t actor_limit = 0;
  mutable slot_count spots; ///< User and Instance Spots
  mutable slot_count actors;
};

class hosted_object : public execution_object {
public:
  hosted_object(const object_home& home, execution_domain& domain, counted_ptr<gate> gate, std::string address);

  // -- identity; fixed when the reservation is known, read afterwards from any thread ----------------------------------

  /// Under which it is found.
  const std::string& address() const noexcept { return address_; }
  /// `std::hash` of the address as `std::string_view`.
  std::size_t address_hash() const noexcept { return address_hash_; }
  bool is_actor() const noexcept { return is_actor_address(address_); }
  const object_home& home_node() const noexcept { return home_node_; }
  std::string_view mesh_name() const noexcept override { return home_node_.mesh_name; }
  std::string_view spot_id() const noexcept override { return id_in(address_); }
  bool is_at(std::string_view address) const noexcept override { return address_ == address; }
  steady_duration send_patience() const noexcept override { return home_node_.send_timeout; }
  /// Zero before the reservation.
  object_generation generation() const noexcept { return {generation_.load(std::memory_order_acquire)}; }
  authority_generation authority() const noexcept { return {authority_.load(std::memory_order_acquire)}; }
  /// It has been here before, and moved back: routes to that ownership lead here as well (L-180).
  authority_generation owned_since() const noexcept { return {owned_since_.load(std::memory_order_acquire)}; }
  void set_owned_since(authority_generation first) noexcept { owned_since_.store(first.value, std::memory_order_release); }
  void set_generations(object_generation object, authority_generation authority) noexcept {
    authority_.store(authority.value, std::memory_order_release);
    generation_.store(object.value, std::memory_order_release);
  }
  /// After the closing seal: operations of the context end in `unavailable` (M-24).
  bool fenced() const noexcept { return fenced_.load(std::memory_order_acquire); }

  /// It moves, or is about to: whoever wants to close it or change its Spot meanwhile comes too late (L-198, J-117). True:
  /// it has begun.
  bool begin_move() noexcept { return !moving_.exchange(true, std::memory_order_acq_rel); }
  void end_move() noexcept { moving_.store(false, std::memory_order_release); }
  bool is_moving() const noexcept { return moving_.load(std::memory_order_acquire); }
  /// After the commit of a move: as after the closing seal (L-204, X-172).
  void fence_off() noexcept { fence(); }

  /// A place under the ceilings of its node and type, which it has until `return_place`. False: there is none (C-37).
  virtual bool take_place() noexcept = 0;
  virtual void return_place() noexcept = 0;
  /// Stable type; empty for an Entry Spot.
  virtual const std::string& type() const noexcept = 0;

  // -- inside a turn ---------------------------------------------------------------------------------------------------

  /// The application's instance goes. The object keeps identity only.
  virtual void dispose() noexcept = 0;
  object_timers& timers();
  bool has_timers() const noexcept { return timers_.load(std::memory_order_acquire) != nullptr; }
  bool timers_idle() const noexcept;
  std::string subject_of(record& r) const override;
  void on_handler_ended(record& r) noexcept override;

protected:
  ~hosted_object() override;
  /// Each of its timers has a gate of its own.
  virtual bool gates_timers() const noexcept { return false; }
  static dispatched dispatch_tick(record* r, steady_time now);
  void end_timers() noexcept;
  void fence() noexcept { fenced_.store(true, std::memory_order_release); }

private:
  const object_home& home_node_;
  std::string address_;
  const std::size_t address_hash_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> authority_{0};
  std::atomic<std::uint64_t> owned_since_{0}; ///< 0: since `authority_`
  std::atomic<bool> fenced_{false};
  std::atomic<bool> moving_{false};
  std::atomic<object_timers*> timers_{nullptr}; ///< made when the first is added, in whatever turn that is
};

} // namespace zlink::detail
