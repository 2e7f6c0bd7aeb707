#include "tests/e2e/node/commands.hpp"

#include "tests/e2e/node/room.hpp"
#include "zlink/queries.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace zlink::test {

namespace {

template <class T>
result<T> outcome(task<T> waited) {
  return sync_wait(as_result(std::move(waited)));
}

/// Of calls that were started together; `take` waits for all.
class answers {
public:
  explicit answers(std::size_t count) : texts_(count), open_(count) {}
  void put(std::size_t place, std::string text) {
    std::lock_guard guard{mutex_};
    texts_[place] = std::move(text);
    if (--open_ == 0)
      done_.notify_all();
  }
  std::string take() {
    std::unique_lock guard{mutex_};
    done_.wait(guard, [this] { return open_ == 0; });
    std::string all = "ok";
    for (const auto& one : texts_)
      all += ' ' + one;
    return all;
  }

private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<std::string> texts_;
  std::size_t open_;
};

std::vector<std::string> rest_of(std::istringstream& in) {
  return {std::istream_iterator<std::string>{in}, {}};
}

} // namespace

commands::commands(process_log& log, load& work, host& served)
  : log_(log),
    load_(work),
    host_(served),
    known_{{"state", &commands::state},     {"peers", &commands::peers},
           {"load", &commands::start_load}, {"rest", &commands::rest},
           {"ask", &commands::ask},         {"start_holds", &commands::start_holds},
           {"holds", &commands::holds},     {"hail", &commands::hail_node},
           {"ring", &commands::ring},       {"nodes", &commands::nodes},
           {"where", &commands::where},     {"release", &commands::release},
           {"weight", &commands::placement_weight}, {"channel_weight", &commands::channel_weight},
           {"room", &commands::make_room},  {"relocate", &commands::relocate_all},
           {"tallies", &commands::tallies}, {"count", &commands::count_objects}},
    ending_(::eventfd(0, EFD_CLOEXEC)) {}

void commands::begin() {
  runner_ = std::thread{[this] { run(); }};
}

void commands::end() {
  if (!runner_.joinable())
    return;
  const std::uint64_t one = 1;
  if (::write(ending_, &one, sizeof one) != sizeof one)
    return;
  runner_.join();
  ::close(ending_);
}

bool commands::wait_until_serving() {
  for (;;) {
    if (host_.status().state == host_state::serving)
      return true;
    pollfd over{ending_, POLLIN, 0};
    if (::poll(&over, 1, 5) != 0)
      return false;
  }
}

void commands::run() {
  if (!wait_until_serving())
    return;
  std::string text = "ready\n";
  for (;;) {
    if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return;
    std::string line;
    for (char c = 0; c != '\n'; line += c) {
      pollfd any[] = {{STDIN_FILENO, POLLIN, 0}, {ending_, POLLIN, 0}};
      if (::poll(any, 2, -1) < 0 || any[1].revents != 0 || ::read(STDIN_FILENO, &c, 1) != 1)
        return;
    }
    text = answer(line) + '\n';
  }
}

std::string commands::answer(const std::string& line) {
  words in{line};
  std::string name;
  in >> name;
  const auto found = known_.find(name);
  if (found == known_.end())
    return "no such command: " + name;
  try {
    return (this->*found->second)(in);
  } catch (const std::exception& what) {
    return what.what();
  }
}

std::string commands::state(words&) {
  const auto now = host_.status();
  auto& node = host_.mesh(mesh_name);
  return "ok " + std::string{to_string(now.state)} + ' ' + (now.accepting_work ? "open" : "closed") + ' ' + node.rid() + ' '
         + node.entry_spot_id() + ' ' + node.endpoint();
}

std::string commands::peers(words& in) {
  std::size_t count = 0;
  in >> count;
  return outcome_of(outcome(host_.mesh(mesh_name).until_peers_ready(count)));
}

std::string commands::start_load(words& in) {
  load_plan plan;
  std::int64_t pause = 0;
  std::int64_t timeout = 0;
  std::string kind;
  std::string what = "ledgers";
  if (!(in >> plan.ids >> plan.count >> pause >> timeout >> kind))
    return "load IDS COUNT PAUSE TIMEOUT r|o [rooms|walkers]";
  in >> what;
  plan.pause = std::chrono::milliseconds{pause};
  plan.timeout = std::chrono::milliseconds{timeout};
  plan.one_way = kind == "o";
  plan.intent = what == "ledgers";
  plan.actor = what == "walkers";
  load_.add(host_, plan);
  return "ok";
}

std::string commands::rest(words&) { return "ok " + std::to_string(load_.rest()); }

std::string commands::ask(words& in) {
  std::int64_t timeout = 0;
  std::string kind;
  in >> timeout >> kind;
  const auto ids = rest_of(in);
  answers all{ids.size()};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const called c{ids[i], log_.name() + ".ask", ++asked_, false, kind == "intent", kind == "walkers",
                   std::chrono::milliseconds{timeout}};
    start_request<stroke_done>(log_, host_, c, stroke{c.sender, c.number}, [&all, i](const result<stroke_done>& end) {
      all.put(i, end.has_value() ? served_by(end) : outcome_of(end));
    });
  }
  return ids.empty() ? "ok" : all.take();
}

