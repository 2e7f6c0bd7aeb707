#include "match.hpp"

#include "arena.hpp"

#include <zlink/clock.hpp>

#include <chrono>
#include <iostream>
#include <sstream>

namespace {

using namespace std::chrono_literals;

constexpr auto round_length = 250ms;

std::int64_t now() { return zlink::system_clock{}.now().time_since_epoch().count(); }

player_report report_of(const player& who) {
  return {who.state.moves, who.state.points, who.context().spot_id(), name_of(who.context().node_rid())};
}

/// One line at a time, although several processes write to one place.
void tell(const std::string& line) { std::cout << line + '\n' << std::flush; }

} // namespace

/// Around every handler of a match: the pause of a move lies between two of them.
class match::handled {
public:
  explicit handled(match& of) : of_(of) {
    if (of_.arrived_) {
      of_.arrived_ = false;
      of_.state_.stays.back().pause = now() - of_.state_.last_handler;
    }
  }
  ~handled() { of_.state_.last_handler = now(); }
  handled(const handled&) = delete;
  handled& operator=(const handled&) = delete;

private:
  match& of_;
};

zlink::task<void> player::on_join_completed(const zlink::join_completion& join) {
  if (join.error)
    std::cerr << context().actor_id() + " was not let in: " + zlink::to_string(*join.error) + '\n' << std::flush;
  co_return;
}

// -- a match ----------------------------------------------------------------------------------------------------------

void match::configure() {
  context()
    .handlers()
    .add_packet<&match::on_ask>()
    .add_actor_handler<&match::on_move>()
    .add_actor_handler<&match::on_ask_player>();
}

// Here and on every node that the match moves to. There the bell is carried along already, and this call changes nothing:
// its ticks count on where they were.
zlink::task<void> match::on_initialize() { co_await context().add_timer<&match::on_bell>("bell", round_length); }

// Once in the life of a match, and not after a move.
zlink::task<zlink::spot_create_response> match::on_create(const zlink::message&) {
  state_.stays.push_back({.node = name_of(context().node_rid()), .since = now()});
  tell(context().spot_id() + " opens on " + state_.stays.back().node);
  begin_round();
  co_return zlink::accept();
}

zlink::task<void> match::on_joined_actor(player&) { co_return; } // not after a move either: who was in, is in
zlink::task<void> match::on_leave_actor(player&) { co_return; }

moved match::on_move(player& who, const zlink::message_context&, const make_move& m) {
  const handled here{*this};
  if (!playing_)
    ++state_.interrupted; // somebody plays, and there is no round
  if (m.number == who.state.moves + 1) { // else it is asked again
    const auto worth = worth_of(m.number);
    ++who.state.moves;
    who.state.points += worth;
    round_points_ += worth;
  }
  return {who.state.moves};
}

player_report match::on_ask_player(player& who, const zlink::message_context&, const ask_player&) {
  const handled here{*this};
  return report_of(who);
}

match_report match::on_ask(const ask_match&, const zlink::message_context&) {
  const handled here{*this};
  match_report report{.node = name_of(context().node_rid()),
                      .rounds = state_.rounds,
                      .points = state_.points + round_points_,
                      .interrupted = state_.interrupted,
                      .players = {},
                      .stays = state_.stays};
  for (const player* who : members())
    report.players.push_back(who->context().actor_id());
  return report;
}

void match::on_bell(const zlink::timer_tick&) {
  const handled here{*this};
  playing_ = false;
  ++state_.rounds;
  state_.points += round_points_;
  round_points_ = 0;
  // An offer. Whoever plays on waits until the match knows where it is, which is at once if it has no reason to move.
  context().relocation_ready().defer();
}

zlink::task<void> match::on_relocation_ready_completed(const zlink::spot_relocation_ready_completion& completion) {
  if (completion.outcome == zlink::spot_relocation_ready_outcome::relocated)
    arrive();
  begin_round();
  co_return;
}

void match::begin_round() { playing_ = true; }

// May be called twice for one arrival, after a crash in between: the second time there is nothing left to do.
void match::arrive() {
  const auto from = state_.stays.back().node;
  const auto here = name_of(context().node_rid());
  if (from == here)
    return;
  state_.stays.push_back({here, now(), state_.rounds, members().size(), 0});
  arrived_ = true;
  std::ostringstream line;
  line << context().spot_id() << " moves from " << from << " to " << here << " after round " << state_.rounds << ", with "
       << members().size() << " players";
  tell(line.str());
}

// -- what travels -----------------------------------------------------------------------------------------------------

zlink::task<zlink::bytes> match_adapter::capture(match& from, std::stop_token) const {
  auto state = from.state_;
  if (from.playing_)
    ++state.interrupted;
  co_return zlink::encode(state);
}

zlink::task<void> match_adapter::restore(match& into, zlink::byte_view state, std::stop_token) const {
  into.state_ = zlink::decode<match_state>(state);
  co_return;
}

zlink::task<zlink::bytes> player_adapter::capture(player& from, std::stop_token) const {
  co_return zlink::encode(from.state);
}

zlink::task<void> player_adapter::restore(player& into, zlink::byte_view state, std::stop_token) const {
  into.state = zlink::decode<player_state>(state);
  co_return;
}

// -- the lobby --------------------------------------------------------------------------------------------------------

void lobby::configure() {
  context().handlers().add_actor_handler<&lobby::on_enter>().add_actor_handler<&lobby::on_ask_player>();
}

zlink::task<void> lobby::on_joined_actor(player&) { co_return; }
zlink::task<void> lobby::on_leave_actor(player&) { co_return; }

// The match may be on another node: then the player moves there.
void lobby::on_enter(player& who, const zlink::message_context&, const enter& m) {
  who.context().join_spot(m.match).timeout(5s).defer();
}

player_report lobby::on_ask_player(player& who, const zlink::message_context&, const ask_player&) {
  return report_of(who);
}

// -- a node -----------------------------------------------------------------------------------------------------------

void serve_matches(zlink::mesh_node& node) {
  node.object_server()
    .add_entry_spot<lobby>()
    .add_actor_factory<player>(player::type, [](auto& factory) { factory.preserve_state_with(player_adapter{}); })
    .add_spot_factory<match>(match::type, [](auto& factory) {
      factory.preserve_state_with(match_adapter{});
      factory.application_signaled(); // without this the layer picks any moment between two handlers
    });
}
