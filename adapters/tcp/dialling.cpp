// The hub's side of dialling: a name becomes addresses, one of them a connection, the connection a link.
#include "adapters/tcp/hub.hpp"

#include <boost/asio/connect.hpp>

#include <stdexcept>
#include <utility>
#include <vector>

namespace zlink::detail {

struct tcp_hub::dial {
  dial(boost::asio::io_context& context, endpoint to, link_transport::connect_handler then)
    : where(std::move(to)), done(std::move(then)), timer(context), resolver(context), socket(context) {}

  const endpoint where;
  link_transport::connect_handler done;
  boost::asio::steady_timer timer;
  tcp::resolver resolver;
  tcp::socket socket;
};

void tcp_hub::connect(const endpoint& where, std::chrono::milliseconds timeout, link_transport::connect_handler done) {
  if (stopped_) {
    done(error{error_kind::unavailable, "the transport has stopped"});
    return;
  }
  if (where.scheme != "tcp") {
    done(error{error_kind::not_configured, to_string(where) + " is no address of transport tcp"});
    return;
  }
  if (!tls_ && !is_loopback(where.host)) {
    done(error{error_kind::not_configured, to_string(where) + " is not loopback: links over TCP need tls there"});
    return;
  }
  auto made = std::make_shared<dial>(io_->context(), where, std::move(done));
  dials_.insert(made);
  made->timer.expires_after(timeout);
  made->timer.async_wait([self = shared_from_this(), made](const boost::system::error_code& failed) {
    if (!failed)
      self->end_dial(made, error{error_kind::unavailable, "no link to " + to_string(made->where) + ": no answer in time"});
  });
  resolve(made);
}

void tcp_hub::resolve(const std::shared_ptr<dial>& what) {
  const auto host = what->where.host == "localhost" ? std::string{"127.0.0.1"} : what->where.host;
  boost::system::error_code is_name;
  if (const auto address = boost::asio::ip::make_address(host, is_name); !is_name) {
    reach(what, {tcp::endpoint{address, what->where.port}});
    return;
  }
  what->resolver.async_resolve(
    host, std::to_string(what->where.port), tcp::resolver::numeric_service,
    [self = shared_from_this(), what](const boost::system::error_code& failed, const tcp::resolver::results_type& found) {
      if (failed) {
        self->end_dial(what, error{error_kind::unavailable, "no link to " + to_string(what->where) + ": " + failed.message()});
        return;
      }
      std::vector<tcp::endpoint> all;
      for (const auto& one : found)
        all.push_back(one.endpoint());
      self->reach(what, all);
    });
}

void tcp_hub::reach(const std::shared_ptr<dial>& what, const std::vector<tcp::endpoint>& where) {
  if (!what->done)
    return; // it has ended meanwhile
  boost::asio::async_connect(what->socket, where,
                             [self = shared_from_this(), what](const boost::system::error_code& failed, const tcp::endpoint&) {
                               if (!failed)
                                 self->greet(what);
                               else
                                 self->end_dial(what, error{error_kind::unavailable,
                                                            "no link to " + to_string(what->where) + ": " + failed.message()});
                             });
}

void tcp_hub::greet(const std::shared_ptr<dial>& what) {
  if (!what->done)
    return;
  std::shared_ptr<tcp_connection> made;
  try {
    made = make(std::move(what->socket), handshake::side::dialling, &what->where);
  } catch (const std::runtime_error& impossible) { // TLS cannot look for such a host
    end_dial(what, error{error_kind::not_configured, "no link to " + to_string(what->where) + ": " + impossible.what()});
    return;
  }
  const auto deadline = what->timer.expiry();
  what->timer.cancel(); // the connection's own goes on
  made->greet(deadline, [this, what, one = made.get()](std::optional<error> failed) {
    if (failed)
      end_dial(what, std::move(*failed));
    else
      end_dial(what, one->hand_out());
  });
}

void tcp_hub::end_dial(const std::shared_ptr<dial>& what, result<std::shared_ptr<link_connection>> outcome) {
  if (!what->done)
    return;
  boost::system::error_code ignored;
  what->timer.cancel();
  what->resolver.cancel();
  what->socket.close(ignored);
  dials_.erase(what);
  std::exchange(what->done, nullptr)(std::move(outcome));
}

} // namespace zlink::detail
