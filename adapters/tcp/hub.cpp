#include "adapters/tcp/hub.hpp"

#include <algorithm>
#include <utility>

namespace zlink::detail {

namespace {

/// When the process has no descriptor left: a listener that asks again at once would do nothing else.
constexpr std::chrono::milliseconds accept_pause{100};

template <class T>
std::shared_ptr<T> or_default(std::shared_ptr<T> given, auto make) {
  return given ? std::move(given) : make();
}

void set_options(boost::asio::ip::tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(boost::asio::ip::tcp::no_delay{true}, ignored); // batches are made above
}

} // namespace

tcp_hub::tcp_hub(tcp_link_options options, std::shared_ptr<io_thread> io)
  : options_(std::move(options)), settings_{options_.mesh, options_.secret}, io_(std::move(io)),
    tls_(options_.tls ? std::make_unique<const tls_context>(*options_.tls) : nullptr),
    refused_(options_.mesh, options_.on_refused,
             or_default(options_.time, [] { return std::make_shared<const system_clock>(); })),
    acceptor_(io_->context()), accept_again_(io_->context()) {}

// -- the door ---------------------------------------------------------------------------------------------------------

endpoint tcp_hub::bind(const std::string& host, std::uint16_t port) {
  boost::system::error_code failed;
  const auto where = to_string(endpoint{"tcp", host, port});
  const auto check = [&] {
    if (!failed)
      return;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    throw configuration_error{"cannot listen on " + where + ": " + failed.message()};
  };
  tcp::resolver resolver{io_->context()};
  const auto found = resolver.resolve(host == "localhost" ? "127.0.0.1" : host, std::to_string(port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, failed);
  check();
  const auto address = found.begin()->endpoint();
  acceptor_.open(address.protocol(), failed);
  check();
  acceptor_.set_option(tcp::acceptor::reuse_address{true}, failed);
  acceptor_.bind(address, failed);
  check();
  acceptor_.listen(tcp::acceptor::max_listen_connections, failed);
  check();
  return {"tcp", host, acceptor_.local_endpoint().port()};
}

void tcp_hub::accept(link_transport::accept_handler accepted) {
  accepted_ = std::move(accepted);
  accept_next();
}

void tcp_hub::accept_next() {
  if (stopped_)
    return;
  acceptor_.async_accept([self = shared_from_this()](const boost::system::error_code& failed, tcp::socket socket) {
    self->accepted(failed, std::move(socket));
  });
}

void tcp_hub::accepted(const boost::system::error_code& failed, tcp::socket socket) {
  if (stopped_)
    return;
  if (failed && failed != boost::asio::error::connection_aborted) {
    accept_again_.expires_after(accept_pause);
    accept_again_.async_wait([self = shared_from_this()](const boost::system::error_code&) { self->accept_next(); });
    return;
  }
  if (!failed) {
    make_room();
    const auto made = make(std::move(socket), handshake::side::listening, nullptr);
    if (accepted_count_ >= options_.connections) {
      ++accepted_count_;
      made->refuse(refusal::crowded);
    } else {
      ++accepted_count_;
      greeting_.push_back(made.get());
      made->greet(tcp_connection::time_point::clock::now() + options_.handshake_timeout,
                  [this, one = made.get()](std::optional<error> why_not) {
                    greeting_.remove(one);
                    if (!why_not)
                      accepted_(one->hand_out());
                  });
    }
  }
  accept_next();
}

/// Those who only hold a place lose it to those who come: a handshake takes milliseconds.
void tcp_hub::make_room() {
  if (greeting_.size() >= std::max(options_.handshakes, 1u))
    greeting_.front()->refuse(refusal::crowded);
}

std::shared_ptr<tcp_connection> tcp_hub::make(tcp::socket socket, handshake::side side, const endpoint* dialled) {
  set_options(socket);
  boost::system::error_code unknown;
  const auto remote = socket.remote_endpoint(unknown);
  const auto address = unknown ? std::string{"unknown"} : remote.address().to_string();
  tcp_connection::origin from;
  from.io = io_;
  from.home = shared_from_this();
  from.peer = dialled != nullptr ? to_string(*dialled) : address;
  from.address = dialled != nullptr ? from.peer : to_string(endpoint{"tcp", address, remote.port()});
  from.side = side;
  from.settings = &settings_;
  from.nonce = new_nonce();
  auto tls = tls_ ? std::make_unique<tls_session>(*tls_, side, dialled != nullptr ? dialled->host : std::string{}) : nullptr;
  auto made = std::make_shared<tcp_connection>(std::move(from), byte_stream{std::move(socket), std::move(tls)});
  all_.emplace(made.get(), made);
  open_.store(all_.size(), std::memory_order_relaxed);
  return made;
}

handshake_nonce tcp_hub::new_nonce() {
  handshake_nonce made;
  system_random system;
  auto& random = options_.random ? *options_.random : system;
  for (std::size_t i = 0; i < made.size(); i += sizeof(std::uint64_t)) {
    auto bits = random.next();
    for (std::size_t k = 0; k < sizeof bits; ++k, bits >>= 8)
      made[i + k] = static_cast<std::byte>(bits);
  }
  return made;
}

// -- what connections say ---------------------------------------------------------------------------------------------

void tcp_hub::refused(tcp_connection& connection, refusal why, const std::string& detail) {
  refused_.note(connection.peer(), why, detail);
}

void tcp_hub::gone(tcp_connection& connection) {
  if (!connection.dialled())
    --accepted_count_;
  all_.erase(&connection);
  open_.store(all_.size(), std::memory_order_relaxed);
  look_for_end();
}

// -- the end ----------------------------------------------------------------------------------------------------------

void tcp_hub::stop(unique_function<void()> done) {
  ended_ = std::move(done);
  stopped_ = true;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  accept_again_.cancel();
  accepted_ = nullptr;
  for (const auto& one : std::unordered_set{dials_})
    end_dial(one, error{error_kind::unavailable, "the transport has stopped"});
  std::vector<std::shared_ptr<tcp_connection>> ending;
  for (const auto& [address, one] : all_)
    ending.push_back(one);
  for (const auto& one : ending)
    one->finish("the transport has stopped", true);
  look_for_end();
}

void tcp_hub::look_for_end() {
  if (stopped_ && all_.empty() && ended_)
    std::exchange(ended_, nullptr)();
}

} // namespace zlink::detail
