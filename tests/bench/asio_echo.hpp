// A bare Boost.Asio echo: what the machine can do with a byte that goes there and comes back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace bench {

using boost::asio::ip::tcp;

/// Echoes to whoever connects, on a thread of its own, until the process ends.
class echo_server {
public:
  echo_server() {
    accept();
    std::thread{[this] { context_.run(); }}.detach();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

private:
  struct session : std::enable_shared_from_this<session> {
    explicit session(tcp::socket s) : socket(std::move(s)) { socket.set_option(tcp::no_delay{true}); }
    void read() {
      socket.async_read_some(boost::asio::buffer(data), [self = shared_from_this()](auto failed, std::size_t count) {
        if (!failed)
          self->write(count);
      });
    }
    void write(std::size_t count) {
      boost::asio::async_write(socket, boost::asio::buffer(data, count), [self = shared_from_this()](auto failed, std::size_t) {
        if (!failed)
          self->read();
      });
    }
    tcp::socket socket;
    std::array<char, 4096> data{};
  };
  void accept() {
    acceptor_.async_accept([this](auto failed, tcp::socket socket) {
      if (!failed)
        std::make_shared<session>(std::move(socket))->read();
      accept();
    });
  }
  boost::asio::io_context context_;
  tcp::acceptor acceptor_{context_, {boost::asio::ip::address_v4::loopback(), 0}};
};

/// How long each of so many round trips of 64 bytes took, in microseconds.
inline std::vector<double> echo_times(std::uint16_t port, int count) {
  boost::asio::io_context context;
  tcp::socket socket{context};
  socket.connect({boost::asio::ip::address_v4::loopback(), port});
  socket.set_option(tcp::no_delay{true});
  std::array<char, 64> data{};
  std::vector<double> took;
  for (int i = 0; i < count; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    boost::asio::write(socket, boost::asio::buffer(data));
    boost::asio::read(socket, boost::asio::buffer(data));
    took.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count());
  }
  return took;
}

} // namespace bench
