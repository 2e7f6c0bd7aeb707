#include "zlink/testing/sim_network.hpp"

#include <deque>
#include <optional>

namespace zlink::testing {

/// One end. What it sends waits in `outgoing_` until it has arrived, so the order is the queue's, whatever the delays.
class sim_connection final : public detail::link_connection, public std::enable_shared_from_this<sim_connection> {
public:
  sim_connection(sim_network& net, std::string here, std::string there)
    : net_(net), here_(std::move(here)), there_(std::move(there)) {}

  void join(const std::shared_ptr<sim_connection>& peer) { peer_ = peer; }
  bool between(const std::string& a, const std::string& b) const {
    return (here_ == a && there_ == b) || (here_ == b && there_ == a);
  }
  bool touches(const std::string& host) const { return here_ == host || there_ == host; }

  void start(std::shared_ptr<detail::link_connection_events> events) override {
    events_ = std::move(events);
    net_.post_at(here_, [self = shared_from_this()] {
      self->at_work_ = true;
      if (self->ended_)
        self->tell_closed();
      else
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

  /// The transport ends: nothing is called after this.
  void stop() {
    close();
    tell_closed();
  }
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
    if (!at_work_)
      early_.emplace_back(batch.begin(), batch.end());
    else if (batch.size() > limit_)
      close();
    else if (events_)
      again(events_->on_batch(batch));
  }
  void again(bool wanted) {
    if (!wanted || std::exchange(turn_posted_, true))
      return;
    net_.post_at(here_, [self = shared_from_this()] {
      self->turn_posted_ = false;
      if (self->events_ && self->open_)
        self->again(self->events_->on_turn());
    });
  }
  void end(std::string why) {
    if (ended_)
      return;
    ended_ = std::move(why);
    net_.post_at(here_, [self = shared_from_this()] { self->tell_closed(); });
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
  bool at_work_ = false; ///< from now on events are called
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
    accepted_ = std::move(accepted);
    port_ = bound;
    return {"sim", host_, port_};
  }

  void connect(const detail::endpoint& where, std::uint32_t timeout_ms, connect_handler done) override {
    const auto attempt = std::make_shared<pending>(pending{where, std::move(done)});
    if (*stopped_) {
      net_.post_at(host_, [attempt] { attempt->done(attempt->nobody_answers()); });
      return;
    }
    attempts_.push_back(attempt);
    if (cut_off(where))
      net_.call_after(std::chrono::milliseconds{timeout_ms}, [this, stopped = stopped_, attempt] {
        if (!*stopped)
          fail(attempt);
      });
    else
      net_.hooks_.post_after(net_.delay(), [this, stopped = stopped_, attempt] {
        if (!*stopped)
          join(attempt);
      });
  }

  void stop() override {
    if (std::exchange(*stopped_, true))
      return;
    const auto entry = net_.listeners_.find({host_, port_});
    if (entry != net_.listeners_.end() && entry->second == this)
      net_.listeners_.erase(entry);
    for (const auto& connection : own_)
      connection->stop();
    while (!attempts_.empty())
      fail(attempts_.front());
  }

private:
  struct pending {
    detail::endpoint where;
    connect_handler done;
    error nobody_answers() const { return {error_kind::unavailable, "nobody answers at " + to_string(where)}; }
  };
  using attempt_ptr = std::shared_ptr<pending>;

  bool cut_off(const detail::endpoint& where) const {
    return net_.blocked(host_, where.host) || net_.blocked(where.host, host_);
  }
  void end(const attempt_ptr& attempt, result<std::shared_ptr<detail::link_connection>> outcome) {
    if (std::erase(attempts_, attempt) != 0)
      attempt->done(std::move(outcome));
  }
  void fail(const attempt_ptr attempt) { end(attempt, attempt->nobody_answers()); }
  void join(const attempt_ptr& attempt) {
    const auto& where = attempt->where;
    const auto found = net_.listeners_.find({where.host, where.port});
    if (found == net_.listeners_.end() || cut_off(where)) {
      fail(attempt);
      return;
    }
    const auto mine = std::make_shared<sim_connection>(net_, host_, where.host);
    const auto theirs = std::make_shared<sim_connection>(net_, where.host, host_);
    mine->join(theirs);
    theirs->join(mine);
    keep(mine);
    found->second->keep(theirs);
    net_.post_at(where.host, [to = found->second, stopped = found->second->stopped_, theirs] {
      if (!*stopped)
        to->accepted_(theirs);
    });
    net_.post_at(host_, [this, stopped = stopped_, attempt, mine] {
      if (!*stopped)
        end(attempt, std::shared_ptr<detail::link_connection>{mine});
    });
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
  accept_handler accepted_;
  std::shared_ptr<bool> stopped_ = std::make_shared<bool>(false);
  std::vector<std::shared_ptr<sim_connection>> own_; ///< until they have ended
  std::vector<attempt_ptr> attempts_;                ///< connects under way
};

sim_network::sim_network(sim_hooks hooks, steady_duration max_link_delay)
  : hooks_(std::move(hooks)), max_delay_(max_link_delay) {}

std::shared_ptr<detail::link_transport> sim_network::make_transport(std::string host) {
  return std::make_shared<sim_transport>(*this, std::move(host));
}

bool sim_network::blocked(const std::string& from, const std::string& to) const {
  return frozen_.contains(from) || frozen_.contains(to) || cuts_.contains({from, to});
}

steady_duration sim_network::delay() {
  return max_delay_ == steady_duration::zero() ? steady_duration::zero()
                                               : steady_duration{static_cast<std::int64_t>(
                                                 hooks_.random() % static_cast<std::uint64_t>(max_delay_.count() + 1))};
}

void sim_network::post_at(const std::string& host, unique_function<void()> job) {
  if (hooks_.post_at)
    hooks_.post_at(host, std::move(job));
  else
    hooks_.post(std::move(job));
}

void sim_network::call_after(steady_duration delay, unique_function<void()> job) {
  if (hooks_.call_after)
    hooks_.call_after(delay, std::move(job));
  else
    hooks_.post_after(delay, std::move(job));
}

void sim_network::cut(const std::string& a, const std::string& b) {
  cut_one_way(a, b);
  cut_one_way(b, a);
}

void sim_network::cut_one_way(const std::string& from, const std::string& to) { cuts_.emplace(from, to); }

void sim_network::heal(const std::string& a, const std::string& b) {
  cuts_.erase({a, b});
  cuts_.erase({b, a});
  resume();
}

void sim_network::heal_all() {
  cuts_.clear();
  resume();
}

void sim_network::lose_connections(const std::string& a, const std::string& b) {
  for (const auto& weak : connections_)
    if (const auto connection = weak.lock(); connection && connection->between(a, b))
      connection->lose("connection lost");
}

void sim_network::freeze(const std::string& host) { frozen_.insert(host); }

void sim_network::thaw(const std::string& host) {
  frozen_.erase(host);
  resume();
}

void sim_network::remove(const std::string& host) {
  std::erase_if(listeners_, [&](const auto& entry) { return entry.first.first == host; });
  for (const auto& weak : connections_)
    if (const auto connection = weak.lock(); connection && connection->touches(host))
      connection->lose("the peer's process is gone");
}

void sim_network::resume() {
  for (const auto& weak : connections_)
    if (const auto connection = weak.lock())
      for (auto n = connection->under_way(); n != 0; --n)
        hooks_.post([connection] { connection->arrive(); });
}

} // namespace zlink::testing
