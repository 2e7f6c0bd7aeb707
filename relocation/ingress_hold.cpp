#include "relocation/ingress_hold.hpp"

#include "relocation/lane_frames.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <algorithm>

namespace zlink::detail {

namespace {

constexpr std::uint8_t most_hops = 8; // L-182
constexpr std::uint64_t many_records = 1024; // L-184
constexpr std::uint64_t many_bytes = 16ULL << 20;

} // namespace

/// Stands at the address of one object of the unit.
class ingress_hold::part_detour final : public detour {
public:
  part_detour(counted_ptr<ingress_hold> owner, std::uint32_t part) : owner_(std::move(owner)), part_(part) {}
  answer take(record* r, const passage& how) noexcept override { return owner_->take(part_, r, how); }
  void forward(submission message) override { owner_->forward(part_, std::move(message)); }
  authority_generation owned_since() const noexcept override {
    const auto& part = owner_->parts_[part_];
    return part.owned_since ? part.owned_since : part.authority;
  }

  counted_ptr<detour> lasting() noexcept override { return owner_->over_ ? counted_ptr<detour>{} : counted_ptr<detour>::share(this); }

private:
  counted_ptr<ingress_hold> owner_;
  std::uint32_t part_;
};

ingress_hold::ingress_hold(node_runtime& node, unique_id move, std::vector<addressee> parts)
  : node_(node), move_(move), parts_(std::move(parts)) {}

counted_ptr<detour> ingress_hold::part(std::uint32_t index) {
  return counted_ptr<detour>::adopt(new part_detour{counted_ptr<ingress_hold>::share(this), index});
}

// -- held -------------------------------------------------------------------------------------------------------------

detour::answer ingress_hold::take(std::uint32_t part, record* r, const passage& how) noexcept {
  if (how.known > parts_[part].generation)
    return detour::answer::pass; // of an incarnation that this host knows nothing of (L-191)
  std::lock_guard guard{mutex_};
  switch (mode_) {
    case mode::holding:
      r->permit = nullptr; // the caller gives it back (L-112)
      held_.push_back({r, part, 0});
      return detour::answer::taken;
    case mode::lane:
    case mode::lost: return detour::answer::follow;
    case mode::following: return how.arrival ? detour::answer::follow : detour::answer::pass;
  }
  return detour::answer::pass;
}

void ingress_hold::put_first(std::uint32_t part, std::vector<submission> waited) {
  std::vector<kept_record> first;
  for (auto& message : waited) {
    if (message.over())
      continue;
    auto* r = message.take();
    const admission_notice notice{*r};
    give_back_permit(*r);
    first.push_back({r, part, 0});
  }
  std::lock_guard guard{mutex_};
  held_.insert(held_.begin(), first.begin(), first.end());
}

std::vector<kept_record> ingress_hold::take_held() {
  std::lock_guard guard{mutex_};
  const auto all = std::exchange(held_, {});
  return {all.begin(), all.end()};
}

std::vector<kept_record> ingress_hold::take_held(std::uint32_t part) {
  std::vector<kept_record> taken;
  std::lock_guard guard{mutex_};
  std::erase_if(held_, [&](const kept_record& one) {
    if (one.part == part)
      taken.push_back(one);
    return one.part == part;
  });
  return taken;
}

// -- sent after it ----------------------------------------------------------------------------------------------------

bool ingress_hold::enter_lane(counted_ptr<link_session> link, std::uint64_t number, std::uint64_t attempt, const bytes& cutover) {
  std::lock_guard guard{mutex_};
  if (!held_.empty())
    return false;
  link->send_control(static_cast<std::uint16_t>(control_command::cutover), cutover);
  link_ = std::move(link);
  number_ = number;
  attempt_ = attempt;
  mode_ = mode::lane;
  return true;
}

void ingress_hold::change_link(counted_ptr<link_session> link, std::uint64_t number) {
  std::lock_guard guard{mutex_};
  std::swap(link_, link);
  number_ = number;
}

void ingress_hold::follow(std::string target_rid) {
  counted_ptr<link_session> gone;
  std::lock_guard guard{mutex_};
  target_rid_ = std::move(target_rid);
  gone = std::move(link_);
  mode_ = mode::following;
}

void ingress_hold::lose(error why) {
  std::lock_guard guard{mutex_};
  lost_.emplace(std::move(why));
  mode_ = mode::lost;
}

void ingress_hold::forward(std::uint32_t part, submission message) {
  std::string target;
  std::optional<error> lost;
  {
    std::lock_guard guard{mutex_};
    if (mode_ == mode::lane) { // under the lock: nothing overtakes on the lane
      send_by_lane(part, std::move(message));
      return;
    }
    target = target_rid_;
    lost = lost_;
  }
  if (lost)
    message.fail(std::move(*lost));
  else
    send_after(part, std::move(message), target);
}

/// Behind the cutover, in the order of arrival (L-134).
void ingress_hold::send_by_lane(std::uint32_t part, submission message) {
  auto& host = node_.host();
  const auto lost = [this](const std::string& id) {
    return error{error_kind::unavailable, described(id) + " moves to node \"" + (link_ ? link_->peer().rid : "") + "\", and the link to it was lost"};
  };
  if (!link_ || !link_->ready()) {
    message.fail(lost(message.id()));
    return;
  }
  const std::string address = message.id();
  auto* r = message.take();
  const admission_notice notice{*r};
  give_back_permit(*r);
  kept_record kept{r, part, 0};
  relayed_message told;
  told.attempt = attempt_;
  told.part = part;
  auto& replies = node_.links->replies();
  bytes ready;
  try {
    const message_fence past{parts_[part].generation, parts_[part].authority, 1};
    told.frame = frame_of(kept, address, path_of(kept, node_, replies, number_), host, past);
    ready = encode_relay(move_, told, link_->peer().frame_limit);
  } catch (...) {
    end_record(kept, host, replies, {error_kind::invalid_operation, text_of_current_exception()});
    return;
  }
  link_->send_control(static_cast<std::uint16_t>(control_command::relay), ready);
  if (link_->ready())
    let_go(kept);
  else // whoever ends what went by that link may have done so before this
    end_record(kept, host, replies, lost(address));
}

/// The target is the owner: as any message, but with what this host knows of the ownership that it has passed (L-182).
void ingress_hold::send_after(std::uint32_t part, submission message, const std::string& target) {
  const auto& to = parts_[part];
  const auto* from = message.arrived();
  const auto* fence = from != nullptr && from->fence ? &*from->fence : nullptr;
  const std::uint8_t hops = fence == nullptr ? 0 : fence->hops;
  if (fence != nullptr && fence->object && fence->object != to.generation) { // nobody follows for an earlier incarnation (L-191)
    if (const auto link = node_.links->ready_link(*from->source_rid)) { // whose route leads nowhere (M-82)
      const stale_route told{std::string{id_in(to.address)}, fence->object.value, fence->authority.value, is_actor_address(to.address)};
      link->send_control(static_cast<std::uint16_t>(control_command::stale_route), encode(control_envelope{0, 0, encode(told)}));
    }
    message.fail({error_kind::invalid_operation, described(to.address) + " is another incarnation by now"});
    return;
  }
  if (hops >= most_hops || (hops != 0 && fence->authority >= to.authority)) {
    message.fail({error_kind::unavailable, described(to.address) + " has moved too often to be followed"});
    return;
  }
  note_volume(part, message, target);
  const std::string source = from != nullptr && from->source_rid != nullptr && hops == 0 ? *from->source_rid : "";
  node_.host().messages.send_after(std::move(message), node_, target,
                                   {to.generation, to.authority, static_cast<std::uint8_t>(hops + 1)});
  if (!source.empty())
    tell_sender(part, source);
}

/// No bound keeps it from being sent; once it is much that waits, whoever operates the host hears of it (L-184).
void ingress_hold::note_volume(std::uint32_t part, const submission& message, const std::string& target) {
  const auto link = node_.links->ready_link(target);
  const std::uint64_t on_link = link ? link->waiting_sends() : 0; // of others as well
  {
    std::lock_guard guard{mutex_};
    if (on_link == 0)
      waiting_records_ = waiting_bytes_ = 0;
    ++waiting_records_;
    waiting_bytes_ += cost_of(*message.peek());
    const auto waiting = std::min(on_link, waiting_records_);
    if (warned_ || (waiting <= many_records && waiting_bytes_ / waiting_records_ * waiting <= many_bytes))
      return;
    warned_ = true;
  }
  node_.host().infra->post([self = counted_ptr<ingress_hold>::share(this), part] {
    const auto& to = self->parts_[part];
    self->node_.host().trace_move(to.address, to.generation.value, "follow_backlog", self->node_);
  });
}

/// Once: what else has come by the route that it drops was on its way already (M-85).
void ingress_hold::tell_sender(std::uint32_t part, const std::string& source_rid) {
  const auto link = node_.links->ready_link(source_rid);
  if (!link)
    return;
  {
    std::lock_guard guard{mutex_};
    if (!told_.emplace(part, source_rid).second)
      return;
  }
  const auto& to = parts_[part];
  const route_moved told{is_actor_address(to.address), std::string{id_in(to.address)}, to.generation.value, to.authority.value};
  link->send_control(static_cast<std::uint16_t>(control_command::route_moved),
                     encode(control_envelope{move_.high, move_.low, encode(told)}));
}

} // namespace zlink::detail
