// A network in memory for hosts of one process and one thread: delay by seed, order kept within a connection, cuts, lost
// connections, frozen and dead machines on demand.
#pragma once

#include "zlink/clock.hpp"
#include "zlink/link.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zlink::testing {

/// How the network gets things done: all of it runs as jobs of the fixture. The last two may be left out.
struct sim_hooks {
  std::function<void(unique_function<void()>)> post;
  /// What is on its way for so long.
  std::function<void(steady_duration, unique_function<void()>)> post_after;
  std::function<std::uint64_t()> random;
  /// A job of that machine's transport; without it `post`.
  std::function<void(const std::string&, unique_function<void()>)> post_at = nullptr;
  /// A timeout; without it `post_after`.
  std::function<void(steady_duration, unique_function<void()>)> call_after = nullptr;
};

class sim_connection;
class sim_transport;

/// Machines have names. Not thread-safe: used by the fixture's thread only. Outlives its transports.
class sim_network {
public:
  explicit sim_network(sim_hooks hooks, steady_duration max_link_delay = steady_duration::zero());
  sim_network(const sim_network&) = delete;
  sim_network& operator=(const sim_network&) = delete;

  /// A transport of the node that lives on `host`.
  std::shared_ptr<detail::link_transport> make_transport(std::string host);

  /// Nothing passes between the two, in either direction, until healed: batches wait, nobody is told.
  void cut(const std::string& a, const std::string& b);
  /// Nothing passes from `from` to `to`; the other direction works.
  void cut_one_way(const std::string& from, const std::string& to);
  void heal(const std::string& a, const std::string& b);
  void heal_all();
  /// Ends every connection between the two; what is under way is lost.
  void lose_connections(const std::string& a, const std::string& b);
  /// A stopped process: neither takes nor sends anything, its connections stay.
  void freeze(const std::string& host);
  void thaw(const std::string& host);
  /// A process that is gone: its peers lose their connections, nobody answers there any more.
  void remove(const std::string& host);

  /// Batches that arrived.
  std::uint64_t delivered() const noexcept { return delivered_; }

private:
  friend class sim_connection;
  friend class sim_transport;

  bool blocked(const std::string& from, const std::string& to) const;
  steady_duration delay();
  void resume();
  void post_at(const std::string& host, unique_function<void()> job);
  void call_after(steady_duration delay, unique_function<void()> job);

  sim_hooks hooks_;
  steady_duration max_delay_;
  std::set<std::pair<std::string, std::string>> cuts_;
  std::set<std::string> frozen_;
  std::map<std::pair<std::string, std::uint16_t>, sim_transport*> listeners_;
  std::vector<std::weak_ptr<sim_connection>> connections_;
  std::uint16_t next_port_ = 1;
  std::uint64_t delivered_ = 0;
};

} // namespace zlink::testing
