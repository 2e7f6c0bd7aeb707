// Rooms with players, all of whom move with what they know.
#pragma once

#include "tests/contract/relocation/move_scene.hpp"

namespace relocation_test {

struct play {
  std::string word;
};
struct played {
  std::string word;
  std::vector<std::string> heard; ///< all words of the player so far
  std::string room;
  std::string rid;
  std::uint64_t instance = 0;
};
struct enter {
  std::string room;
};
struct round_end {
  bool signal = true;
};
struct roll_call {};
struct room_view {
  std::vector<std::string> members;
  std::vector<std::string> words; ///< of all players, in the order in which they were heard
  std::uint64_t rounds = 0;
  std::string rid;
  std::uint64_t instance = 0;
};
struct player_state {
  std::vector<std::string> heard;
};
struct room_state {
  std::vector<std::string> words;
  std::uint64_t rounds = 0;
};
ZLINK_PACKET(play, "move.play", word)
ZLINK_PACKET(played, "move.played", word, heard, room, rid, instance)
ZLINK_PACKET(enter, "move.enter", room)
ZLINK_PACKET(round_end, "move.round_end", signal)
ZLINK_PACKET(roll_call, "move.roll_call")
ZLINK_PACKET(room_view, "move.room_view", members, words, rounds, rid, instance)
ZLINK_PACKET(player_state, "move.player_state", heard)
ZLINK_PACKET(room_state, "move.room_state", words, rounds)

class player final : public zlink::actor {
public:
  player(zlink::actor_context context, stage& on) : actor(std::move(context)), on(on), instance(++on.instances) {
    on.happened("make", id());
  }
  ~player() override { on.trace.push_back("destroy " + id_); }
  void configure() override { id_ = id(); }
  zlink::task<void> on_join_completed(const zlink::join_completion& join) override {
    const auto text = std::string{to_string(join.outcome)} + (join.error ? ' ' + std::string{zlink::to_string(join.error->kind())} : std::string{});
    on.operations.push_back(join.operation_id);
    on.happened("completed", id(), text);
    co_await on.wait("completed", id());
  }
  std::string id() const { return context().actor_id(); }
  stage& on;
  player_state state;
  const std::uint64_t instance;

private:
  std::string id_;
};

/// What rooms and halls have in common.
template <class Base>
class place : public Base {
public:
  template <class Context>
  place(Context context, stage& on) : Base(std::move(context)), on(on), instance(++on.instances) {
    on.happened("make", name());
  }
  void configure() override {
    this->context().handlers().template add_actor_handler<&place::on_play>().template add_actor_handler<&place::on_enter>();
  }
  zlink::task<void> on_initialize() override {
    on.happened("initialize", name());
    co_return;
  }
  zlink::task<void> on_joined_actor(player& who) override {
    on.happened("joined", name(), who.id());
    co_await on.wait("joined", name());
  }
  zlink::task<void> on_leave_actor(player& who) override {
    on.happened("left", name(), who.id());
    co_await on.wait("left", name());
  }
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token) override {
    on.happened("closing", name(), to_string(why.reason));
    co_return;
  }
  std::string name() const {
    const std::string& id = this->context().spot_id();
    return id.find("-entry-") == std::string::npos ? id : "hall";
  }
  stage& on;
  const std::uint64_t instance;
  room_state state;

private:
  zlink::task<played> on_play(player& who, const zlink::message_context&, const play& m) {
    on.happened("handle", who.id(), m.word);
    who.state.heard.push_back(m.word);
    state.words.push_back(who.id() + ' ' + m.word);
    co_await on.wait("handle", who.id());
    co_return played{m.word, who.state.heard, name(), this->context().node_rid(), who.instance};
  }
  void on_enter(player& who, const zlink::message_context&, const enter& m) {
    if (m.room.empty())
      who.context().join_entry_spot().timeout(5s).defer();
    else
      who.context().join_spot(m.room).timeout(5s).defer();
    ++on.registered[who.id()];
  }
};

class hall final : public place<zlink::entry_spot<player>> {
public:
  using place::place;
};

class room final : public place<zlink::spot<player>> {
public:
  using place::place;
  ~room() override { on.trace.push_back("destroy " + id_); }
  void configure() override {
    id_ = name();
    place::configure();
    context().handlers().add_packet<&room::on_round>().add_packet<&room::on_call>();
  }
  zlink::task<zlink::actor_join_response> on_actor_join(std::string who, const zlink::message&) override {
    on.happened("gate", name(), who);
    co_await on.wait("gate", name());
    co_return declines ? zlink::reject() : zlink::accept();
  }
  zlink::task<void> on_relocation_ready_completed(const zlink::spot_relocation_ready_completion& end) override {
    on.happened("boundary", name(), to_string(end.outcome));
    co_await on.wait("boundary", name());
  }
  bool declines = false;

private:
  room_view on_round(const round_end& m, const zlink::message_context& c) {
    ++state.rounds;
    if (m.signal)
      context().relocation_ready().defer();
    return view(c);
  }
  room_view on_call(const roll_call&, const zlink::message_context& c) { return view(c); }
  room_view view(const zlink::message_context&) {
    room_view seen{{}, state.words, state.rounds, context().node_rid(), instance};
    try {
      for (const player* who : members())
        seen.members.push_back(who->id());
    } catch (const zlink::operation_failed&) { // of a PerActor room
    }
    return seen;
  }

  std::string id_;
};

