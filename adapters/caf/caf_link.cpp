#include "adapters/caf/caf_link.hpp"

#include "adapters/caf/edge_actor.hpp"

#include <caf/actor_cast.hpp>
#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/multiplexer.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/system_messages.hpp>

#if __has_include(<caf/openssl/manager.hpp>)
#include <caf/openssl/manager.hpp>
#define ZLINK_CAF_OPENSSL 1
#endif

#include <atomic>
#include <future>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace zlink::detail {

namespace {

// Between the actors of two ends; the batches themselves are std::vector<char>, which CAF copies as one piece.
constexpr caf::atom_value open_word = caf::atom("zl_open");
constexpr caf::atom_value accept_word = caf::atom("zl_accept");
constexpr caf::atom_value bye_word = caf::atom("zl_bye");
constexpr caf::atom_value late_word = caf::atom("zl_late");

bool is_word(const caf::type_erased_tuple& content, caf::atom_value word) {
  return content.match_elements<caf::atom_value>() && content.get_as<caf::atom_value>(0) == word;
}

void tell(const caf::strong_actor_ptr& whom, caf::strong_actor_ptr sender, caf::message what) {
  whom->enqueue(std::move(sender), caf::make_message_id(), std::move(what), nullptr);
}

/// Mutual TLS by CAF's own module; false unless all that it needs is configured.
bool is_protected(caf::actor_system& system) {
  const auto& config = system.config();
  return system.has_openssl_manager() && !config.openssl_certificate.empty() && !config.openssl_key.empty()
         && !(config.openssl_cafile.empty() && config.openssl_capath.empty());
}

/// Who makes sockets for that host.
caf::io::middleman_actor broker_for(caf::actor_system& system, const std::string& host) {
#ifdef ZLINK_CAF_OPENSSL
  if (!is_loopback(host))
    return system.openssl_manager().actor_handle();
#endif
  (void)host;
  return system.middleman().actor_handle();
}

class caf_transport;

/// One end of a link: an actor here, an actor or a proxy there. Except where stated, everything happens on the
/// middleman's thread.
class caf_connection final : public link_connection,
                             public edge_handler,
                             public std::enable_shared_from_this<caf_connection> {
public:
  caf_connection(caf::actor_system& system, std::string address)
    : backend_(system.middleman().backend()), system_(system), address_(std::move(address)) {}

  /// Accepted: `peer` asked for it.
  void join(const caf::strong_actor_ptr& peer) {
    self_ = edge_actor::make(system_, shared_from_this());
    set_peer(peer);
    tell(peer_, self_, caf::make_message(accept_word));
  }
  /// Asks the middleman for the actor at `host` and `port`, then that actor for a connection.
  void connect(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout,
               link_transport::connect_handler done) {
    self_ = edge_actor::make(system_, shared_from_this());
    connected_ = std::move(done);
    system_.clock().schedule_message(system_.clock().now() + timeout, self_,
                                     caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, late_word));
    const auto broker = caf::actor_cast<caf::strong_actor_ptr>(broker_for(system_, host));
    broker->enqueue(self_, caf::make_message_id(1), caf::make_message(caf::connect_atom::value, host, port), nullptr);
  }

  // -- link_connection: any thread ------------------------------------------------------------------------------------

  void start(std::shared_ptr<link_connection_events> events) override {
    backend_.post([self = shared_from_this(), events = std::move(events)]() mutable {
      const auto early = std::exchange(self->early_, {});
      self->events_ = events;
      for (const auto& batch : early)
        self->receive(batch);
      if (!self->open_) // since before the start: nobody has been told
        self->tell_closed();
    });
  }
  void write(bytes batch) override {
    const auto* first = reinterpret_cast<const char*>(batch.data());
    backend_.post([self = shared_from_this(),
                   what = caf::make_message(std::vector<char>(first, first + batch.size()))]() mutable {
      if (!self->open_)
        return;
      tell(self->peer_, nullptr, std::move(what));
      // Behind the job with which CAF puts that message on the wire: what gathers until then makes the next batch.
      self->backend_.post([self] {
        if (self->open_ && self->events_)
          self->events_->on_writable();
      });
    });
  }
  void limit_batches(std::uint64_t largest) override { limit_.store(largest, std::memory_order_relaxed); }
  void close() override {
    backend_.post([self = shared_from_this()] { self->finish("closed here", true); });
  }
  std::string peer_address() const override { return address_; }

  // -- edge_handler ---------------------------------------------------------------------------------------------------

