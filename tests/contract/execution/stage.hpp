// Spots of every kind whose handlers are written by the test that needs them,
// doors that keep a handler waiting until the test opens them, and what ran, in
// order.
#pragma once

#include <doctest/doctest.h>
#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace zlink::test {

using namespace std::chrono_literals;

struct ask {
  std::string what;
};
struct tell {
  std::string what;
};
struct answer {
  int value = 0;
};
ZLINK_PACKET(ask, "stage.ask", what)
ZLINK_PACKET(tell, "stage.tell", what)
ZLINK_PACKET(answer, "stage.answer", value)

/// What an act sees of the Spot it runs in.
class player {
public:
  virtual const common_spot_context& spot() const = 0;
  virtual task<bool> close() = 0;
  virtual task<timer> add_timer(std::string name, zlink::time_span period, timer_options options = {},
                                std::stop_token cancel = {}) = 0;
  /// The same with another handler, which logs "other tick".
  virtual task<timer> add_other_timer(std::string name, zlink::time_span period) = 0;
  const std::string& id() const { return spot().spot_id(); }

protected:
  ~player() = default;
};

/// Owned by the test and outlives the mesh, so acts may be coroutines that
/// capture.
class stage {
public:
  /// What handlers do by the name they are asked for. A name that is not here
  /// is logged, and answered with 0.
  std::map<std::string, std::function<task<int>(player&)>> acts;
  std::map<std::string, std::function<task<int>()>> node_acts;
  std::function<task<void>(player&)> on_initialize;
  std::function<task<void>(player&, const spot_closing_context&)> on_closing;
  std::function<task<void>(player&, const timer_tick&)> on_tick;
  std::vector<std::string> log;
  int alive = 0; ///< instances of Spots
  int made = 0;

  void note(std::string what) { log.push_back(std::move(what)); }
  long count(const std::string& what) const { return std::count(log.begin(), log.end(), what); }
  bool has(const std::string& what) const { return count(what) != 0; }
  /// True if each was logged and they were logged in this order, whatever
  /// stands between them.
  bool in_order(const std::vector<std::string>& wanted) const {
    auto from = log.begin();
    for (const auto& what : wanted) {
      from = std::find(from, log.end(), what);
      if (from++ == log.end())
        return false;
    }
    return true;
  }

  void open(const std::string& door) {
    auto& d = doors_[door];
    d.open = true;
    if (auto waiting = std::exchange(d.waiting, nullptr))
      waiting->set(result<void>{});
  }
  bool knocked(const std::string& door) const { return has("knock at " + door); }
  task<void> pass(std::string door) {
    note("knock at " + door);
    auto& d = doors_[door];
    if (d.open)
      return task<void>::done();
    d.waiting = detail::new_counted<detail::operation<void>>();
    return task<void>{d.waiting};
  }

private:
  struct door_state {
    bool open = false;
    detail::counted_ptr<detail::operation<void>> waiting;
  };
  std::map<std::string, door_state> doors_;
};

/// An Instance Spot that answers when the test opens the door of its id.
class door_spot final : public instance_spot {
public:
  door_spot(instance_spot_context context, stage& scene) : instance_spot(std::move(context)), stage_(scene) {}
  void configure() override { context().handlers().add_packet<&door_spot::on_ask>(); }

private:
  task<answer> on_ask(const ask&, const message_context&) {
    co_await stage_.pass(context().spot_id());
    stage_.note("through " + context().spot_id());
    co_return answer{1};
  }
  stage& stage_;
};

template <class Base, class Context>
class performer final : public Base, public player {
public:
  performer(Context context, stage& scene) : Base(std::move(context)), stage_(scene) {
    ++stage_.alive;
    ++stage_.made;
  }
  ~performer() override { --stage_.alive; }

  void configure() override {
    this->context().handlers().template add_packet<&performer::on_ask>().template add_packet<&performer::on_tell>();
  }
  task<void> on_initialize() override {
    if (stage_.on_initialize)
      co_await stage_.on_initialize(*this);
  }
  task<void> on_closing(const spot_closing_context& closing, std::stop_token) override {
    stage_.note("closing " + id());
    if (stage_.on_closing)
      co_await stage_.on_closing(*this, closing);
  }

  caf::event_based_actor* face() { return this->self(); }

  const common_spot_context& spot() const override { return this->context(); }
  task<bool> close() override {
    if constexpr (requires { this->context().close(); })
      return this->context().close();
    else
      throw std::logic_error{"an Entry Spot does not close itself"};
  }
  task<timer> add_timer(std::string name, zlink::time_span period, timer_options options,
                        std::stop_token cancel) override {
    return this->context().template add_timer<&performer::on_tick>(std::move(name), period, options, std::move(cancel));
  }
  task<timer> add_other_timer(std::string name, zlink::time_span period) override {
    return this->context().template add_timer<&performer::on_other_tick>(std::move(name), period);
  }

private:
  task<int> perform(std::string what) {
    const auto known = stage_.acts.find(what);
    if (known == stage_.acts.end()) {
      stage_.note(what);
      co_return 0;
    }
    stage_.note(what + " starts");
    const int value = co_await known->second(*this);
    stage_.note(what + " ends");
    co_return value;
  }
  task<answer> on_ask(const ask& m, const message_context&) {
    const int value = co_await perform(m.what);
    co_return answer{value};
  }
  task<void> on_tell(const tell& m, const message_context&) { co_await perform(m.what); }
  task<void> on_tick(const timer_tick& tick) {
    stage_.note("tick");
    if (stage_.on_tick)
      co_await stage_.on_tick(*this, tick);
  }
  void on_other_tick(const timer_tick& tick) {
    stage_.note("other tick");
    stage_.note("other tick " + std::to_string(tick.delivery_index));
  }

