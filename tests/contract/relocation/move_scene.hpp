// Spots whose state, work and timers move, what they leave behind, and moves of single units.
#pragma once

#include "relocation/moves.hpp"
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"

#include <map>
#include <set>

namespace relocation_test {

using namespace std::chrono_literals;
using creation_test::barrier;
using creation_test::failure;
using creation_test::failure_of;
using creation_test::row_of;
using creation_test::stored;
using zlink::error_kind;
using zlink::relocate_reason;
using zlink::detail::move_step;
using zlink::testing::mesh;

struct note {
  std::string sender;
  std::uint64_t number = 0;
};
struct count_up {
  std::string sender;
  std::uint64_t number = 0;
};
struct look {};
struct ledger_view {
  std::vector<std::string> entries; ///< "sender/number", in the order in which they were handled
  std::vector<std::uint64_t> ticks; ///< delivery indices
  std::vector<std::uint64_t> scheduled;
  std::string rid;
  std::uint64_t generation = 0;
  std::uint64_t instance = 0;
};
struct ledger_state {
  std::vector<std::string> entries;
  std::vector<std::uint64_t> ticks;
  std::vector<std::uint64_t> scheduled;
};
struct start_clock {
  std::string name;
  std::int64_t period_ms = 0;
  bool cancel = false;
};
struct act {
  std::string word;
};
struct acted {
  std::string rid;
  std::uint64_t instance = 0;
};
ZLINK_PACKET(note, "move.note", sender, number)
ZLINK_PACKET(act, "move.act", word)
ZLINK_PACKET(acted, "move.acted", rid, instance)
ZLINK_PACKET(count_up, "move.count", sender, number)
ZLINK_PACKET(look, "move.look")
ZLINK_PACKET(ledger_view, "move.view", entries, ticks, scheduled, rid, generation, instance)
ZLINK_PACKET(ledger_state, "move.state", entries, ticks, scheduled)
ZLINK_PACKET(start_clock, "move.clock", name, period_ms, cancel)

/// The script of all Spots of a test, and their evidence. Outlives the mesh.
struct stage {
  std::vector<std::string> trace; ///< "make a", "initialize a", "capture a", "restore a", "closing a reason", "handle a what"
  std::map<std::string, int> registered; ///< Joins of each Actor
  std::vector<std::string> operations;   ///< of Joins whose ends were told
  std::uint64_t instances = 0;
  std::set<std::string> running; ///< ids with a handler or callback under way: at most one of each anywhere (L-3)
  std::function<void(const std::string& step, const std::string& id)> at; ///< at each entry; may throw
  std::function<zlink::task<void>(const std::string& step, const std::string& id)> during;
  /// Awaited inside a handler for an `act`, and by `on_closing` with that word.
  std::function<zlink::task<void>(const zlink::instance_spot_context& context, const std::string& word)> acts;

  void happened(const std::string& step, const std::string& id, const std::string& more = {}) {
    trace.push_back(step + ' ' + id + (more.empty() ? "" : ' ' + more));
    if (at)
      at(step, id);
  }
  zlink::task<void> wait(const std::string& step, const std::string& id) {
    return during ? during(step, id) : zlink::task<void>::done();
  }
  int count(const std::string& prefix) const {
    int n = 0;
    for (const auto& one : trace)
      n += one.starts_with(prefix) ? 1 : 0;
    return n;
  }
  void hold(std::string step, barrier& until) {
    during = [step = std::move(step), &until](const std::string& now, const std::string&) {
      return now == step ? until.passed() : zlink::task<void>::done();
    };
  }
};

class ledger final : public zlink::instance_spot {
public:
  ledger(zlink::instance_spot_context context, stage& on) : instance_spot(std::move(context)), on(on), instance_(++on.instances) {
    on.happened("make", id());
  }
  void configure() override {
    context()
      .handlers()
      .add_packet<&ledger::on_note>()
      .add_packet<&ledger::on_count>()
      .add_packet<&ledger::on_look>()
      .add_packet<&ledger::on_start>()
      .add_packet<&ledger::on_act>();
  }
  zlink::task<void> on_initialize() override {
    on.happened("initialize", id());
    co_await on.wait("initialize", id());
  }
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token) override {
    on.happened("closing", id(), to_string(why.reason));
    co_await on.wait("closing", id());
    if (on.acts)
      co_await on.acts(context(), "closing");
  }

  const std::string& id() const { return context().spot_id(); }
  stage& on;
  ledger_state state;

private:
  class alone {
  public:
    explicit alone(ledger& of) : of_(of) { CHECK(of.on.running.insert(of.id()).second); }
    ~alone() { of_.on.running.erase(of_.id()); }

