// A network in memory for hosts of one process and one thread: delay by seed, order kept within a pair, cuts, lost
// connections and frozen peers on demand.
#pragma once

#include "zlink/clock.hpp"
#include "zlink/link.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zlink::test {

/// How the network gets things done: all of it runs as jobs of the fixture.
struct sim_hooks {
  std::function<void(unique_function<void()>)> post;
  std::function<void(steady_duration, unique_function<void()>)> post_after;
  std::function<std::uint64_t()> random;
};

class sim_connection;
class sim_transport;

/// Not thread-safe: used by the fixture's thread only. Outlives its transports.
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
  /// Ends every connection between the two; what is under way is lost.
  void lose_connections(const std::string& a, const std::string& b);
  /// A stopped process: neither takes nor sends anything, its connections stay.
  void freeze(const std::string& host);
  void thaw(const std::string& host);

  /// Batches that arrived.
  std::uint64_t delivered() const noexcept { return delivered_; }

private:
  friend class sim_connection;
  friend class sim_transport;

  bool blocked(const std::string& from, const std::string& to) const;
  steady_duration delay();
  void resume();

  sim_hooks hooks_;
  steady_duration max_delay_;
  std::set<std::pair<std::string, std::string>> cuts_;
  std::set<std::string> frozen_;
  std::map<std::pair<std::string, std::uint16_t>, sim_transport*> listeners_;
  std::vector<std::weak_ptr<sim_connection>> connections_;
  std::uint16_t next_port_ = 1;
  std::uint64_t delivered_ = 0;
};

/// One end. What it sends waits in `outgoing_` until it has arrived, so the order is the queue's, whatever the delays.
class sim_connection final : public detail::link_connection, public std::enable_shared_from_this<sim_connection> {
public:
  sim_connection(sim_network& net, std::string here, std::string there)
    : net_(net), here_(std::move(here)), there_(std::move(there)) {}

  void join(const std::shared_ptr<sim_connection>& peer) { peer_ = peer; }
  bool between(const std::string& a, const std::string& b) const {
    return (here_ == a && there_ == b) || (here_ == b && there_ == a);
  }

  void start(std::shared_ptr<detail::link_connection_events> events) override {
    net_.hooks_.post([self = shared_from_this(), events = std::move(events)] {
      self->events_ = events;
      if (self->ended_) {
        self->tell_closed();
        return;
      }
      for (auto& batch : std::exchange(self->early_, {}))
        self->receive(batch);
    });
  }
  void write(bytes batch) override {
    if (open_)
      send(std::move(batch));
  }
  void limit_batches(std::uint64_t largest) override { limit_ = largest; }
  void close() override {
    if (!std::exchange(open_, false))
      return;
    send(std::nullopt); // behind the batch under way
    end("closed here");
  }
  std::string peer_address() const override { return there_; }

  void lose(const std::string& why) {
    open_ = false;
    outgoing_.clear();
    end(why);
  }
  bool ended() const noexcept { return ended_.has_value(); }
  std::size_t under_way() const noexcept { return outgoing_.size(); }
  /// After a cut, or when the delay is over.
  void arrive() {
    if (outgoing_.empty() || net_.blocked(here_, there_))
      return; // `resume` comes back
    auto item = std::move(outgoing_.front());
    outgoing_.pop_front();
    const auto peer = peer_.lock();
    if (!item) {
      if (peer)
        peer->lose("closed by the peer");
      return;
    }
    ++net_.delivered_;
    if (peer && peer->open_)
      peer->receive(*item);
    if (events_ && open_)
      events_->on_writable();
  }

private:
  void send(std::optional<bytes> item) {
    outgoing_.push_back(std::move(item));
    net_.hooks_.post_after(net_.delay(), [self = shared_from_this()] { self->arrive(); });
  }
  void receive(byte_view batch) {
    if (!events_)
      early_.emplace_back(batch.begin(), batch.end());
    else if (batch.size() > limit_)
      close();
    else
      again(events_->on_batch(batch));
  }
  void again(bool wanted) {
    if (!wanted || std::exchange(turn_posted_, true))
      return;
    net_.hooks_.post([self = shared_from_this()] {
      self->turn_posted_ = false;
      if (self->events_ && self->open_)
        self->again(self->events_->on_turn());
    });
  }
  void end(std::string why) {
    if (ended_)
      return;
    ended_ = std::move(why);
    net_.hooks_.post([self = shared_from_this()] { self->tell_closed(); });
  }
  void tell_closed() {
    if (const auto events = std::exchange(events_, nullptr))
      events->on_closed(*ended_);
  }

  sim_network& net_;
  std::string here_;
  std::string there_;
  std::weak_ptr<sim_connection> peer_;
  std::shared_ptr<detail::link_connection_events> events_;
  std::vector<bytes> early_;
  std::deque<std::optional<bytes>> outgoing_; ///< nothing: the end
  std::optional<std::string> ended_;
  std::uint64_t limit_ = detail::handshake_batch_bytes;
  bool open_ = true;
  bool turn_posted_ = false;
};

