// A host that is to be emptied, others that could take what it has, and a mover that moves nothing and says what a test wants.
#pragma once

#include "relocation/host_relocate.hpp"
#include "relocation/unit_mover.hpp"
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <algorithm>

namespace host_relocate_test {

using namespace std::chrono_literals;
using creation_test::barrier;
using creation_test::descriptor_of;
using creation_test::failure;
using zlink::error_kind;
using zlink::host_state;
using zlink::relocate_mode;
using zlink::relocate_options;
using zlink::relocate_outcome;
using zlink::relocate_reason;
using zlink::relocate_result;
using zlink::detail::unit_end;
using zlink::detail::unit_kind;
using zlink::placement::node_state;
using zlink::testing::mesh;
using zlink::testing::store_call;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

struct greet {
  std::string word;
};
struct enter {
  std::string room; ///< empty: home to the Entry Spot
};
ZLINK_PACKET(greet, "leaving.greet", word)
ZLINK_PACKET(enter, "leaving.enter", room)

/// Says of every unit that it has left, unless the test has something else to say.
class stand_in final : public zlink::detail::unit_mover {
public:
  struct unit {
    unit_kind kind;
    std::string id;
    std::string target; ///< its RID
  };
  std::vector<unit> begun;
  std::vector<std::string> ended; ///< ids
  std::function<zlink::task<unit_end>(const unit&)> answer;
  std::size_t under_way = 0;
  bool is_quiet = true;

  zlink::task<unit_end> move(zlink::detail::relocation_unit what, zlink::placement::node_identity target,
                             zlink::steady_time) override {
    const unit one{what.kind, std::string{zlink::detail::id_in(what.lead->address())}, target.node_rid};
    begun.push_back(one);
    ++under_way;
    unit_end end{true, relocate_reason::none, "", {}};
    if (answer) {
      auto asking = answer(one);
      end = co_await std::move(asking);
    }
    --under_way;
    ended.push_back(one.id);
    co_return end;
  }
  bool quiet() const noexcept override { return is_quiet; }
  std::vector<std::string> ids() const {
    std::vector<std::string> all;
    for (const auto& one : begun)
      all.push_back(one.id);
    return all;
  }
  bool has_begun(const std::string& id) const { return std::ranges::count(ids(), id) != 0; }
};
inline zlink::task<unit_end> at_once(bool left, relocate_reason reason = relocate_reason::none) {
  return zlink::detail::make_ready_task(zlink::result<unit_end>{unit_end{left, reason, "as the test says", {}}});
}
inline zlink::task<unit_end> later(barrier& until, unit_end end = {true, relocate_reason::none, "", {}}) {
  auto waiting = until.passed();
  co_await std::move(waiting);
  co_return std::move(end);
}

class guest final : public zlink::actor {
public:
  using actor::actor;
  zlink::task<void> on_join_completed(const zlink::join_completion& join) override {
    ends.push_back(join);
    co_return;
  }
  inline static std::vector<zlink::join_completion> ends;
};

template <class Base>
class place : public Base {
public:
  using Base::Base;
  void configure() override { this->context().handlers().template add_actor_handler<&place::on_enter>(); }
  zlink::task<void> on_joined_actor(guest&) override { co_return; }
  zlink::task<void> on_leave_actor(guest&) override { co_return; }
  zlink::task<zlink::actor_join_response> ask() { co_return zlink::accept(); }

private:
  void on_enter(guest& who, const zlink::message_context&, const enter& m) {
    if (m.room.empty())
      who.context().join_entry_spot().timeout(2s).defer();
    else
      who.context().join_spot(m.room).timeout(2s).defer();
  }
};
using lobby = place<zlink::entry_spot<guest>>;
class salon : public place<zlink::spot<guest>> {
public:
  using place::place;
  zlink::task<zlink::actor_join_response> on_actor_join(std::string, const zlink::message&) override { return ask(); }
};
class street final : public salon {
public:
  using salon::salon;
};
class cell final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&cell::on_greet>(); }

private:
  greet on_greet(const greet& m, const zlink::message_context&) { return m; }
};
class cell_adapter final : public zlink::spot_adapter<cell> {
public:
  zlink::task<zlink::bytes> capture(cell&, std::stop_token) const override { co_return zlink::bytes{}; }
  zlink::task<void> restore(cell&, zlink::byte_view, std::stop_token) const override { co_return; }
};

