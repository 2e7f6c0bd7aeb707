#include "crowd.hpp"

#include "match.hpp"

#include <chrono>
#include <stdexcept>

#include <poll.h>

using zlink::sync_wait;

namespace {

using namespace std::chrono_literals;

constexpr auto thinking_time = 5ms; ///< of everybody, between two moves
constexpr int most_attempts = 50;

} // namespace

crowd::crowd(zlink::host& through, std::size_t matches, std::size_t players) : host_(through) {
  for (std::size_t i = 1; i <= matches; ++i) {
    const auto& match = matches_.emplace_back("match-" + std::to_string(i));
    for (std::size_t k = 1; k <= players; ++k)
      people_.push_back({.player = match + '/' + std::to_string(k), .match = match});
  }
}

void crowd::take_seats() {
  for (const auto& one : matches_)
    sync_wait(host_.spots().get_or_create(one, match::type).submit());
  for (const auto& one : people_) {
    sync_wait(host_.actors().get_or_create(one.player, player::type).submit());
    take_seat(one);
  }
}

// The player may be on another node than the match. Nodes that have just started may have no link to each other yet.
void crowd::take_seat(const person& one) {
  for (int attempt = 0; ask_player(one).spot != one.match; ++attempt) {
    if (attempt == most_attempts)
      throw std::runtime_error{one.player + " was not let in"};
    if (attempt != 0)
      ::poll(nullptr, 0, 100);
    sync_wait(host_.actors().send_to_actor(one.player, enter{one.match}).submit()); // the question waits behind the Join
  }
}

void crowd::remember() {
  for (auto& one : people_) {
    const auto known = ask_player(one);
    if (known.spot != one.match)
      throw std::runtime_error{one.player + " has no seat in " + one.match};
    one.moves = known.moves;
    one.points = known.points;
  }
}

void crowd::play(const stop_signal& until) {
  do {
    for (auto& one : people_)
      move(one);
  } while (!until.await_for(thinking_time));
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return waiting_ == 0; });
}

void crowd::move(person& who) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock{mutex_};
    if (who.waits)
      return;
    who.waits = true;
    ++waiting_;
    number = who.moves + 1;
  }
  host_.actors()
    .request_to_actor(who.player, make_move{number})
    .submit<moved>()
    .then([this, &who](zlink::result<moved> answer) { answered(who, answer); });
}

// A failure does not say whether the move was made. The same number again settles it.
void crowd::answered(person& who, const zlink::result<moved>& answer) {
  const std::lock_guard lock{mutex_};
  if (answer && answer->moves == who.moves + 1)
    who.points += worth_of(++who.moves);
  else
    ++failures_[answer ? "a wrong number" : zlink::to_string(answer.error().kind())];
  who.waits = false;
  --waiting_;
  changed_.notify_all();
}

match_report crowd::ask_match(const std::string& match) {
  return sync_wait(host_.spots().request_to_spot(match, ::ask_match{}).submit<match_report>());
}

player_report crowd::ask_player(const person& who) {
  return sync_wait(host_.actors().request_to_actor(who.player, ::ask_player{}).submit<player_report>());
}
