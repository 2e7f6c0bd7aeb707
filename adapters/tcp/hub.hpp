// All sockets of one transport: who listens, who is being dialled, which connections there are, and how many there may be.
// Everything happens on the transport's thread, except where stated.
#pragma once

#include "adapters/tcp/refusals.hpp"
#include "adapters/tcp/tcp_connection.hpp"
#include "adapters/tcp/tcp_link.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <list>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace zlink::detail {

class tcp_hub final : public connection_home, public std::enable_shared_from_this<tcp_hub> {
public:
  tcp_hub(tcp_link_options options, std::shared_ptr<io_thread> io);

  /// Any thread, before `accept`: binds, and says where. Throws `configuration_error`.
  endpoint bind(const std::string& host, std::uint16_t port);
  void accept(link_transport::accept_handler accepted);
  void connect(const endpoint& where, std::chrono::milliseconds timeout, link_transport::connect_handler done);
  /// Ends everything; `done` is called when nothing is left.
  void stop(unique_function<void()> done);

  void refused(tcp_connection& connection, refusal why, const std::string& detail) override;
  void gone(tcp_connection& connection) override;

  const refusals& refused() const noexcept { return refused_; }
  const tls_context* tls() const noexcept { return tls_.get(); }
  std::size_t connections() const noexcept { return open_.load(std::memory_order_relaxed); }

private:
  using tcp = boost::asio::ip::tcp;
  /// A connect that is under way.
  struct dial;

  void accept_next();
  void accepted(const boost::system::error_code& failed, tcp::socket socket);
  void make_room();
  std::shared_ptr<tcp_connection> make(tcp::socket socket, handshake::side side, const endpoint* dialled);
  void resolve(const std::shared_ptr<dial>& what);
  void reach(const std::shared_ptr<dial>& what, const std::vector<tcp::endpoint>& where);
  void greet(const std::shared_ptr<dial>& what);
  void end_dial(const std::shared_ptr<dial>& what, result<std::shared_ptr<link_connection>> outcome);
  void look_for_end();
  handshake_nonce new_nonce();

  const tcp_link_options options_;
  const handshake_settings settings_;
  const std::shared_ptr<io_thread> io_;
  const std::unique_ptr<const tls_context> tls_;
  refusals refused_;
  std::atomic<std::size_t> open_{0};

  tcp::acceptor acceptor_;
  boost::asio::steady_timer accept_again_;
  link_transport::accept_handler accepted_;
  std::unordered_map<tcp_connection*, std::shared_ptr<tcp_connection>> all_;
  std::list<tcp_connection*> greeting_; ///< of those accepted, the oldest first
  std::size_t accepted_count_ = 0;      ///< of `all_`
  std::unordered_set<std::shared_ptr<dial>> dials_;
  bool stopped_ = false;
  unique_function<void()> ended_;
};

} // namespace zlink::detail