  void on_message(caf::mailbox_element& element) override {
    const auto& content = element.content();
    if (content.match_elements<std::vector<char>>()) {
      const auto& batch = content.get_as<std::vector<char>>(0);
      if (open_)
        receive({reinterpret_cast<const std::byte*>(batch.data()), batch.size()});
    } else if (content.match_elements<caf::down_msg>()) {
      on_down(content.get_as<caf::down_msg>(0));
    } else if (is_word(content, bye_word)) {
      finish("closed by the peer", false);
    } else if (connected_) {
      on_connecting(element);
    }
  }

  void finish(const std::string& why, bool tell_peer) {
    if (connected_)
      std::exchange(connected_, nullptr)(error{error_kind::unavailable, "no link to " + address_ + ": " + why});
    if (ended_)
      return;
    ended_ = true;
    if (open_ && tell_peer)
      tell(peer_, nullptr, caf::make_message(bye_word));
    open_ = false;
    closed_ = why;
    peer_ = nullptr;
    server_ = nullptr;
    edge_actor::end(std::exchange(self_, nullptr));
    tell_closed();
  }
  bool ended() const noexcept { return ended_; }

private:
  void set_peer(const caf::strong_actor_ptr& peer) {
    peer_ = peer;
    open_ = true;
    monitor(peer_, self_);
  }
  void on_connecting(caf::mailbox_element& element) {
    const auto& content = element.content();
    if (element.mid.is_response()) {
      if (!content.match_elements<caf::node_id, caf::strong_actor_ptr, std::set<std::string>>()
          || !content.get_as<caf::strong_actor_ptr>(1)) {
        finish(content.match_elements<caf::error>() ? system_.render(content.get_as<caf::error>(0))
                                                    : "no link endpoint there",
               false);
        return;
      }
      server_ = content.get_as<caf::strong_actor_ptr>(1);
      monitor(server_, self_);
      tell(server_, self_, caf::make_message(open_word));
    } else if (is_word(content, accept_word) && element.sender) {
      server_ = nullptr;
      set_peer(element.sender);
      std::exchange(connected_, nullptr)(std::shared_ptr<link_connection>{shared_from_this()});
    } else if (is_word(content, late_word)) {
      finish("no answer in time", false);
    }
  }
  void on_down(const caf::down_msg& down) {
    const auto from = [&](const caf::strong_actor_ptr& whom) { return whom && whom->address() == down.source; };
    if (from(peer_) || from(server_))
      finish("connection lost", false);
  }
  void receive(byte_view batch) {
    if (!events_)
      early_.emplace_back(batch.begin(), batch.end());
    else if (batch.size() > limit_.load(std::memory_order_relaxed))
      finish("a batch of " + std::to_string(batch.size()) + " bytes exceeds the limit", true);
    else
      again(events_->on_batch(batch));
  }
  void tell_closed() {
    if (const auto events = std::exchange(events_, nullptr))
      events->on_closed(closed_);
  }
  /// The next turn comes behind what other connections have to do.
  void again(bool wanted) {
    if (!wanted || std::exchange(turn_posted_, true))
      return;
    backend_.post([self = shared_from_this()] {
      self->turn_posted_ = false;
      if (self->open_ && self->events_)
        self->again(self->events_->on_turn());
    });
  }

  caf::io::network::multiplexer& backend_;
  caf::actor_system& system_;
  const std::string address_;
  std::atomic<std::uint64_t> limit_{handshake_batch_bytes};

  caf::strong_actor_ptr self_;
  caf::strong_actor_ptr peer_;
  caf::strong_actor_ptr server_; ///< while connecting
  link_transport::connect_handler connected_;
  std::shared_ptr<link_connection_events> events_;
  std::vector<bytes> early_; ///< before `start`
  std::string closed_;
  bool open_ = false;
  bool ended_ = false;
  bool turn_posted_ = false;
};

class caf_transport final : public link_transport, public std::enable_shared_from_this<caf_transport> {
public:
  explicit caf_transport(caf::actor_system& system) : system_(system), backend_(system.middleman().backend()) {}
  ~caf_transport() override { stop(); }

  endpoint listen(const std::string& host, std::uint16_t port, accept_handler accepted) override;
  void connect(const endpoint& where, std::uint32_t timeout_ms, connect_handler done) override;
  void stop() override;

private:
  /// The published actor: whoever asks gets a connection of its own.
  class door final : public edge_handler {
  public:
    door(std::weak_ptr<caf_transport> home, accept_handler accepted)
      : home_(std::move(home)), accepted_(std::move(accepted)) {}
    void on_message(caf::mailbox_element& element) override {
      const auto home = home_.lock();
      if (!home || home->stopped_ || !element.sender || !is_word(element.content(), open_word))
        return;
      const auto made = home->make_connection("caf peer " + caf::to_string(element.sender->node()));
      made->join(element.sender);
      accepted_(made);
    }

