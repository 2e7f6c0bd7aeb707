// A network whose lane records a test sees, drops and changes, and one that speaks on a lane without being asked.
#pragma once

#include "relocation/checksum.hpp"
#include "relocation/lane_frames.hpp"
#include "tests/contract/relocation/move_scene.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/messaging/wire.hpp"

namespace relocation_test {

using zlink::detail::control_command;

/// A record of a lane on its way out of a host.
struct lane_record {
  std::size_t host = 0;
  control_command command = control_command::restore;
  zlink::detail::unique_id move;
  zlink::bytes body;
};

inline zlink::bytes payload_of(const lane_record& record) {
  if (record.command == control_command::restore_chunk)
    return record.body;
  return zlink::encode(zlink::detail::control_envelope{record.move.high, record.move.low, record.body});
}

/// Outlives the mesh.
class tampered_wire {
public:
  /// Asked about each record; may change it. False: it is lost.
  std::function<bool(lane_record&)> rule;
  std::vector<lane_record> sent; ///< as they were meant
  std::uint64_t frame_limit = 0; ///< what every node claims to take in one frame, if not what it takes

  std::size_t count(control_command command) const {
    return static_cast<std::size_t>(std::ranges::count(sent, command, &lane_record::command));
  }
  const lane_record& last(control_command command) const {
    const auto i = std::ranges::find(sent.rbegin(), sent.rend(), command, &lane_record::command);
    REQUIRE(i != sent.rend());
    return *i;
  }
  /// For `mesh_options::adjust`.
  auto taps() {
    return [this](std::size_t host, zlink::host_options& options) {
      options.transport = [this, host, inner = std::move(options.transport)](caf::actor_system& system, const std::string& mesh_name) {
        return std::make_shared<transport>(*this, host, inner(system, mesh_name));
      };
    };
  }

private:
  class connection final : public zlink::detail::link_connection {
  public:
    connection(tampered_wire& by, std::size_t host, std::shared_ptr<link_connection> inner) : by_(by), host_(host), inner_(std::move(inner)) {}
    void start(std::shared_ptr<zlink::detail::link_connection_events> events) override { inner_->start(std::move(events)); }
    void write(zlink::bytes batch) override { inner_->write(by_.tampered(host_, batch)); }
    bool remind() override { return inner_->remind(); }
    void limit_batches(std::uint64_t largest) override { inner_->limit_batches(largest); }
    void close() override { inner_->close(); }
    std::string peer_address() const override { return inner_->peer_address(); }

  private:
    tampered_wire& by_;
    std::size_t host_;
    std::shared_ptr<link_connection> inner_;
  };
  class transport final : public zlink::detail::link_transport {
  public:
    transport(tampered_wire& by, std::size_t host, std::shared_ptr<link_transport> inner) : by_(by), host_(host), inner_(std::move(inner)) {}
    zlink::detail::endpoint listen(const std::string& name, std::uint16_t port, accept_handler accepted) override {
      return inner_->listen(name, port, [this, accepted = std::move(accepted)](std::shared_ptr<zlink::detail::link_connection> made) mutable {
        accepted(std::make_shared<connection>(by_, host_, std::move(made)));
      });
    }
    void connect(const zlink::detail::endpoint& where, std::uint32_t timeout_ms, connect_handler done) override {
      inner_->connect(where, timeout_ms, [&by = by_, host = host_, done = std::move(done)](auto made) mutable {
        if (made)
          done(zlink::result<std::shared_ptr<zlink::detail::link_connection>>{std::make_shared<connection>(by, host, std::move(*made))});
        else
          done(std::move(made));
      });
    }
    void stop() override { inner_->stop(); }

  private:
    tampered_wire& by_;
    std::size_t host_;
    std::shared_ptr<link_transport> inner_;
  };

