#include "adapters/tcp/tcp_link.hpp"

#include "adapters/tcp/hub.hpp"

#include <future>
#include <mutex>
#include <utility>

namespace zlink::detail {

namespace {

constexpr std::size_t shortest_secret = 16;
constexpr std::size_t longest_secret = 1024;
constexpr std::size_t longest_mesh = 255;

void check(const tcp_link_options& options) {
  if (options.mesh.empty() || options.mesh.size() > longest_mesh)
    throw configuration_error{"a mesh's name takes 1 to 255 bytes with transport tcp, got " + std::to_string(options.mesh.size())};
  const auto secret = options.secret.size();
  if (secret != 0 && (secret < shortest_secret || secret > longest_secret))
    throw configuration_error{"mesh \"" + options.mesh + "\": secret takes 16 to 1024 bytes, got " + std::to_string(secret)};
}

class tcp_transport final : public tcp_link {
public:
  explicit tcp_transport(tcp_link_options options) : io_(io_thread::start()) {
    try {
      hub_ = std::make_shared<tcp_hub>(std::move(options), io_);
    } catch (...) {
      io_->end();
      throw;
    }
  }
  ~tcp_transport() override {
    stop();
    hub_.reset();
    io_->end();
  }

  endpoint listen(const std::string& host, std::uint16_t port, accept_handler accepted) override {
    if (hub_->tls() == nullptr && !is_loopback(host))
      throw configuration_error{"links over TCP listen on \"" + host + "\", which is not loopback: tls is required there, see "
                                                                       "mesh_node::tls"};
    std::lock_guard guard{mutex_};
    if (bound_.port != 0)
      throw configuration_error{"this transport listens already, at " + to_string(bound_)};
    bound_ = hub_->bind(host, port);
    io_->post([hub = hub_, accepted = std::move(accepted)]() mutable { hub->accept(std::move(accepted)); });
    return bound_;
  }
  void connect(const endpoint& where, std::uint32_t timeout_ms, connect_handler done) override {
    io_->post([hub = hub_, where, timeout_ms, done = std::move(done)]() mutable {
      hub->connect(where, std::chrono::milliseconds{timeout_ms}, std::move(done));
    });
  }
  void stop() override {
    {
      std::lock_guard guard{mutex_};
      if (!std::exchange(stop_begun_, true))
        io_->post([hub = hub_, ended = ended_] { hub->stop([ended] { ended->set_value(); }); });
    }
    if (!io_->running_here())
      all_ended_.wait();
  }
  std::string security_identity() const override { return hub_->tls() != nullptr ? hub_->tls()->identity() : std::string{}; }

  std::uint64_t refused(refusal why) const noexcept override { return hub_->refused().count(why); }
  std::uint64_t refused() const noexcept override { return hub_->refused().total(); }
  std::size_t connections() const noexcept override { return hub_->connections(); }

private:
  const std::shared_ptr<io_thread> io_;
  std::shared_ptr<tcp_hub> hub_;
  const std::shared_ptr<std::promise<void>> ended_ = std::make_shared<std::promise<void>>();
  const std::shared_future<void> all_ended_{ended_->get_future()};
  std::mutex mutex_;
  endpoint bound_;
  bool stop_begun_ = false;
};

} // namespace

std::shared_ptr<tcp_link> make_tcp_link(tcp_link_options options) {
  check(options);
  return std::make_shared<tcp_transport>(std::move(options));
}

} // namespace zlink::detail