class player_adapter final : public zlink::actor_adapter<player> {
public:
  zlink::task<zlink::bytes> capture(player& from, std::stop_token) const override {
    from.on.happened("capture", from.id());
    co_await from.on.wait("capture", from.id());
    co_return zlink::encode(from.state);
  }
  zlink::task<void> restore(player& into, zlink::byte_view state, std::stop_token) const override {
    into.on.happened("restore", into.id());
    co_await into.on.wait("restore", into.id());
    into.state = zlink::decode<player_state>(state);
  }
};
class room_adapter final : public zlink::spot_adapter<room> {
public:
  zlink::task<zlink::bytes> capture(room& from, std::stop_token) const override {
    from.on.happened("capture", from.name());
    co_return zlink::encode(from.state);
  }
  zlink::task<void> restore(room& into, zlink::byte_view state, std::stop_token) const override {
    into.on.happened("restore", into.name());
    into.state = zlink::decode<room_state>(state);
    co_return;
  }
};

struct room_settings {
  bool signalled = false;
  bool per_actor = false;
  bool fixed_players = false; ///< with `disable_relocation`
  std::uint32_t room_limit = 0;
  std::uint32_t actors = 0;   ///< limit of the node
};
inline auto serve_rooms(stage& on, room_settings wanted = {}) {
  return [&on, wanted](zlink::host& host) {
    auto& node = host.add_mesh("m");
    auto server = node.object_server();
    server.add_entry_spot<hall>([&on](zlink::entry_spot_context context) { return std::make_unique<hall>(std::move(context), on); });
    server.add_spot_factory<room>("room", [&on, wanted](auto& factory) {
      factory.limit(wanted.room_limit).construct_with([&on](zlink::spot_context context) { return std::make_unique<room>(std::move(context), on); });
      if (wanted.per_actor)
        factory.recreate_on_relocation().per_actor();
      else
        factory.preserve_state_with(room_adapter{});
      if (wanted.signalled)
        factory.application_signaled();
    });
    server.add_actor_factory<player>("player", [&on, wanted](auto& factory) {
      factory.construct_with([&on](zlink::actor_context context) { return std::make_unique<player>(std::move(context), on); });
      if (wanted.fixed_players)
        factory.disable_relocation();
      else
        factory.preserve_state_with(player_adapter{});
    });
  };
}

// -- calls ------------------------------------------------------------------------------------------------------------

inline zlink::task<played> say(zlink::host& host, std::string who, std::string word, std::chrono::milliseconds limit = 20s) {
  return host.actors().request_to_actor(std::move(who), play{std::move(word)}).timeout(limit).submit<played>();
}
inline zlink::task<room_view> call_roll(zlink::host& host, std::string id) {
  return host.spots().request_to_spot(std::move(id), roll_call{}).submit<room_view>();
}
inline void go_to(mesh& net, stage& on, const std::string& who, const std::string& where) {
  const auto before = on.count("completed " + who);
  net.run(net.host(0).actors().send_to_actor(who, enter{where}).submit());
  net.run_until([&] { return on.count("completed " + who) > before; });
  net.run_until_idle();
}
inline std::string rid_of(mesh& net, std::size_t host) { return net.host(host).runtime().find_node("m")->identity.node_rid; }
inline std::size_t host_of(mesh& net, const std::string& rid) {
  for (std::size_t i = 0; i < net.size(); ++i)
    if (rid_of(net, i) == rid)
      return i;
  return net.size();
}
inline std::size_t home_of_player(mesh& net, const std::string& who) {
  for (std::size_t i = 0; i < net.size(); ++i)
    if (net.host(i).runtime().objects.find_actor(who))
      return i;
  return net.size();
}
inline bool player_lives(mesh& net, std::size_t host, const std::string& who) {
  return static_cast<bool>(net.host(host).runtime().objects.find_actor(who));
}
inline std::optional<zlink::placement::row_record> player_row(mesh& net, const std::string& who) {
  const auto seen = stored<zlink::placement::object_record>(net, zlink::placement::actor_key(who));
  const auto* row = zlink::placement::row_in(seen);
  return row == nullptr ? std::nullopt : std::optional{*row};
}
/// An Actor of an Entry Spot, or a member of a PerActor room.
inline zlink::task<zlink::detail::unit_end> start_actor_move(mesh& net, const std::string& who, std::size_t from, std::size_t to,
                                                             zlink::detail::unit_kind kind = zlink::detail::unit_kind::entry_actor) {
  auto& source = net.host(from).runtime();
  auto actor = source.objects.find_actor(who);
  REQUIRE(actor);
  zlink::detail::relocation_unit unit;
  unit.kind = kind;
  unit.node = source.find_node("m");
  unit.lead = zlink::detail::counted_ptr<zlink::detail::hosted_object>{actor};
  return start_move(net.host(from), std::move(unit), net.host(to));
}

/// A room on the host of its first player, where everybody goes.
struct table {
  table(mesh& net, stage& on, const std::string& id, const std::vector<std::string>& players) {
    for (int i = 0; home == static_cast<std::size_t>(-1); ++i) {
      const auto made = net.run(net.host(0).spots().get_or_create(id + std::to_string(i), "room").submit());
      room = made.spot.spot_id;
      home = host_of(net, made.spot.node_rid);
    }
    for (const auto& who : players) {
      net.run(net.host(home).actors().create(who, "player").submit());
      if (home_of_player(net, who) != home) {
        const auto at = home_of_player(net, who);
        REQUIRE(net.run(start_actor_move(net, who, at, home)).left);
        net.run_until([&] { return !player_lives(net, at, who) && player_lives(net, home, who); });
      }
      go_to(net, on, who, room);
    }
    net.run_until_idle();
  }
  std::string room;
  std::size_t home = static_cast<std::size_t>(-1);
};

} // namespace relocation_test
