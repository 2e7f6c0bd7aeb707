// What an operator does by hand in docs/guide/draining.md: every process here is a command of this program.
#include "commands.hpp"
#include "samples/shared/child_process.hpp"
#include "samples/shared/local_redis.hpp"

#include <zlink/clock.hpp>

#include <chrono>
#include <csignal>
#include <functional>
#include <list>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

constexpr std::size_t nodes_at_once = 3;
constexpr auto between = 700ms; ///< deploys also have pauses

class stage {
public:
  explicit stage(const options& chosen) : chosen_(chosen) {
    if (chosen.redis.empty())
      own_redis_.emplace();
    where_ = arena::fresh(own_redis_ ? own_redis_->url() : chosen.redis);
  }
  int run();

private:
  void start_node(std::uint64_t version);
  void replace_oldest(std::uint64_t version);
  /// Returns when they play.
  void start_players();
  /// Any command that ends by itself.
  void do_once(const std::string& name, const std::function<int()>& command);
  /// Waits until it has ended, while everybody else is well. Its exit code.
  int end_of(child_process& one);
  void play_for(std::chrono::milliseconds time);
  /// Throws `std::runtime_error` if one of the others has ended.
  void look_after_all_but(const child_process* one);

  const options chosen_;
  const kept_signals signals_; // before anything is started
  std::optional<local_redis> own_redis_;
  arena where_;
  std::size_t named_ = 0;
  std::list<child_process> nodes_;   ///< the oldest first
  std::list<child_process> leaving_; ///< empty, and still there to pass late messages on
  std::optional<child_process> players_;
};

void stage::start_node(std::uint64_t version) {
  auto about = chosen_;
  about.name = "node-" + std::to_string(++named_);
  about.version = version;
  nodes_.emplace_back(about.name, [about, this] { return serve(where_, about); });
}

void stage::start_players() {
  int ends[2]{};
  if (::pipe(ends) != 0)
    throw std::runtime_error{"no pipe: the system has no room for one"};
  players_.emplace("players", [&, this] { return play(where_, chosen_, [&] { ::close(ends[1]); }); });
  ::close(ends[1]); // the players have the last one
  pollfd begun{.fd = ends[0], .events = POLLIN, .revents = 0};
  while (::poll(&begun, 1, 0) == 0) // closed, which says that they play
    play_for(50ms);
  ::close(ends[0]);
}

void stage::do_once(const std::string& name, const std::function<int()>& command) {
  child_process doing{name, [&command, this] {
                        signals_.let_through();
                        return command();
                      }};
  if (end_of(doing) != 0)
    throw std::runtime_error{name + ' ' + describe_end(*doing.status())};
}

void stage::look_after_all_but(const child_process* one) {
  std::vector<child_process*> needed;
  for (auto& node : nodes_)
    needed.push_back(&node);
  if (players_)
    needed.push_back(&*players_);
  if (own_redis_)
    needed.push_back(&own_redis_->process());
  for (auto* other : needed)
    if (other != one && other->status())
      throw std::runtime_error{other->name() + ' ' + describe_end(*other->status()) + " before its time"};
}

int stage::end_of(child_process& one) {
  while (!one.status()) {
    if (signals_.next() != SIGCHLD)
      throw std::runtime_error{"told to stop"};
    look_after_all_but(&one);
  }
  return WIFEXITED(*one.status()) ? WEXITSTATUS(*one.status()) : 1;
}

void stage::play_for(std::chrono::milliseconds time) {
  const zlink::system_clock clock;
  const auto until = clock.now() + time;
  for (auto left = time; left > 0ms; left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock.now())) {
    if (signals_.next_within(left).value_or(SIGCHLD) != SIGCHLD)
      throw std::runtime_error{"told to stop"};
    look_after_all_but(nullptr);
  }
}

/// One step of a rolling deploy. The drain waits for the new node if that is not there yet.
void stage::replace_oldest(std::uint64_t version) {
  start_node(version);
  auto order = chosen_;
  order.name = nodes_.front().name();
  order.to_version = version;
  do_once("drain", [&] { return drain(where_, order); });
  nodes_.front().ask_to_end();
  leaving_.splice(leaving_.end(), nodes_, nodes_.begin());
  play_for(between);
}

int stage::run() {
  for (std::size_t i = 0; i < nodes_at_once; ++i)
    start_node(1);
  auto order = chosen_;
  order.nodes = nodes_at_once;
  do_once("open", [&] { return open_matches(where_, order); });
  start_players();
  play_for(between);
  for (std::uint64_t version = 2; version <= chosen_.deploys + 1; ++version)
    for (std::size_t i = 0; i < nodes_at_once; ++i)
      replace_oldest(version);
  int code = 0;
  for (auto& one : leaving_)
    code |= end_of(one); // while the last node's late messages may come, people play on
  players_->ask_to_end();
  code |= end_of(*players_);
  players_.reset();
  for (auto& one : nodes_) // all at the same time; the destructors wait for them
    one.ask_to_end();
  return code == 0 ? 0 : 1;
}

} // namespace

int show(const options& chosen) { return stage{chosen}.run(); }
