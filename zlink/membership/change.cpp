// A change of membership that is decided: the store says it, the Actor moves in, both Spots are told (J-6, J-80 to J-86).
#include "zlink/host/host_runtime.hpp"
#include "zlink/membership/member_steps.hpp"
#include "zlink/membership/timed_question.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/placement/aggregates.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::milliseconds first_pause{1};
constexpr std::chrono::milliseconds longest_pause{100}; // between attempts of a callback that fails

/// Waits a little longer each time, but for what is left before `due`.
task<void> wait_longer(host_runtime& host, std::chrono::milliseconds& pause, steady_time due = steady_time::max()) {
  steady_duration delay = std::exchange(pause, std::min(pause * 2, longest_pause));
  if (const auto now = host.time->now(); due > now)
    delay = std::min(delay, due - now);
  auto pausing = placement::pause(*host.infra, delay);
  co_await std::move(pausing);
}

} // namespace

actor_callbacks* callbacks_of(spot_object& spot) noexcept {
  const auto about = spot.factory().about_actors;
  return about == nullptr || spot.application() == nullptr ? nullptr : about(*spot.application());
}

actor* application_of(const actor_object& object) noexcept { return object.application(); }

/// Nothing: it is committed. An answer of the store that is lost is found out by reading; at the deadline the row is written as
/// it is, so that what was sent before and may arrive still comes to nothing (S-156, S-159).
task<std::optional<error>> memberships::commit(counted_ptr<actor_object> actor, counted_ptr<spot_object> spot, steady_time due) {
  const bool entry = spot->factory().kind == spot_kind::entry;
  const placement::spot_membership wanted{spot->id(), entry ? object_generation{} : spot->generation()};
  const placement::owned_object mine{placement::object_kind::actor, actor->id(), host_.token()};
  const auto late = [&] { return host_.time->now() >= due; };
  const auto too_late = [&] { return error{error_kind::deadline_exceeded, "the change of " + described(actor->address()) + " could not be committed in time"}; };
  std::optional<std::string> doubtful; // the version that an attempt of unknown end started from
  const auto read = [&](std::string_view address) {
    auto reading = host_.repository->read_object(address);
    return doubtful ? std::move(reading) : within(*host_.infra, std::move(reading), due, "the Location Store");
  };
  for (std::chrono::milliseconds pause = first_pause;;) {
    if (!doubtful && late())
      co_return too_late();
    outcome_of<placement::read_outcome<placement::object_record>> reading_spot{read(spot->id())};
    const auto spot_read = co_await reading_spot;
    if (!spot_read)
      co_return spot_read.error();
    outcome_of<placement::read_outcome<placement::object_record>> reading_actor{read(actor->address())};
    const auto actor_read = co_await reading_actor;
    if (!actor_read)
      co_return actor_read.error();
    const auto* at = placement::seen_in(*spot_read);
    const auto* seen = placement::seen_in(*actor_read);
    if (at != nullptr && seen != nullptr) {
      const auto* row = placement::row_in(*seen);
      if (row == nullptr || row->generation != actor->generation())
        co_return error{error_kind::invalid_operation, described(actor->address()) + " is another incarnation by now"};
      if (row->member_of == wanted)
        co_return std::nullopt; // an earlier attempt got through
      if (const auto* user_row = placement::row_in(*at); !late() && (row->aggregate || (user_row != nullptr && user_row->aggregate))) {
        // What moved them here is over: they stand for themselves again.
        auto leaving = row->aggregate ? placement::leave_one(*host_.repository, placement::object_kind::actor, actor->id(), mine.owner)
                                      : placement::leave_one(*host_.repository, placement::object_kind::user_spot, spot->id(), mine.owner);
        if (co_await std::move(leaving) == placement::step_end::done)
          continue;
      }
      if (doubtful && *doubtful != seen->version)
        doubtful.reset(); // it did not, and cannot any more
      const bool giving_up = late();
      if (giving_up && !doubtful)
        co_return too_late();
      const auto* user = placement::row_in(*at);
      if (!entry && (user == nullptr || user->generation != spot->generation() || user->closing))
        co_return error{error_kind::not_found, described(spot->id()) + " has closed"};
      auto decided = giving_up ? placement::preserve(*seen, mine) : placement::change_membership(*seen, mine, wanted, *at);
      auto* step = std::get_if<placement::fragment>(&decided);
      if (step == nullptr || !host_.ownership->held())
        co_return error{error_kind::unavailable, "the ownership of " + described(actor->address()) + " has changed, or it moves"};
      auto applying = host_.repository->apply(std::move(*step));
      const auto applied = co_await std::move(applying);
      if (applied.what == placement::fragment_outcome::applied) {
        if (giving_up)
          co_return too_late();
        co_return std::nullopt;
      }
      if (applied.what == placement::fragment_outcome::not_applied)
        doubtful = seen->version;
      else if (applied.what != placement::fragment_outcome::conflict)
        co_return error{error_kind::internal_failure, "the store did not carry out the change of " + described(actor->address())};
    }
    auto waiting = wait_longer(host_, pause, due);
    co_await std::move(waiting);
  }
}

/// False: something of it was still under way when the time was over.
task<bool> memberships::until_at_rest(counted_ptr<actor_object> actor, steady_time due) {
  for (std::chrono::milliseconds pause = first_pause;;) {
    auto asking = run_turn<bool>(*actor, *host_.infra, [](execution_object& object) { return static_cast<actor_object&>(object).at_rest(); });
    if (co_await std::move(asking))
      co_return true;
    if (host_.time->now() >= due)
      co_return false;
    auto waiting = wait_longer(host_, pause, due);
    co_await std::move(waiting);
  }
}