  private:
    std::weak_ptr<caf_transport> home_;
    accept_handler accepted_;
  };

  std::shared_ptr<caf_connection> make_connection(std::string address) {
    auto made = std::make_shared<caf_connection>(system_, std::move(address));
    std::erase_if(connections_, [](const auto& one) { return one->ended(); });
    connections_.push_back(made);
    return made;
  }
  /// Nobody can connect any more when this returns, except on the middleman's thread, which must not wait for itself.
  void close_door();
  bool here() const { return std::this_thread::get_id() == backend_.thread_id(); }
  /// Runs `job` on the middleman's thread and waits for it.
  template <class F>
  void run_there(F job) {
    if (here()) {
      job();
      return;
    }
    std::promise<void> done;
    backend_.post([&] {
      job();
      done.set_value();
    });
    done.get_future().wait();
  }

  caf::actor_system& system_;
  caf::io::network::multiplexer& backend_;
  caf::strong_actor_ptr door_;
  endpoint bound_;
  std::atomic<bool> stop_begun_{false};
  // The middleman's thread only.
  std::vector<std::shared_ptr<caf_connection>> connections_;
  bool stopped_ = false;
};

endpoint caf_transport::listen(const std::string& host, std::uint16_t port, accept_handler accepted) {
  if (!is_loopback(host) && !is_protected(system_))
    throw configuration_error{
      "links over CAF remoting listen on \"" + host
      + "\", which is not loopback: CAF's openssl module with certificate, key and CA is required; "
        "load and configure it, or use transport tcp"};
  if (door_)
    throw configuration_error{"this transport listens already, at " + to_string(bound_)};
  door_ = edge_actor::make(system_, std::make_shared<door>(weak_from_this(), std::move(accepted)));
  const auto address = host == "localhost" ? std::string{"127.0.0.1"} : host;
  caf::scoped_actor self{system_};
  caf::error failed;
  self
    ->request(broker_for(system_, host), caf::infinite, caf::publish_atom::value, port, door_, std::set<std::string>{},
              address, false)
    .receive([&](std::uint16_t found) { port = found; }, [&](caf::error& why) { failed = std::move(why); });
  if (failed) {
    edge_actor::end(std::exchange(door_, nullptr));
    throw configuration_error{"cannot listen on " + to_string(endpoint{"caf", host, port}) + ": "
                              + system_.render(failed)};
  }
  // CAF opens the port by a message to its broker. A port that is closed before that has been handled would be leaked.
  run_there([] {});
  bound_ = {"caf", host, port};
  return bound_;
}

void caf_transport::connect(const endpoint& where, std::uint32_t timeout_ms, connect_handler done) {
  backend_.post([self = shared_from_this(), where, timeout_ms, done = std::move(done)]() mutable {
    if (self->stopped_)
      done(error{error_kind::unavailable, "the transport has stopped"});
    else if (!is_loopback(where.host) && !is_protected(self->system_))
      done(error{error_kind::not_configured,
                 to_string(where) + " is not loopback: links over CAF remoting need CAF's openssl module there"});
    else
      self->make_connection(to_string(where))
        ->connect(where.host, where.port, std::chrono::milliseconds{timeout_ms}, std::move(done));
  });
}

void caf_transport::close_door() {
  const auto broker = broker_for(system_, bound_.host);
  auto address = caf::actor_cast<caf::actor_addr>(door_);
  if (here()) {
    tell(caf::actor_cast<caf::strong_actor_ptr>(broker), nullptr,
         caf::make_message(caf::unpublish_atom::value, std::move(address), bound_.port));
  } else {
    caf::scoped_actor self{system_};
    self->request(broker, caf::infinite, caf::unpublish_atom::value, std::move(address), bound_.port)
      .receive([] {}, [](caf::error&) {});
  }
  edge_actor::end(std::exchange(door_, nullptr));
}

void caf_transport::stop() {
  if (stop_begun_.exchange(true))
    return;
  if (door_)
    close_door();
  run_there([this] {
    stopped_ = true;
    for (const auto& connection : std::exchange(connections_, {}))
      connection->finish("the transport has stopped", true);
  });
}

} // namespace

std::shared_ptr<link_transport> make_caf_link(caf::actor_system& system) {
  return std::make_shared<caf_transport>(system);
}

} // namespace zlink::detail
