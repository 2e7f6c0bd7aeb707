#include "relocation/session_seals.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/actor_object.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <algorithm>

namespace zlink::detail {

session_seals::session_seals(host_runtime& host, node_runtime& node, unique_id move)
  : host_(host), node_(node), move_(move), wake_(*host.infra) {}

void session_seals::add(std::uint32_t index, const hosted_object& object) {
  if (!object.is_actor())
    return;
  const auto& actor = static_cast<const actor_object&>(object);
  if (auto binding = actor.session())
    seals_.push_back({index, std::move(*binding), actor.id(), actor.generation(), {}, {}});
}

task<std::optional<std::string>> session_seals::install(steady_time due, std::function<bool()> given_up) {
  unanswered_ = seals_.size();
  for (std::size_t i = 0; i < seals_.size(); ++i)
    start_coroutine(ask(i, due), [self = shared_from_this()](result<void>) {
      --self->unanswered_;
      self->wake_.wake();
    });
  while (unanswered_ != 0 && !given_up()) {
    auto waiting = wake_.until(steady_time::max()); // each question has its end by then
    co_await std::move(waiting);
  }
  for (const auto& one : seals_) {
    if (!one.answer)
      co_return "session \"" + one.binding.session_id + "\" of actor \"" + one.actor_id + "\" could not be sealed: "
        + (one.why.empty() ? "no answer" : one.why);
    if (*one.answer == seal_answer::contended)
      co_return "session \"" + one.binding.session_id + "\" of actor \"" + one.actor_id + "\" is sealed by another move";
  }
  co_return std::nullopt;
}

void session_seals::look() { wake_.wake(); }

task<void> session_seals::ask(std::size_t which, steady_time due) {
  auto& one = seals_[which]; // which stays where it is
  const seal_question question{one.binding, one.actor_id, one.generation.value, move_.high, move_.low};
  if (one.binding.owner_rid == node_.rid()) {
    one.answer = host_.sessions.seal(question);
    co_return;
  }
  auto asking = host_.spots.ask(node_.mesh_name(), one.binding.owner_rid, static_cast<std::uint16_t>(control_command::seal_session),
                                host_.random->next_id(), encode(question), due);
  const auto answer = co_await std::move(asking);
  if (!answer->kind && answer->state <= static_cast<std::uint8_t>(seal_answer::contended))
    one.answer = static_cast<seal_answer>(answer->state);
  else if (answer->kind && !node_.links->is_known(one.binding.owner_rid))
    one.answer = seal_answer::absent; // its run has ended, and its connections with it: the Actor goes as one without (L-62, N-127)
  else
    one.why = answer->text;
  if (withdrawn_ && one.answer == seal_answer::installed) // by a question that was asked once more, and came behind the end
    let_go(one);
}

std::optional<session_binding> session_seals::of(std::uint32_t index) const {
  const auto i = std::ranges::find(seals_, index, &seal::part);
  return i != seals_.end() && i->answer == seal_answer::installed ? std::optional{i->binding} : std::nullopt;
}

void session_seals::withdraw() {
  withdrawn_ = true;
  for (const auto& one : seals_)
    if (!one.answer || *one.answer == seal_answer::installed) // also where no answer came: the seal may be there
      let_go(one);
}

void session_seals::let_go(const seal& one) {
  session_route told;
  told.action = static_cast<std::uint8_t>(session_route_action::abort);
  told.binding = one.binding;
  told.actor_id = one.actor_id;
  told.generation = one.generation.value;
  told.mesh_name = node_.mesh_name();
  told.node_rid = node_.rid();
  host_.sessions.send(node_, told, move_);
}

} // namespace zlink::detail
