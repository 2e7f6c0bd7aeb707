// A mesh of processes around one redis-server, with load on it, and what a test may ask of it in the end.
#pragma once

#include "tests/e2e/checker.hpp"
#include "tests/e2e/memory_watch.hpp"
#include "tests/e2e/node_process.hpp"
#include "tests/redis/redis_server.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace zlink::test {

/// What a call may end in where nothing is said otherwise (C-100).
inline const std::set<std::string> usual_outcomes = {"ok", "unavailable"};

/// Where an id lives.
struct place {
  std::string id;
  std::string state; ///< "ready", "unavailable", "creating", "missing"
  std::uint64_t generation = 0;
  std::string rid;
};

class scene {
public:
  /// Keeps its data over a restart.
  scene();
  ~scene();
  scene(const scene&) = delete;
  scene& operator=(const scene&) = delete;

  redis_server redis;

  /// One more process, which serves; not yet linked to all.
  node_process& start_node();
  /// One more process that hosts nothing.
  node_process& start_client();
  /// So many, all linked to each other, each a candidate for new Spots to all.
  void start_nodes(std::size_t count);
  node_process& node(std::size_t i) { return *nodes_.at(i); }
  /// Those that run and are not frozen.
  std::vector<node_process*> running() const;
  void until_all_are_linked();
  /// First messages of every node bring Spots to life on every node; their ids begin with "warm".
  void until_all_are_candidates();

  /// The same command to all that run, at once; their answers.
  std::vector<std::string> ask_all(const std::string& command);
  /// Requests to IDS0, IDS1 and so on from all nodes, each with a sender of its own; and one-way messages.
  void begin_load(const std::string& ids, std::size_t count, std::chrono::milliseconds pause,
                  std::chrono::milliseconds timeout);
  /// New Spots, spread evenly over all candidates by one node, which has to know them. Where several nodes place an id at
  /// once, the first reservation wins, and a node that is slow at that moment may get none of many.
  void spread(const std::string& ids, std::size_t count);
  /// The same as `begin_load`, to ids that were spread before.
  void begin_even_load(const std::string& ids, std::size_t count, std::chrono::milliseconds pause,
                       std::chrono::milliseconds timeout);
  void end_load() { ask_all("rest"); }
  /// Every id answers to every node; there is somebody in each.
  void until_all_answer(const std::string& ids, std::size_t count, std::chrono::milliseconds limit);

  std::vector<place> places(const std::string& ids, std::size_t count);
  /// Ids of those that live there.
  std::vector<std::string> owned_by(const node_process& owner, const std::string& ids, std::size_t count);

  /// The processes are warm: from now on what they grow counts. Later ones are watched from their start.
  void watch_memory();
  /// Ends load; every rule that holds in every scenario.
  evidence check(const std::set<std::string>& allowed);
  /// What all processes wrote; the load has ended.
  evidence all_evidence() const;
  findings memory_findings() const;
  /// One more rule.
  void expect_none(const findings& found);

  steady_time now() const { return time_.now(); }

private:
  node_process& start_process(bool client);

  temporary_directory directory_;
  std::vector<std::unique_ptr<node_process>> nodes_;
  memory_watch memory_;
  system_clock time_;
  std::size_t warm_ids_ = 0;
  bool failed_ = false;
};

std::size_t count_outcome(const evidence& seen, const std::string& outcome);
/// How much later than its timeout a call may end: the machine may be busy.
inline constexpr std::chrono::milliseconds outcome_slack{5'000};

/// "IDS0 IDS1 ...", each with a space before it.
std::string names(const std::string& ids, std::size_t count);
std::string names(const std::vector<std::string>& ids);

} // namespace zlink::test
