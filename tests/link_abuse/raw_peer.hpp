// A socket that says what a test wants, and two honest nodes beside it.
#pragma once

#include "adapters/tcp/frames.hpp"
#include "adapters/tcp/tcp_link.hpp"
#include "tests/links/poll.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zlink::test {

class raw_peer {
public:
  explicit raw_peer(std::uint16_t port);
  ~raw_peer();
  raw_peer(raw_peer&& other) noexcept;
  raw_peer& operator=(raw_peer&&) = delete;

  /// As it is; what the other end does not take is dropped.
  void send(byte_view what);
  /// With its length before it.
  void send_batch(byte_view batch);
  /// Sends without reading until the socket takes no more, or until so many bytes have gone.
  std::size_t flood(byte_view what, std::size_t most);
  /// One batch; empty if the connection ends before, or after a minute.
  bytes receive_batch();
  /// The other end has closed, at once or in a minute; reads what comes before.
  bool closed_by_the_other();
  /// An honest handshake. True: admitted.
  bool greet(const detail::handshake_settings& settings);

private:
  bool receive(std::byte* to, std::size_t count);
  int socket_ = -1;
};

/// Counts batches and tells how it ended.
class counting_events final : public detail::link_connection_events {
public:
  bool on_batch(byte_view batch) override {
    ++batches;
    bytes_in += batch.size();
    return false;
  }
  bool on_turn() override { return false; }
  void on_writable() override { ++writable; }
  void on_closed(std::string) override { ++closed; }
  std::atomic<int> batches{0};
  std::atomic<std::size_t> bytes_in{0};
  std::atomic<int> writable{0};
  std::atomic<int> closed{0};
};

/// A node that listens for everybody, and another with an honest link to it.
class honest_pair {
public:
  explicit honest_pair(detail::tcp_link_options options = {});
  ~honest_pair();

  std::uint16_t port() const { return where_.port; }
  detail::tcp_link& listening() { return *listening_; }
  const detail::handshake_settings& settings() const { return settings_; }
  std::vector<link_refusal> told();
  /// A batch goes over the honest link and arrives.
  bool works();
  /// All of the others are gone.
  bool alone() { return poll_until([this] { return listening_->connections() == 1; }); }
  /// Connections that the listening end has admitted so far: a peer may know of it first.
  std::size_t accepted();
  /// The listening end of the last connection that was admitted.
  std::shared_ptr<detail::link_connection> last_accepted();
  std::shared_ptr<counting_events> last_events();

  static constexpr const char* secret = "all nodes of the mesh know this";

private:
  detail::handshake_settings settings_{"mesh", secret};
  std::mutex mutex_;
  std::vector<link_refusal> told_;
  std::vector<std::shared_ptr<detail::link_connection>> accepted_;
  std::vector<std::shared_ptr<counting_events>> events_;
  std::shared_ptr<detail::tcp_link> listening_;
  std::shared_ptr<detail::tcp_link> dialling_;
  detail::endpoint where_;
  std::shared_ptr<detail::link_connection> link_;
  std::shared_ptr<counting_events> own_ = std::make_shared<counting_events>();
  std::shared_ptr<counting_events> theirs_;
};

} // namespace zlink::test
