// Spots of all three kinds that do what messages tell them and leave evidence, and two hosts that serve them: the first
// takes every new Spot, the second none, so that a caller is near or far by choice.
#pragma once

#include "zlink/execution/operation.hpp"

#include <doctest/doctest.h>
#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace zlink::test::messaging {

struct note {
  std::string text;
};
struct held_note {
  std::string text;
};
struct ask {
  std::string text;
};
struct held_ask {
  std::string text;
};
struct answer {
  std::string text;
};
struct fault {
  int code = 0;
};
struct relay {
  std::string to;
  std::string text;
  bool yields = false;
  bool by_host = false; ///< through the host's client instead of the Spot's own
};
struct describe {
  int unused = 0;
};
struct description {
  std::string mesh;
  std::string channel;
  std::string topic;
  std::string source;
  std::string packet;
  std::string content_type;
  std::string correlation;
  std::string color;
};
struct unserved {
  int unused = 0;
};
ZLINK_PACKET(note, "probe.note", text)
ZLINK_PACKET(held_note, "probe.held_note", text)
ZLINK_PACKET(ask, "probe.ask", text)
ZLINK_PACKET(held_ask, "probe.held_ask", text)
ZLINK_PACKET(answer, "probe.answer", text)
ZLINK_PACKET(fault, "probe.fault", code)
ZLINK_PACKET(relay, "probe.relay", to, text, yields, by_host)
ZLINK_PACKET(describe, "probe.describe", unused)
ZLINK_PACKET(description, "probe.description", mesh, channel, topic, source, packet, content_type, correlation, color)
ZLINK_PACKET(unserved, "probe.unserved", unused)

/// Holds handlers until the test lets them go on.
class latch {
public:
  task<void> wait() {
    if (open_)
      return task<void>::done();
    waiting_.push_back(detail::new_counted<detail::operation<void>>());
    return task<void>{waiting_.back()};
  }
  void open() {
    open_ = true;
    for (auto& one : std::exchange(waiting_, {}))
      one->set(result<void>{});
  }
  std::size_t waiting() const noexcept { return waiting_.size(); }

private:
  bool open_ = false;
  std::vector<detail::counted_ptr<detail::operation<void>>> waiting_;
};

/// Outlives the mesh.
struct evidence {
  std::vector<std::string> runs; ///< what handlers saw, in order
  latch gate;
  int incarnations = 0;
  int ticks = 0;

  std::size_t count(const std::string& what) const {
    std::size_t found = 0;
    for (const auto& run : runs)
      found += run == what;
    return found;
  }
};

inline description describe_context(const message_context& context) {
  description seen;
  seen.mesh = context.mesh_name();
  seen.channel = context.channel_name();
  seen.topic = context.topic();
  seen.source = context.source_rid();
  seen.packet = context.packet_name();
  seen.content_type = context.content_type();
  seen.correlation = context.correlation_id().value_or("absent");
  seen.color = context.metadata("color");
  return seen;
}

template <class Base, class Context>
class probe : public Base {
public:
  probe(Context context, evidence& log) : Base(std::move(context)), log_(log) { ++log_.incarnations; }

  void configure() override {
    this->context()
      .handlers()
      .template add_packet<&probe::on_note>()
      .template add_packet<&probe::on_held_note>()
      .template add_packet<&probe::on_ask>()
      .template add_packet<&probe::on_held_ask>()
      .template add_packet<&probe::on_fault>()
      .template add_packet<&probe::on_relay>()
      .template add_packet<&probe::on_describe>();
  }

private:
  void on_note(const note& m, const message_context& context) {
    log_.runs.push_back(m.text + std::string{context.metadata("color")});
  }
  task<void> on_held_note(const held_note& m, const message_context&) {
    log_.runs.push_back("begin " + m.text);
    co_await log_.gate.wait();
    log_.runs.push_back("end " + m.text);
  }
  answer on_ask(const ask& m, const message_context&) {
    log_.runs.push_back(m.text);
    return answer{m.text + "!"};
  }
  task<answer> on_held_ask(const held_ask& m, const message_context&) {
    log_.runs.push_back("begin " + m.text);
    co_await log_.gate.wait();
    log_.runs.push_back("end " + m.text);
    co_return answer{m.text + "!"};
  }
  answer on_fault(const fault&, const message_context&) { throw std::runtime_error{"a fault of the application"}; }
  task<answer> on_relay(const relay& m, const message_context&) {
    auto nested = m.by_host ? this->context().host().spots().request_to_spot(m.to, ask{m.text})
                            : this->context().outbound().request_to_spot(m.to, ask{m.text});
    auto pending = m.yields ? nested.template yield<answer>() : nested.template submit<answer>();
    auto got = co_await std::move(pending);
    co_return answer{"relayed " + got.text};
  }
  description on_describe(const describe&, const message_context& context) { return describe_context(context); }

  evidence& log_;
};

using instance_probe = probe<instance_spot, instance_spot_context>;
using room_probe = probe<spot<>, spot_context>;
using entry_probe = probe<entry_spot<>, entry_spot_context>;

/// Registers all kinds: "probe" Instance Spots, "room" User Spots, an Entry Spot.
inline object_server_builder serve_probes(mesh_node& node, evidence& log) {
  auto server = node.object_server();
  server.add_entry_spot<entry_probe>(
    [&log](entry_spot_context context) { return std::make_unique<entry_probe>(std::move(context), log); });
  server.add_instance_spot_factory<instance_probe>("probe", [&log](auto& factory) {
    factory.disable_relocation().construct_with(
      [&log](instance_spot_context context) { return std::make_unique<instance_probe>(std::move(context), log); });
  });
  server.add_spot_factory<room_probe>("room", [&log](auto& factory) {
    factory.disable_relocation().construct_with(
      [&log](spot_context context) { return std::make_unique<room_probe>(std::move(context), log); });
  });
  return server;
}

/// Hosts 0 and 1 of mesh "m"; every new Spot comes to life on host 0.
inline void start_probes(testing::mesh& net, evidence& log) {
  net.start([&log](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    serve_probes(node, log);
    if (index != 0)
      node.placement_weight(0);
  });
}

inline task<answer> ask_at(host& caller, std::string id, std::string text) {
  return caller.spots().request_to_spot(std::move(id), ask{std::move(text)}).instance_spot("probe").submit<answer>();
}

template <class T>
error_kind kind_of(const result<T>& outcome) {
  REQUIRE_FALSE(outcome.has_value());
  REQUIRE_FALSE(outcome.is_cancelled());
  return outcome.error().kind();
}

/// Ends the task and tells its error kind.
template <class T>
error_kind failure(testing::mesh& net, task<T> awaited) {
  return kind_of(net.run(as_result(std::move(awaited))));
}

} // namespace zlink::test::messaging
