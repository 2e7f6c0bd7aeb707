// An Actor that lives here: its instance, the Spot it belongs to, and what keeps its messages back meanwhile.
#pragma once

#include "zlink/actor_context.hpp"
#include "zlink/membership/actor_factory.hpp"
#include "zlink/objects/hosted_object.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/session/session_binding.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace zlink {
class actor;
}

namespace zlink::detail {

class spot_object;

class actor_object final : public hosted_object {
public:
  actor_object(const object_home& home, execution_domain& domain, counted_ptr<gate> own, const actor_factory& factory,
               const std::string& id);

  // -- any thread ------------------------------------------------------------------------------------------------------
  std::string id() const { return std::string{id_in(address())}; }
  const actor_factory& factory() const noexcept { return *factory_; }
  const std::string& type() const noexcept override { return factory_->type; }
  std::string_view surface() const noexcept override { return "actor"; }
  bool take_place() noexcept override;
  void return_place() noexcept override;
  actor_ref ref_here() const;

  /// The Spot it belongs to, as the store shows it (J-1).
  placement::spot_membership membership() const;
  counted_ptr<spot_object> spot() const;
  /// In a turn of `other`: it is the Spot that this Actor belongs to, or an Entry Spot as long as it is not Ready.
  bool may_be_handled_by(const execution_object& other) const;
  /// That has been committed. Inside the infrastructure unit.
  void committed(placement::spot_membership membership, counted_ptr<spot_object> spot);
  /// The session that it is bound to. It has nothing to do with membership (J-7), and ends with this incarnation (J-138).
  std::optional<session_binding> session() const;
  void bind_session(std::optional<session_binding> binding);
  /// One change of membership at a time, and none of an Actor that ends (J-61, J-166). False: another one is pending.
  bool begin_change() noexcept { return !changing_.exchange(true, std::memory_order_acq_rel); }
  bool is_changing() const noexcept { return changing_.load(std::memory_order_acquire); }
  void end_change() noexcept { changing_.store(false, std::memory_order_release); }
  /// Its next message needs that gate, which somebody holds while he would wait for it.
  bool will_need(const gate& held) const;
  /// Where its Spot has put it; a hint only, since two Spots may have it for a moment.
  std::size_t place_in_spot() const noexcept { return place_in_spot_.load(std::memory_order_relaxed); }
  void note_place_in_spot(std::size_t place) noexcept { place_in_spot_.store(place, std::memory_order_relaxed); }
  /// Callbacks of Spots that nobody waits for, and that have this Actor: it is not destroyed under them.
  void notice_begins() noexcept { notices_.fetch_add(1, std::memory_order_acq_rel); }
  void notice_ends() noexcept { notices_.fetch_sub(1, std::memory_order_acq_rel); }
  bool in_a_notice() const noexcept { return notices_.load(std::memory_order_acquire) != 0; }

  // -- inside a turn ---------------------------------------------------------------------------------------------------
  /// Throws what the application throws, and `operation_failed` for an instance that exposes a foreign context (J-19).
  void construct();
  /// Destroys the instance. The object keeps identity only.
  void dispose() noexcept override;
  actor* application() const noexcept { return application_.get(); }
  /// Nothing but the step that asks is under way: no handler has to come to its end, no call, no callback.
  bool at_rest() const noexcept;
  /// In the last instant of a step: from the next turn on it runs where its Spot wants it, served by that Spot.
  void settle_down();
  spot_object* serving() const noexcept { return serving_.get(); }

  dispatched dispatch(record* r) override;
  std::optional<error_kind> yield_refused() const noexcept override;
  bool may_join() const noexcept override { return true; }
  bool claims_while_yielded() const noexcept override { return true; }
  void on_quiet() noexcept override;
  /// Told once, when an Actor that is watched is quiet.
  void when_quiet(unique_function<void()> told) { when_quiet_ = std::move(told); }

private:
  ~actor_object() override;

  const actor_factory* factory_;
  const counted_ptr<gate> own_gate_;
  std::unique_ptr<actor> application_;
  counted_ptr<spot_object> serving_; ///< whose handlers run; touched in turns
  unique_function<void()> when_quiet_;
  mutable std::mutex mutex_;
  placement::spot_membership membership_;
  counted_ptr<spot_object> spot_;
  std::unique_ptr<const session_binding> session_;
  std::atomic<bool> changing_{true}; ///< until it is Ready
  std::atomic<std::size_t> place_in_spot_{0};
  std::atomic<std::uint32_t> notices_{0};
  std::atomic<bool> has_place_{false};
};

} // namespace zlink::detail