  stage& stage_;
};

using wide_spot = performer<instance_spot, instance_spot_context>;
using room_spot = performer<zlink::spot<>, spot_context>;
using lobby_spot = performer<entry_spot<>, entry_spot_context>;

inline task<answer> perform_on_node(stage& scene, std::string what) {
  const auto known = scene.node_acts.find(what);
  scene.note(what + " starts");
  const int value = known == scene.node_acts.end() ? 0 : co_await known->second();
  scene.note(what + " ends");
  co_return answer{value};
}

/// Instance Spot types "wide" and "door", User Spot types "room" and, PerActor,
/// "split", an Entry Spot, a node handler.
inline std::function<void(host&)> serve(stage& scene, std::function<void(mesh_node&)> adjust = nullptr) {
  return [&scene, adjust = std::move(adjust)](host& started) {
    auto& node = started.add_mesh("m");
    const auto make_room = [&scene](spot_context context) {
      return std::make_unique<room_spot>(std::move(context), scene);
    };
    node.object_server()
      .add_instance_spot_factory<wide_spot>(
        "wide",
        [&](auto& factory) {
          factory.disable_relocation().construct_with(
            [&scene](instance_spot_context c) { return std::make_unique<wide_spot>(std::move(c), scene); });
        })
      .add_instance_spot_factory<door_spot>(
        "door",
        [&](auto& factory) {
          factory.disable_relocation().construct_with(
            [&scene](instance_spot_context c) { return std::make_unique<door_spot>(std::move(c), scene); });
        })
      .add_spot_factory<room_spot>("room",
                                   [&](auto& factory) { factory.disable_relocation().construct_with(make_room); })
      .add_spot_factory<room_spot>(
        "split", [&](auto& factory) { factory.recreate_on_relocation().per_actor().construct_with(make_room); })
      .add_entry_spot<lobby_spot>(
        [&scene](entry_spot_context c) { return std::make_unique<lobby_spot>(std::move(c), scene); });
    node.add_node_handler([&scene](const ask& m, const message_context&) { return perform_on_node(scene, m.what); });
    if (adjust)
      adjust(node);
  };
}

// -- calls
// ------------------------------------------------------------------------------------------------------------

/// From outside; wakes an Instance Spot of that type unless the type is empty.
inline task<answer> ask_spot(host& from, std::string id, std::string what, std::string type = "wide",
                             std::chrono::milliseconds limit = 60s) {
  auto call = from.spots().request_to_spot(std::move(id), ask{std::move(what)});
  call.timeout(limit);
  if (!type.empty())
    call.instance_spot(std::move(type));
  return call.submit<answer>();
}
/// From outside, without waking anything.
inline task<void> tell_spot(host& from, std::string id, std::string what) {
  return from.spots().send_to_spot(std::move(id), tell{std::move(what)}).submit();
}
/// From inside; unanswered until the door is open.
inline spot_request_call knock(player& from, std::string door, std::chrono::milliseconds limit = 60s) {
  auto call = from.spot().outbound().request_to_spot(std::move(door), ask{"knock"});
  call.instance_spot("door").timeout(limit);
  return call;
}
/// Creates a User Spot, or wakes an Instance Spot.
inline void prepare(testing::mesh& net, const std::string& id, const std::string& type) {
  if (type == "wide")
    net.run(ask_spot(net.host(0), id, "prepared"));
  else
    net.run(net.host(0).spots().get_or_create(id, type).submit());
}

template <class T>
error_kind failure_of(const result<T>& outcome) {
  REQUIRE_FALSE(outcome.has_value());
  REQUIRE_FALSE(outcome.is_cancelled());
  return outcome.error().kind();
}

/// An act that holds the gate until the door opens.
inline std::function<task<int>(player&)> hold_at(std::string door) {
  return [door = std::move(door)](player& p) -> task<int> {
    auto call = knock(p, door);
    const auto through = co_await call.submit<answer>();
    co_return through.value;
  };
}
/// An act that gives the gate away until the door opens.
inline std::function<task<int>(player&)> yield_at(std::string door) {
  return [door = std::move(door)](player& p) -> task<int> {
    auto call = knock(p, door);
    const auto through = co_await call.yield<answer>();
    co_return through.value;
  };
}

/// A mesh whose application lanes take so many records.
inline testing::mesh_options with_lanes(std::uint32_t records, std::size_t hosts = 1) {
  testing::mesh_options options;
  options.hosts = hosts;
  options.adjust = [records](std::size_t, host_options& o) { o.application_lane_records = records; };
  return options;
}

} // namespace zlink::test