  static bool is_of_sessions(std::uint16_t command) {
    return command == static_cast<std::uint16_t>(control_command::seal_session)
           || command == static_cast<std::uint16_t>(control_command::session_relocation_route);
  }
  zlink::bytes tampered(std::size_t host, zlink::byte_view batch) {
    using namespace zlink::detail;
    zlink::bytes out;
    frame_reader reader{batch};
    while (!reader.at_end()) {
      const auto before = reader.rest();
      const auto one = reader.next(1ULL << 30);
      const auto keep = [&] { out.insert(out.end(), before.begin(), before.end() - static_cast<std::ptrdiff_t>(reader.rest().size())); };
      if (one.type == frame_type::hello && frame_limit != 0) {
        auto who = decode_hello(one.body);
        who.identity.frame_limit = frame_limit;
        append_hello(out, who.identity);
        continue;
      }
      if (one.type != frame_type::control) {
        keep();
        continue;
      }
      const auto control = decode_control(one.body);
      if (!is_lane_command(control.command) && !is_of_sessions(control.command)) {
        keep();
        continue;
      }
      lane_record record{host, static_cast<control_command>(control.command), {}, {}};
      if (record.command == control_command::restore_chunk) { // which is in no envelope
        record.move = decode_chunk(control.payload).move;
        record.body.assign(control.payload.begin(), control.payload.end());
      } else {
        const auto envelope = zlink::decode<control_envelope>(control.payload);
        record.move = {envelope.operation_high, envelope.operation_low};
        record.body = envelope.body;
      }
      sent.push_back(record);
      if (rule && !rule(record))
        continue;
      append_control(out, static_cast<std::uint16_t>(record.command), payload_of(record));
    }
    if (out.empty())
      append_credit_wanted(out); // the transport owes an answer to each batch
    return out;
  }
};

template <class T>
void change(lane_record& record, std::function<void(T&)> how) {
  auto what = zlink::decode<T>(record.body);
  how(what);
  record.body = zlink::encode(what);
}

struct chunk_copy {
  std::uint32_t ordinal = 0;
  zlink::bytes content;
};
inline void change_chunk(lane_record& record, const std::function<void(chunk_copy&)>& how) {
  const auto what = zlink::detail::decode_chunk(record.body);
  chunk_copy copy{what.ordinal, {what.content.begin(), what.content.end()}};
  how(copy);
  record.body = zlink::detail::encode_chunk({what.move, what.attempt, copy.ordinal, copy.content});
}

/// Not what was announced any more. 0: a byte flipped, 1: a chunk lost, 2: a shorter one.
inline void spoil_chunk(lane_record& record, int how) {
  change_chunk(record, [how](chunk_copy& chunk) {
    if (how == 0)
      chunk.content[chunk.content.size() / 2] ^= std::byte{1};
    else if (how == 1)
      chunk.ordinal = 1;
    else
      chunk.content.pop_back();
  });
}

/// As from that host, with no move of its behind it.
inline void forge(mesh& net, std::size_t from, std::size_t to, const lane_record& what) {
  auto& node = *net.host(from).runtime().find_node("m");
  auto link = node.links->ready_link(net.host(to).runtime().find_node("m")->identity.node_rid);
  REQUIRE(link);
  link->send_control(static_cast<std::uint16_t>(what.command), payload_of(what));
}
/// A note for a Spot, straight to that node, whatever the sender's routes say.
inline void send_straight(mesh& net, std::size_t from, std::size_t to, const std::string& id, note what,
                          std::optional<zlink::detail::message_fence> fence) {
  using namespace zlink::detail;
  auto& node = *net.host(from).runtime().find_node("m");
  auto link = node.links->ready_link(net.host(to).runtime().find_node("m")->identity.node_rid);
  REQUIRE(link);
  auto* r = make_record(record_kind::send);
  r->body.emplace<note>(std::move(what));
  message_header header;
  header.target_id = id;
  header.operation = {what.number + 1, 77};
  header.fence = fence;
  link->send(r, header, net.host(from).runtime().time->now() + 20s);
}

/// One Spot "a" on host `from`, which can move to `to`; host `other` has neither.
struct lane_scene {
  lane_scene() = default;
  lane_scene(mesh& net, stage& on) {
    net.start(serve(on));
    net.run(rouse(net.host(0), "a"));
    on.trace.clear();
    look(net);
  }
  void look(mesh& net) {
    from = net.owner_of("a");
    to = (from + 1) % net.size();
    other = (from + 2) % net.size();
  }
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t other = 0;
};

/// What hosts report of moves: "event id".
struct move_log {
  std::vector<std::string> told;
  std::function<void(std::size_t, zlink::host_options&)> listens(std::function<void(std::size_t, zlink::host_options&)> more = {}) {
    return [this, more](std::size_t host, zlink::host_options& options) {
      options.on_trace = [this](const zlink::trace_record& one) {
        if (one.category == zlink::trace_category::actor_relocation)
          told.push_back(std::string{one.event} + ' ' + std::string{one.spot_id} + std::string{one.actor_id});
      };
      if (more)
        more(host, options);
    };
  }
  auto count(const std::string& line) const { return std::ranges::count(told, line); }
};

} // namespace relocation_test
