#include "replay.hpp"

#include "progress.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

namespace {

/// Sends lines with a bound on those that are not answered yet. Replies arrive on one thread for each host.
///
/// A line waits for the reply to the one before it of the same package. That keeps their order although they leave from
/// different nodes, and no two nodes compete for the first message of a package, which only one of them would win.
class sender {
public:
  sender(cluster& nodes, std::size_t limit) : nodes_(nodes), limit_(limit), begun_(clock_.now()) {}

  /// Returns when there is room for the line, before it is answered. `entry` stays until `finish()`.
  void add(const log_entry& entry) {
    {
      std::unique_lock lock{mutex_};
      answered_.wait(lock, [this] { return open_ < limit_; });
      ++open_;
      const auto [package, first] = under_way_.try_emplace(entry.package);
      if (!first) {
        package->second.push_back(&entry);
        return;
      }
    }
    send(entry);
  }

  /// Waits for the last reply.
  replay_result finish() {
    std::unique_lock lock{mutex_};
    answered_.wait(lock, [this] { return open_ == 0; });
    result_.took = clock_.now() - begun_;
    return std::move(result_);
  }

private:
  void send(const log_entry& entry) {
    const auto sent = clock_.now();
    nodes_.next()
      .spots()
      .request_to_spot(entry.package, entry.event)
      .instance_spot(package_spot::type) // a package that has no Spot yet gets one, and it starts with this line
      .submit<recorded>()
      .then([this, &entry, sent](zlink::result<recorded> outcome) { take(entry, clock_.now() - sent, outcome); });
  }

  void take(const log_entry& entry, std::chrono::nanoseconds took, const zlink::result<recorded>& outcome) {
    const log_entry* following = nullptr;
    {
      std::lock_guard guard{mutex_};
      note(entry, took, outcome);
      const auto package = under_way_.find(entry.package);
      if (package->second.empty()) {
        under_way_.erase(package);
      } else {
        following = package->second.front();
        package->second.pop_front();
      }
      --open_;
      answered_.notify_one(); // under the lock: after the last reply this object may be gone as soon as it is free
    }
    if (following)
      send(*following);
  }

  void note(const log_entry& entry, std::chrono::nanoseconds took, const zlink::result<recorded>& outcome) {
    if (!outcome) {
      result_.failed.push_back({entry.event.line, entry.package, zlink::to_string(outcome.error())});
      return;
    }
    ++result_.answered;
    if (took > result_.slowest.took)
      result_.slowest = {took, entry.event.line, entry.package};
  }

  cluster& nodes_;
  const zlink::system_clock clock_;
  const std::size_t limit_;
  const zlink::steady_time begun_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::size_t open_ = 0;
  /// Packages with a line under way, and the lines that wait behind it.
  std::unordered_map<std::string, std::deque<const log_entry*>> under_way_;
  replay_result result_;
};

} // namespace

replay_result replay(const package_log& log, cluster& nodes, std::size_t outstanding, rolling_pace* pace) {
  sender lines{nodes, outstanding};
  progress shown{log.entries.size()};
  std::size_t taken = 0;
  for (const auto& entry : log.entries) {
    if (pace)
      pace->await_line(taken, nodes);
    lines.add(entry);
    shown.show(++taken);
  }
  return lines.finish();
}

histories ask_all(const package_log& log, cluster& nodes, std::size_t outstanding) {
  std::set<std::string> packages;
  for (const auto& entry : log.entries)
    packages.insert(entry.package);

  histories answers;
  std::deque<std::pair<std::string, zlink::task<told_history>>> asked; // a task is under way as soon as it is there
  const auto take_first = [&] {
    auto [package, answer] = std::move(asked.front());
    asked.pop_front();
    if (auto told = zlink::sync_wait(zlink::as_result(std::move(answer))))
      answers.emplace(std::move(package), std::move(*told));
  };
  for (const auto& package : packages) { // from any node, and without the marker: what does not exist stays missing
    asked.emplace_back(package, nodes.next().spots().request_to_spot(package, tell_history{}).submit<told_history>());
    if (asked.size() == outstanding)
      take_first();
  }
  while (!asked.empty())
    take_first();
  return answers;
}