class sim_transport final : public detail::link_transport {
public:
  sim_transport(sim_network& net, std::string host) : net_(net), host_(std::move(host)) {}
  ~sim_transport() override { stop(); }

  detail::endpoint listen(const std::string& host, std::uint16_t port, accept_handler accepted) override {
    if (port_ != 0)
      throw configuration_error{"this transport listens already"};
    const auto bound = port != 0 ? port : net_.next_port_++;
    if (!net_.listeners_.emplace(std::pair{host_, bound}, this).second)
      throw configuration_error{"port " + std::to_string(bound) + " of \"" + host + "\" is taken"};
    accepted_ = std::make_shared<accept_handler>(std::move(accepted));
    port_ = bound;
    return {"sim", host_, port_};
  }
  void connect(const detail::endpoint& where, std::uint32_t timeout_ms, connect_handler done) override {
    auto handler = std::make_shared<connect_handler>(std::move(done));
    const auto fail = [handler, where, stopped = stopped_] {
      (*handler)(error{error_kind::unavailable, "nobody answers at " + to_string(where)});
    };
    if (*stopped_ || net_.blocked(host_, where.host) || net_.blocked(where.host, host_)) {
      net_.hooks_.post_after(*stopped_ ? steady_duration::zero() : std::chrono::milliseconds{timeout_ms}, fail);
      return;
    }
    net_.hooks_.post_after(net_.delay(), [this, stopped = stopped_, where, handler, fail] {
      const auto found = net_.listeners_.find({where.host, where.port});
      if (*stopped || found == net_.listeners_.end()) {
        fail();
        return;
      }
      const auto mine = make_end(host_, where.host);
      const auto theirs = make_end(where.host, host_);
      mine->join(theirs);
      theirs->join(mine);
      keep(mine);
      found->second->keep(theirs);
      net_.hooks_.post([accepted = found->second->accepted_, theirs] { (*accepted)(theirs); });
      (*handler)(std::shared_ptr<detail::link_connection>{mine});
    });
  }
  void stop() override {
    if (std::exchange(*stopped_, true))
      return;
    if (port_ != 0)
      net_.listeners_.erase({host_, port_});
    for (const auto& connection : own_)
      connection->close();
  }

private:
  std::shared_ptr<sim_connection> make_end(const std::string& here, const std::string& there) {
    return std::make_shared<sim_connection>(net_, here, there);
  }
  void keep(const std::shared_ptr<sim_connection>& connection) {
    std::erase_if(own_, [](const auto& one) { return one->ended(); });
    std::erase_if(net_.connections_, [](const auto& one) { return one.expired(); });
    own_.push_back(connection);
    net_.connections_.push_back(connection);
  }

  sim_network& net_;
  std::string host_;
  std::uint16_t port_ = 0;
  std::shared_ptr<accept_handler> accepted_;
  std::shared_ptr<bool> stopped_ = std::make_shared<bool>(false);
  std::vector<std::shared_ptr<sim_connection>> own_; ///< until they have ended
};

inline sim_network::sim_network(sim_hooks hooks, steady_duration max_link_delay)
  : hooks_(std::move(hooks)), max_delay_(max_link_delay) {}

inline std::shared_ptr<detail::link_transport> sim_network::make_transport(std::string host) {
  return std::make_shared<sim_transport>(*this, std::move(host));
}

inline bool sim_network::blocked(const std::string& from, const std::string& to) const {
  return frozen_.contains(from) || frozen_.contains(to) || cuts_.contains({from, to});
}

inline steady_duration sim_network::delay() {
  return max_delay_ == steady_duration::zero()
           ? steady_duration::zero()
           : steady_duration{static_cast<std::int64_t>(hooks_.random() % static_cast<std::uint64_t>(max_delay_.count() + 1))};
}

inline void sim_network::cut(const std::string& a, const std::string& b) {
  cut_one_way(a, b);
  cut_one_way(b, a);
}

inline void sim_network::cut_one_way(const std::string& from, const std::string& to) { cuts_.emplace(from, to); }

inline void sim_network::heal(const std::string& a, const std::string& b) {
  cuts_.erase({a, b});
  cuts_.erase({b, a});
  resume();
}

inline void sim_network::lose_connections(const std::string& a, const std::string& b) {
  for (const auto& weak : connections_)
    if (const auto connection = weak.lock(); connection && connection->between(a, b))
      connection->lose("connection lost");
}

inline void sim_network::freeze(const std::string& host) { frozen_.insert(host); }

inline void sim_network::thaw(const std::string& host) {
  frozen_.erase(host);
  resume();
}

inline void sim_network::resume() {
  for (const auto& weak : connections_)
    if (const auto connection = weak.lock())
      for (auto n = connection->under_way(); n != 0; --n)
        hooks_.post([connection] { connection->arrive(); });
}

} // namespace zlink::test
