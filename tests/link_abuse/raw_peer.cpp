#include "tests/link_abuse/raw_peer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace zlink::test {

using namespace zlink::detail;

namespace {

constexpr int patience_ms = 60'000;

bool wait_for(int socket, short what) {
  pollfd one{socket, what, 0};
  return ::poll(&one, 1, patience_ms) == 1;
}

} // namespace

raw_peer::raw_peer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
}

raw_peer::~raw_peer() {
  if (socket_ >= 0)
    ::close(socket_);
}

raw_peer::raw_peer(raw_peer&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

void raw_peer::send(byte_view what) {
  while (!what.empty()) {
    const auto sent = ::send(socket_, what.data(), what.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return;
    what = what.subspan(static_cast<std::size_t>(sent));
  }
}

void raw_peer::send_batch(byte_view batch) {
  const auto length = encode_length(static_cast<std::uint32_t>(batch.size()));
  bytes whole{length.begin(), length.end()};
  whole.insert(whole.end(), batch.begin(), batch.end());
  send(whole);
}

std::size_t raw_peer::flood(byte_view what, std::size_t most) {
  std::size_t sent = 0;
  while (sent < most) {
    const auto now = ::send(socket_, what.data(), what.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now <= 0)
      return sent;
    sent += static_cast<std::size_t>(now);
  }
  return sent;
}

bool raw_peer::receive(std::byte* to, std::size_t count) {
  while (count != 0) {
    const auto got = wait_for(socket_, POLLIN) ? ::recv(socket_, to, count, 0) : 0;
    if (got <= 0)
      return false;
    to += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

bytes raw_peer::receive_batch() {
  std::array<std::byte, length_bytes> header;
  if (!receive(header.data(), header.size()))
    return {};
  std::size_t length = 0;
  for (std::size_t i = header.size(); i-- > 0;)
    length = length << 8 | std::to_integer<std::size_t>(header[i]);
  bytes batch(length);
  return receive(batch.data(), length) ? batch : bytes{};
}

bool raw_peer::closed_by_the_other() {
  std::array<std::byte, 4096> nobody;
  while (wait_for(socket_, POLLIN))
    if (::recv(socket_, nobody.data(), nobody.size(), 0) <= 0)
      return true;
  return false;
}

bool raw_peer::greet(const handshake_settings& settings) {
  handshake own{handshake::side::dialling, settings, handshake_nonce{std::byte{7}}, {}};
  send_batch(own.begin());
  for (;;) {
    const auto step = own.on_message(receive_batch());
    if (step.admitted || step.refused != refusal::none)
      return step.admitted;
    send_batch(step.answer);
  }
}

honest_pair::honest_pair(tcp_link_options options) {
  options.mesh = settings_.mesh;
  options.secret = settings_.secret;
  auto quiet = options;
  quiet.on_refused = [](const link_refusal&) {};
  options.on_refused = [this](const link_refusal& what) {
    std::lock_guard guard{mutex_};
    told_.push_back(what);
  };
  listening_ = make_tcp_link(std::move(options));
  dialling_ = make_tcp_link(std::move(quiet));
  where_ = listening_->listen("127.0.0.1", 0, [this](auto made) {
    auto events = std::make_shared<counting_events>();
    made->start(events);
    std::lock_guard guard{mutex_};
    accepted_.push_back(std::move(made));
    events_.push_back(std::move(events));
  });
  dialling_->connect(where_, 20'000, [this](auto made) {
    std::lock_guard guard{mutex_};
    link_ = std::move(made.value());
  });
  REQUIRE(poll_until([this] {
    std::lock_guard guard{mutex_};
    return link_ && !events_.empty();
  }));
  theirs_ = last_events();
  link_->start(own_);
}

honest_pair::~honest_pair() {
  dialling_->stop();
  listening_->stop();
}

std::vector<link_refusal> honest_pair::told() {
  std::lock_guard guard{mutex_};
  return told_;
}

bool honest_pair::works() {
  const int before = theirs_->batches;
  link_->write(bytes(1'000));
  return poll_until([&] { return theirs_->batches == before + 1 && own_->writable == before + 1; });
}

std::size_t honest_pair::accepted() {
  std::lock_guard guard{mutex_};
  return accepted_.size();
}

std::shared_ptr<link_connection> honest_pair::last_accepted() {
  std::lock_guard guard{mutex_};
  return accepted_.back();
}

std::shared_ptr<counting_events> honest_pair::last_events() {
  std::lock_guard guard{mutex_};
  return events_.back();
}

} // namespace zlink::test
