// A peer that lies: records as no host of ours would send them, over a link that is as it should be.
#pragma once

#include "tests/contract/messaging/probe_spots.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zlink::test::messaging {

inline detail::node_runtime& node_at(testing::mesh& net, std::size_t host) {
  return *net.host(host).runtime().find_node("m");
}

inline std::uint64_t dropped_at(testing::mesh& net, std::size_t host, detail::drop_reason why) {
  return net.host(host).runtime().domain.counters.dropped[static_cast<std::size_t>(why)].load();
}

/// Sends from one host to another what it is told to.
class forged_peer {
public:
  forged_peer(testing::mesh& net, std::size_t from, std::size_t to)
    : net_(net), link_(node_at(net, from).links->ready_link(node_at(net, to).rid())) {
    REQUIRE(link_);
    header.target_id = "c";
    header.operation = {1, 1};
  }

  /// The next message of each kind carries this header.
  detail::message_header header;

  /// What became of a request with that body: nothing for a packet, else the error.
  std::optional<error> ask(detail::payload body) {
    auto end = detail::new_counted<catcher>();
    auto* r = detail::make_record(detail::record_kind::request);
    r->body = std::move(body);
    end->ref();
    r->reply = {end.get(), 1};
    link_->send(r, header, net_.host(0).runtime().time->now() + std::chrono::seconds{5});
    net_.run_until([&] { return end->ended; });
    return end->failure;
  }
  template <class T>
  std::optional<error> ask_packet(T value) {
    detail::payload body;
    body.emplace<T>(std::move(value));
    return ask(std::move(body));
  }
  std::optional<error> ask_encoded(std::string name, std::string content_type, bytes data) {
    detail::payload body;
    body.emplace<detail::encoded_value>(std::move(name), std::move(content_type), std::move(data));
    return ask(std::move(body));
  }
  void send(detail::payload body) {
    auto* r = detail::make_record(detail::record_kind::send);
    r->body = std::move(body);
    link_->send(r, header, net_.host(0).runtime().time->now() + std::chrono::seconds{5});
    net_.run_until_idle();
  }
  template <class T>
  void send_packet(T value) {
    detail::payload body;
    body.emplace<T>(std::move(value));
    send(std::move(body));
  }
  void send_encoded(std::string name, std::string content_type, bytes data) {
    detail::payload body;
    body.emplace<detail::encoded_value>(std::move(name), std::move(content_type), std::move(data));
    send(std::move(body));
  }
  void control(std::uint16_t command, byte_view data) {
    link_->send_control(command, data);
    net_.run_until_idle();
  }

private:
  struct catcher final : detail::counted, detail::reply_receiver {
    void receive_reply(detail::record* reply) noexcept override {
      if (auto* what = reply->body.get<error>())
        failure = *what;
      ended = true;
      detail::free_record(reply);
    }
    void ref_receiver() noexcept override { ref(); }
    void unref_receiver() noexcept override { unref(); }
    bool ended = false;
    std::optional<error> failure;
  };

  testing::mesh& net_;
  detail::counted_ptr<detail::link_session> link_;
};

} // namespace zlink::test::messaging
