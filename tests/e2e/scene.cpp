#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <system_error>

namespace zlink::test {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t memory_growth = 64 << 20;
constexpr std::uintmax_t room_needed = 256 << 20;

/// In memory, where the system has such a place: a disk that others keep busy stalls servers and nodes for seconds.
std::filesystem::path undisturbed_place() {
  const std::filesystem::path memory{"/dev/shm"};
  std::error_code none;
  const auto room = std::filesystem::space(memory, none);
  return !none && room.available >= room_needed && ::access(memory.c_str(), W_OK) == 0
           ? memory
           : std::filesystem::temp_directory_path();
}

} // namespace

// What the system has taken outlives a killed server, so nothing needs to be synced.
scene::scene() : redis({"appendonly yes", "appendfsync no"}, undisturbed_place()), directory_(undisturbed_place()) {}

scene::~scene() {
  if (failed_ || std::uncaught_exceptions() > 0)
    for (const auto& one : nodes_)
      std::cerr << one->last_words() << '\n';
}

node_process& scene::start_node() { return start_process(false); }
node_process& scene::start_client() { return start_process(true); }

node_process& scene::start_process(bool client) {
  nodes_.push_back(
    std::make_unique<node_process>("n" + std::to_string(nodes_.size() + 1), directory_.path(), redis.url(), client));
  if (!memory_.samples().empty())
    memory_.add(nodes_.back()->name(), nodes_.back()->pid());
  return *nodes_.back();
}

void scene::start_nodes(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    start_node();
  until_all_are_linked();
  until_all_are_candidates();
}

std::vector<node_process*> scene::running() const {
  std::vector<node_process*> all;
  for (const auto& one : nodes_)
    if (one->running())
      all.push_back(one.get());
  return all;
}

void scene::until_all_are_linked() {
  for (const auto& said : ask_all("peers " + std::to_string(running().size() - 1)))
    REQUIRE(said == "ok");
}

void scene::until_all_are_candidates() {
  const auto all = running();
  for (auto* one : all)
    eventually(one->name() + " places Spots on all nodes", 30s, [&] {
      const auto said = one->ask("ask 10000 intent" + names("warm" + std::to_string(++warm_ids_) + '.', 4 * all.size()));
      return std::all_of(all.begin(), all.end(), [&](const auto* owner) {
        return said.find('@' + owner->name() + '#') != std::string::npos;
      });
    });
}

std::vector<std::string> scene::ask_all(const std::string& command) {
  const auto asked = running();
  for (auto* one : asked)
    one->tell(command);
  std::vector<std::string> said;
  for (auto* one : asked)
    said.push_back(one->hear());
  return said;
}

void scene::begin_load(const std::string& ids, std::size_t count, std::chrono::milliseconds pause,
                       std::chrono::milliseconds timeout) {
  const auto plan = "load " + ids + ' ' + std::to_string(count) + ' ' + std::to_string(pause.count()) + ' '
                    + std::to_string(timeout.count());
  ask_all(plan + " r");
  ask_all(plan + " o");
}

void scene::spread(const std::string& ids, std::size_t count) {
  running().front()->list("ask 10000 intent" + names(ids, count));
}

void scene::begin_even_load(const std::string& ids, std::size_t count, std::chrono::milliseconds pause,
                            std::chrono::milliseconds timeout) {
  spread(ids, count);
  begin_load(ids, count, pause, timeout);
  until_all_answer(ids, count, 60s);
}

void scene::until_all_answer(const std::string& ids, std::size_t count, std::chrono::milliseconds limit) {
  const auto command = "ask 10000 intent" + names(ids, count);
  eventually("all nodes reach " + ids + "0 and so on, in one place each", limit, [&] {
    const auto said = ask_all(command);
    std::istringstream words{said.front()};
    std::string word;
    words >> word;
    while (words >> word)
      if (word.find('@') == std::string::npos)
        return false;
    return std::all_of(said.begin(), said.end(), [&](const auto& one) { return one == said.front(); });
  });
}

std::vector<place> scene::places(const std::string& ids, std::size_t count) {
  std::vector<place> all;
  const auto words = running().front()->list("where" + names(ids, count));
  for (std::size_t i = 0; i < count; ++i)
    all.push_back({ids + std::to_string(i), words.at(3 * i), std::stoull(words.at(3 * i + 1)), words.at(3 * i + 2)});
  return all;
}

std::vector<std::string> scene::owned_by(const node_process& owner, const std::string& ids, std::size_t count) {
  std::vector<std::string> all;
  for (const auto& one : places(ids, count))
    if (one.rid == owner.rid())
      all.push_back(one.id);
  return all;
}

void scene::watch_memory() {
  for (auto* one : running())
    memory_.add(one->name(), one->pid());
}

evidence scene::check(const std::set<std::string>& allowed) {
  end_load();
  auto seen = all_evidence();
  expect_none(one_incarnation_at_a_time(seen));
  expect_none(in_order_and_once(seen));
  expect_none(named_outcomes(seen, allowed, outcome_slack));
  expect_none(answers_are_true(seen));
  expect_none(memory_findings());
  return seen;
}

evidence scene::all_evidence() const {
  evidence seen;
  for (const auto& one : nodes_)
    seen.push_back(one->history());
  return seen;
}

findings scene::memory_findings() const { return bounded_memory(memory_.samples(), memory_growth); }

void scene::expect_none(const findings& found) {
  INFO(to_text(found));
  CHECK(found.empty());
  failed_ = failed_ || !found.empty();
}

std::size_t count_outcome(const evidence& seen, const std::string& outcome) {
  std::size_t count = 0;
  for (const auto& process : seen)
    count += static_cast<std::size_t>(
      std::count_if(process.calls.begin(), process.calls.end(), [&](const call& c) { return c.outcome == outcome; }));
  return count;
}

std::string names(const std::string& ids, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i)
    all += ' ' + ids + std::to_string(i);
  return all;
}

std::string names(const std::vector<std::string>& ids) {
  std::string all;
  for (const auto& one : ids)
    all += ' ' + one;
  return all;
}

} // namespace zlink::test