  private:
    ledger& of_;
  };
  void on_note(const note& m, const zlink::message_context&) {
    const alone here{*this};
    on.happened("handle", id(), m.sender + '/' + std::to_string(m.number));
    state.entries.push_back(m.sender + '/' + std::to_string(m.number));
  }
  zlink::task<count_up> on_count(const count_up& m, const zlink::message_context&) {
    const alone here{*this};
    on.happened("handle", id(), m.sender + '/' + std::to_string(m.number));
    state.entries.push_back(m.sender + '/' + std::to_string(m.number));
    co_await on.wait("handle", id());
    co_return m;
  }
  zlink::task<acted> on_act(const act& m, const zlink::message_context&) {
    const acted here{context().node_rid(), instance_};
    on.happened("handle", id(), m.word);
    if (on.acts)
      co_await on.acts(context(), m.word);
    on.happened("did", id(), m.word);
    co_return here;
  }
  ledger_view on_look(const look&, const zlink::message_context&) {
    return {state.entries, state.ticks, state.scheduled, context().node_rid(), context().object_generation(), instance_};
  }
  zlink::task<void> on_start(const start_clock& m, const zlink::message_context&) {
    if (m.cancel)
      timers_[m.name].cancel();
    else
      timers_[m.name] = co_await context().add_timer<&ledger::on_tick>(m.name, std::chrono::milliseconds{m.period_ms});
  }
  zlink::task<void> on_tick(const zlink::timer_tick& tick) {
    on.happened("tick", id(), std::string{tick.name});
    state.ticks.push_back(tick.delivery_index);
    state.scheduled.push_back(tick.scheduled_index);
    co_await on.wait("tick", id());
  }

  std::uint64_t instance_;
  std::map<std::string, zlink::timer> timers_;
};

class ledger_adapter final : public zlink::spot_adapter<ledger> {
public:
  zlink::task<zlink::bytes> capture(ledger& from, std::stop_token) const override {
    from.on.happened("capture", from.id());
    co_await from.on.wait("capture", from.id());
    co_return zlink::encode(from.state);
  }
  zlink::task<void> restore(ledger& into, zlink::byte_view state, std::stop_token) const override {
    into.on.happened("restore", into.id());
    co_await into.on.wait("restore", into.id());
    into.state = zlink::decode<ledger_state>(state);
  }
};

inline void add_ledgers(zlink::object_server_builder server, stage& on, std::uint32_t limit = 0) {
  server.add_instance_spot_factory<ledger>("ledger", [&](auto& factory) {
    factory.limit(limit).preserve_state_with(ledger_adapter{}).construct_with(
      [&on](zlink::instance_spot_context context) { return std::make_unique<ledger>(std::move(context), on); });
  });
}
inline auto serve(stage& on) {
  return [&on](zlink::host& host) { add_ledgers(host.add_mesh("m").object_server(), on); };
}

// -- calls ------------------------------------------------------------------------------------------------------------

inline zlink::task<count_up> count(zlink::host& host, std::string id, std::string sender, std::uint64_t number,
                                   std::chrono::milliseconds limit = 20s) {
  return host.spots().request_to_spot(std::move(id), count_up{std::move(sender), number}).timeout(limit).submit<count_up>();
}
inline zlink::task<count_up> rouse(zlink::host& host, std::string id, std::string sender = "first", std::uint64_t number = 0) {
  return host.spots().request_to_spot(std::move(id), count_up{std::move(sender), number}).instance_spot("ledger").submit<count_up>();
}
inline zlink::task<void> jot(zlink::host& host, std::string id, std::string sender, std::uint64_t number) {
  return host.spots().send_to_spot(std::move(id), note{std::move(sender), number}).submit();
}
inline zlink::task<acted> bid(zlink::host& host, std::string id, std::string word) {
  return host.spots().request_to_spot(std::move(id), act{std::move(word)}).submit<acted>();
}
inline ledger_view look_at(mesh& net, std::size_t host, std::string id) {
  return net.run(net.host(host).spots().request_to_spot(std::move(id), look{}).submit<ledger_view>());
}

// -- moves of one unit ------------------------------------------------------------------------------------------------

inline zlink::detail::unit_kind kind_of(const zlink::detail::spot_object& spot) {
  using zlink::detail::unit_kind;
  if (spot.factory().kind == zlink::spot_kind::instance)
    return unit_kind::instance_spot;
  return spot.factory().mode == zlink::detail::execution_mode::spot_wide ? unit_kind::spot_wide : unit_kind::per_actor_spot;
}

inline zlink::task<zlink::detail::unit_end> start_move(zlink::host& from, zlink::detail::relocation_unit unit, zlink::host& to,
                                                       std::chrono::milliseconds limit = 20s) {
  using namespace zlink::detail;
  auto& source = from.runtime();
  auto ended = new_counted<operation<unit_end>>();
  ended->verb = "move of";
  ended->subject = std::string{id_in(unit.lead->address())};
  ended->dispatcher = source.dispatcher;
  source.infra->post([&source, unit = std::move(unit), target = to.runtime().find_node("m")->identity, due = source.time->now() + limit, ended] {
    zlink::detail::start_coroutine(source.moving.move(unit, target, due), [ended](zlink::result<unit_end> end) { ended->set(std::move(end)); });
  });
  return zlink::task<unit_end>{std::move(ended)};
}
inline zlink::task<zlink::detail::unit_end> start_move(mesh& net, const std::string& id, std::size_t from, std::size_t to,
                                                       std::chrono::milliseconds limit = 20s) {
  auto& source = net.host(from).runtime();
  auto spot = source.objects.find(id);
  REQUIRE(spot);
  const auto kind = kind_of(*spot);
  return start_move(net.host(from), {kind, source.find_node("m"), zlink::detail::counted_ptr<zlink::detail::hosted_object>{spot}}, net.host(to), limit);
}
inline bool lives(mesh& net, std::size_t host, const std::string& id) { return static_cast<bool>(net.host(host).runtime().objects.find(id)); }
inline std::size_t home_of(mesh& net, const std::string& id) {
  for (std::size_t i = 0; i < net.size(); ++i)
    if (lives(net, i, id))
      return i;
  return net.size();
}

} // namespace relocation_test