std::string commands::start_holds(words& in) {
  std::int64_t timeout = 0;
  in >> timeout;
  for (const auto& id : rest_of(in)) {
    const called c{id, log_.name() + ".hold", ++asked_, false, true, false, std::chrono::milliseconds{timeout}};
    ++holds_;
    start_request<held>(log_, host_, c, hold{}, [this](const result<held>&) { --holds_; });
  }
  return "ok";
}

std::string commands::holds(words&) { return "ok " + std::to_string(holds_.load()); }

std::string commands::hail_node(words& in) {
  std::string rid;
  std::int64_t timeout = 0;
  in >> rid >> timeout;
  auto request = host_.nodes().request_to_node(mesh_name, rid, hail{}).timeout(std::chrono::milliseconds{timeout});
  return outcome_of(outcome(request.submit<hailed>()));
}

std::string commands::ring(words& in) {
  std::size_t count = 0;
  in >> count;
  std::map<std::string, int> heard;
  for (std::size_t i = 0; i < count; ++i) {
    const auto end = outcome(host_.channels().request_to_channel(channel_name, hail{}).submit<hailed>());
    ++heard[end.has_value() ? end->rid : outcome_of(end)];
  }
  std::string all = "ok";
  for (const auto& [who, times] : heard)
    all += ' ' + who + ' ' + std::to_string(times);
  return all;
}

std::string commands::nodes(words&) {
  const auto listed = outcome(host_.queries().nodes(mesh_name));
  if (!listed.has_value())
    return outcome_of(listed);
  std::string all = "ok";
  for (const auto& one : *listed)
    all += ' ' + one.node_rid + ' ' + one.entry_spot_id + ' ' + one.state + ' ' + (one.live ? "live" : "dead") + ' '
           + std::to_string(one.placement_weight);
  return all;
}

std::string commands::where(words& in) {
  std::string all = "ok";
  for (const auto& id : rest_of(in)) {
    const auto found = outcome(host_.queries().find_spot(id));
    if (!found.has_value())
      all += ' ' + outcome_of(found) + " 0 -";
    else if (!*found)
      all += " missing 0 -";
    else
      all += std::string{' '} + to_string((**found).state) + ' ' + (**found).object_generation + ' ' + (**found).node_rid;
  }
  return all;
}

/// As an operator does it: the ref comes from what the store shows (S-79).
std::string commands::release(words& in) {
  std::string all = "ok";
  for (const auto& id : rest_of(in)) {
    const auto found = outcome(host_.queries().find_spot(id));
    if (!found.has_value() || !*found) {
      all += found.has_value() ? " missing" : ' ' + outcome_of(found);
      continue;
    }
    const auto& row = **found;
    const auto closed = outcome(host_.spots().close({id, std::stoull(row.object_generation), row.mesh_name, row.node_rid}));
    all += closed.has_value() ? (*closed ? " true" : " false") : ' ' + outcome_of(closed);
  }
  return all;
}

std::string commands::placement_weight(words& in) {
  std::uint32_t weight = 0;
  in >> weight;
  host_.mesh(mesh_name).placement_weight(weight);
  return "ok";
}

std::string commands::channel_weight(words& in) {
  std::uint32_t weight = 0;
  in >> weight;
  host_.mesh(mesh_name).channel_weight(channel_name, weight);
  return "ok";
}

/// A User Spot of that type and id, and walkers that it takes in: "room TYPE ID WALKERS COUNT". For the id "-" they stay where
/// they began.
std::string commands::make_room(words& in) {
  std::string type;
  std::string id;
  std::string who;
  std::size_t count = 0;
  in >> type >> id >> who >> count;
  try {
    if (id != "-")
      sync_wait(host_.spots().get_or_create(id, type).submit());
    for (std::size_t i = 0; i < count; ++i) {
      const auto name = who + std::to_string(i);
      sync_wait(host_.actors().create(name, walker_type).submit());
      sync_wait(host_.actors().request_to_actor(name, set_out{id}).submit<held>());
    }
  } catch (const operation_failed& failed) {
    return failed.what();
  }
  return "ok";
}

/// "relocate DEADLINE": "ok relocated none", or "ok blocked" and why.
std::string commands::relocate_all(words& in) {
  std::int64_t deadline = 0;
  in >> deadline;
  const auto end = outcome(host_.relocate({.deadline = std::chrono::milliseconds{deadline}}));
  if (!end.has_value())
    return outcome_of(end);
  return std::string{"ok "} + to_string(end->outcome) + ' ' + to_string(end->reason);
}

/// Spots, Entry Spots among them, and Actors.
std::string commands::count_objects(words&) {
  const auto now = host_.status();
  return "ok " + std::to_string(now.spots) + ' ' + std::to_string(now.actors);
}

/// What the objects say that they have served: "tallies spots|walkers IDS".
std::string commands::tallies(words& in) {
  std::string what;
  in >> what;
  std::string all = "ok";
  for (const auto& id : rest_of(in)) {
    const auto told = what == "walkers" ? outcome(host_.actors().request_to_actor(id, tell{}).submit<tally>())
                                        : outcome(host_.spots().request_to_spot(id, tell{}).submit<tally>());
    all += ' ' + (told.has_value() ? to_string(*told) : outcome_of(told));
  }
  return all;
}

} // namespace zlink::test