void memberships::remove_member(const counted_ptr<spot_object>& spot, counted_ptr<actor_object> actor) {
  spot->home().post([spot, actor = std::move(actor)] { spot->members().remove(*actor); });
}

/// In turns of the Spot: it has come, and the Spot is told.
task<void> memberships::arrive(arrival& coming, spot_object& into) {
  auto& actor = *coming.actor;
  if (actor.application() != nullptr && !std::exchange(coming.counted, true))
    into.members().add(coming.actor);
  if (std::exchange(coming.expected, false))
    into.members().expected_came();
  auto* callbacks = callbacks_of(into);
  return callbacks == nullptr || actor.application() == nullptr ? task<void>::done() : callbacks->tell_joined(*actor.application());
}

/// The Actor settles down in a turn of its own, and straight from there the Spot is told.
task<void> memberships::settle_and_tell(std::shared_ptr<arrival> coming, counted_ptr<spot_object> into) {
  auto told = new_counted<operation<void>>();
  told->dispatcher = host_.infra->unit();
  auto& actor = *coming->actor;
  actor.submit_step(std::make_unique<turn_step>([told, coming = std::move(coming), into = std::move(into)](execution_object& object) mutable {
    auto& moving = static_cast<actor_object&>(object);
    if (!moving.at_rest()) {
      told->fail({error_kind::unavailable, "something of the Actor is under way"});
      return;
    }
    moving.settle_down();
    coming->settled.store(true);
    auto& spot = *into;
    spot.submit_step(std::make_unique<callback_step<void>>(
      "on_joined_actor",
      [coming = std::move(coming)](execution_object& target) { return arrive(*coming, static_cast<spot_object&>(target)); },
      std::move(told), nullptr));
  }));
  return task<void>{std::move(told)};
}

/// After the commit. Ends when the Spot has been told; `expected`: it has let the Actor in.
task<void> memberships::move_in(counted_ptr<actor_object> actor, counted_ptr<spot_object> from, counted_ptr<spot_object> into,
                                bool expected) {
  const bool entry = into->factory().kind == spot_kind::entry;
  actor->committed({into->id(), entry ? object_generation{} : into->generation()}, into);
  if (from) {
    from->part_busy(); // it does not end before it has been told
    remove_member(from, actor);
  }
  const auto coming = std::make_shared<arrival>();
  coming->actor = actor;
  coming->expected = expected;
  for (std::chrono::milliseconds pause = first_pause;;) { // until it is told: the Actor's messages wait for that (J-85)
    outcome_of<void> telling{settle_and_tell(coming, into)};
    const auto told = co_await telling;
    if (told || (host_.ending() && coming->settled.load()))
      break;
    auto waiting = wait_longer(host_, pause);
    co_await std::move(waiting);
  }
  if (from)
    tell_left(std::move(actor), std::move(from));
}

/// `on_leave_actor`, of which nobody waits for the end: that is recorded, and changes nothing (J-84).
class memberships::leave_notice final : public lifecycle_step {
public:
  leave_notice(counted_ptr<actor_object> actor, memberships& owner) noexcept : actor_(std::move(actor)), owner_(owner) {
    actor_->notice_begins();
  }
  task<void> run(execution_object& object) override {
    auto* callbacks = callbacks_of(static_cast<spot_object&>(object));
    if (callbacks == nullptr || actor_->application() == nullptr)
      return task<void>::done();
    return begin_callback<void>([&] { return callbacks->tell_left(*actor_->application()); });
  }
  void ended(execution_object& object, std::exception_ptr failure) noexcept override {
    if (failure) {
      note_failure(object, "on_leave_actor", failure, false);
      owner_.failed_callbacks.fetch_add(1, std::memory_order_relaxed);
    }
    actor_->notice_ends();
  }

private:
  counted_ptr<actor_object> actor_;
  memberships& owner_;
};

/// The Spot was made busy before, so that it is told.
void memberships::tell_left(counted_ptr<actor_object> actor, counted_ptr<spot_object> from) {
  from->submit_step(std::make_unique<leave_notice>(std::move(actor), *this));
  from->part_quiet(1); // the step itself keeps it from its end
}

/// Until the Actor has been told; then its messages go on, before anything else of it (J-102, J-110, J-115).
task<void> memberships::complete(counted_ptr<actor_object> actor, join_completion outcome) {
  const auto told = std::make_shared<const join_completion>(std::move(outcome));
  for (std::chrono::milliseconds pause = first_pause;;) {
    outcome_of<void> telling{run_callback<void>(
      *actor, *host_.infra, "on_join_completed",
      [told](execution_object& object) -> task<void> {
        auto* application = static_cast<actor_object&>(object).application();
        return application == nullptr ? task<void>::done() : application->on_join_completed(*told);
      },
      [](execution_object& object) { end_change(object); })};
    const auto ended = co_await telling;
    if (ended)
      co_return;
    if (host_.ending())
      break;
    auto waiting = wait_longer(host_, pause);
    co_await std::move(waiting);
  }
  reopen(std::move(actor));
}

/// In this order: whoever begins the next change shuts it again.
void memberships::end_change(execution_object& actor) {
  actor.set_open(true);
  static_cast<actor_object&>(actor).end_change();
}

void memberships::reopen(counted_ptr<actor_object> actor) {
  actor->submit_step(std::make_unique<turn_step>([](execution_object& object) { end_change(object); }));
}

} // namespace zlink::detail