enum class policy : std::uint8_t { recreate, disable, preserve };
struct house {
  policy of_cells = policy::recreate;
  policy of_guests = policy::recreate;
  std::uint32_t cell_limit = 0;
  bool with_cells = true;
};
inline void serve(zlink::mesh_node& node, const house& how = {}) {
  auto server = node.object_server();
  server.add_entry_spot<lobby>();
  server.add_spot_factory<salon>("salon", [](auto& factory) { factory.recreate_on_relocation(); });
  server.add_spot_factory<street>("street", [](auto& factory) { factory.recreate_on_relocation().per_actor(); });
  server.add_actor_factory<guest>("guest", [&](auto& factory) {
    how.of_guests == policy::disable ? factory.disable_relocation() : factory.recreate_on_relocation();
  });
  if (how.with_cells)
    server.add_instance_spot_factory<cell>("cell", [&](auto& factory) {
      factory.limit(how.cell_limit);
      if (how.of_cells == policy::preserve)
        factory.preserve_state_with(cell_adapter{});
      else
        how.of_cells == policy::disable ? factory.disable_relocation() : factory.recreate_on_relocation();
    });
}

struct plan {
  std::size_t hosts = 2;
  std::vector<house> houses = {};                                   ///< of the first hosts; the others are plain
  std::function<void(std::size_t, zlink::host_options&)> adjust = {};
  std::function<void(zlink::host&, std::size_t)> more = {};         ///< registered as well
};

/// Host 0 is the one that is to be left; nobody else has anything.
struct scene {
  explicit scene(plan given = {})
    : net({.hosts = given.hosts, .adjust = [this, adjust = given.adjust](std::size_t index, zlink::host_options& options) {
             if (index == 0)
               options.on_trace = [this](const zlink::trace_record& told) {
                 exceeded = exceeded || told.interruption_target_exceeded;
                 if (told.event.starts_with("zlink.runtime."))
                   traces.push_back(std::string{told.event.substr(14)} + ' ' + std::string{told.state} + ' ' + std::string{told.reason});
               };
             if (adjust)
               adjust(index, options);
           }}) {
    guest::ends.clear();
    net.start([given](zlink::host& host, std::size_t index) { // a restarted host is registered by it too
      auto& node = host.add_mesh("m");
      serve(node, index < given.houses.size() ? given.houses[index] : house{});
      if (index != 0)
        node.placement_weight(0);
      if (given.more)
        given.more(host, index);
    });
    moving().use_mover(mover);
  }
  zlink::host& leaving() { return net.host(0); }
  zlink::detail::host_relocate& moving() { return leaving().runtime().relocating(); }
  std::string rid(std::size_t host) { return net.host(host).mesh("m").rid(); }
  host_state state() { return leaving().status().state; }
  /// From now on the others take what comes.
  void open_others() {
    for (std::size_t i = 1; i < net.size(); ++i)
      net.host(i).mesh("m").placement_weight(100);
    net.advance(2s);
  }
  void add_guest(const std::string& id) { net.run(leaving().actors().create(id, "guest").in_mesh("m").submit()); }
  void add_spot(const std::string& id, const std::string& type) { net.run(leaving().spots().get_or_create(id, type).in_mesh("m").submit()); }
  void add_cell(const std::string& id) {
    net.run(leaving().spots().request_to_spot(id, greet{"hello"}).instance_spot("cell").in_mesh("m").submit<greet>());
  }
  void send_guest(const std::string& id, const std::string& room) {
    const auto before = guest::ends.size();
    net.run(leaving().actors().send_to_actor(id, enter{room}).submit());
    net.run_until([&] { return guest::ends.size() > before; });
    net.run_until_idle();
  }
  /// One of each kind: ann, the street st with bob, the salon sal with cid, the cell c.
  void fill() {
    for (const auto* id : {"ann", "bob", "cid"})
      add_guest(id);
    add_spot("st", "street");
    add_spot("sal", "salon");
    send_guest("bob", "st");
    send_guest("cid", "sal");
    add_cell("c");
    open_others();
  }
  relocate_result relocate(relocate_options how = {}) { return net.run(leaving().relocate(how)); }
  node_state published(std::size_t host = 0) { return descriptor_of(net, rid(host))->state; }

  stand_in mover;
  std::vector<std::string> traces;
  bool exceeded = false; ///< a unit stood still for too long, by its trace
  mesh net;
};

inline relocate_options within(std::chrono::milliseconds deadline) {
  relocate_options how;
  how.deadline = deadline;
  return how;
}
inline relocate_options update_to(std::uint64_t version, std::chrono::milliseconds deadline = 5s) {
  relocate_options how;
  how.mode = relocate_mode::rolling_update;
  how.target_version = version;
  how.deadline = deadline;
  return how;
}

} // namespace host_relocate_test
