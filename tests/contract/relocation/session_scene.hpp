// Actors that are bound to the session of a client, and what stands for its connection.
#pragma once

#include "tests/contract/relocation/room_scene.hpp"
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {

/// What a client sends, hears, and sees of its connection. Outlives the mesh.
class client final : public zlink::detail::session_connection, public zlink::detail::reply_receiver {
public:
  std::vector<std::string> closed;           ///< diagnostics
  std::map<std::uint64_t, std::string> ends; ///< of requests: "word@rid", or the kind of the error
  std::uint64_t repeated = 0;                ///< ends of a request that had one

  void close(const std::string& why) override { closed.push_back(why); }
  void receive_reply(zlink::detail::record* r) noexcept override {
    std::string end = "?";
    played answer;
    if (const auto* failed = r->body.get<zlink::error>())
      end = to_string(failed->kind());
    else if (const auto* near = r->body.get<played>())
      end = near->word + '@' + near->rid;
    else if (!zlink::detail::decode_reply(r->body, zlink::detail::packet_type_of<played>(), &answer))
      end = answer.word + '@' + answer.rid;
    repeated += ends.emplace(r->reply.id, end).second ? 0 : 1;
    zlink::detail::free_record(r);
  }
  void ref_receiver() noexcept override {}
  void unref_receiver() noexcept override {}
};

/// The session `name` of the node at `owner`.
class session {
public:
  session(mesh& net, std::size_t owner, std::string name, std::shared_ptr<client> of)
    : net_(net), owner_(owner), name_(std::move(name)), client_(std::move(of)) {}

  zlink::detail::session_binding binding(std::uint64_t generation = 1) const {
    const auto& node = net_.host(owner_).runtime().find_node("m")->identity;
    return {node.node_rid, node.lifecycle.value, name_, generation};
  }
  /// Both sides know.
  void bind(const std::string& who, std::uint64_t generation = 1) {
    auto actor = net_.host(home_of_player(net_, who)).runtime().objects.find_actor(who);
    REQUIRE(actor);
    actor->bind_session(binding(generation));
    bind_here(who, *actor, generation);
  }
  /// Only the session owner knows.
  void bind_here(const std::string& who, const zlink::detail::actor_object& actor, std::uint64_t generation = 1) {
    sessions().bind(who, binding(generation), {"m", actor.home_node().node_rid, actor.generation(), actor.authority(), {}}, client_);
  }
  void say(const std::string& who, std::string word) { relay(who, zlink::detail::make_message_record(play{std::move(word)}, false)); }
  /// Its end is told under that number.
  void ask(const std::string& who, std::string word, std::uint64_t number, std::chrono::milliseconds limit = 20s) {
    auto* r = zlink::detail::make_message_record(play{std::move(word)}, true);
    r->reply = {client_.get(), number};
    r->deadline = runtime().time->now() + limit;
    relay(who, r);
  }
  std::string place_of(const std::string& who) const {
    const auto at = sessions().ref(name_, who);
    return at ? at->node_rid : "nowhere";
  }
  zlink::detail::bound_routes& sessions() const { return runtime().sessions; }
  const std::string& name() const { return name_; }
  client& of() const { return *client_; }

private:
  zlink::detail::host_runtime& runtime() const { return net_.host(owner_).runtime(); }
  void relay(const std::string& who, zlink::detail::record* r) {
    zlink::detail::submission message{r, zlink::detail::actor_address(who), nullptr, nullptr, runtime().time->now() + 20s};
    runtime().infra->post([this, who, message = std::move(message)]() mutable { sessions().relay(name_, who, std::move(message)); });
  }

  mesh& net_;
  std::size_t owner_;
  std::string name_;
  std::shared_ptr<client> client_;
};

/// Three hosts; the Actor "ann" on host `from`, which can move to `to`; sessions belong to `owner`.
struct bound_scene {
  stage on;
  std::shared_ptr<client> who = std::make_shared<client>();
  tampered_wire wire;
  move_log log;
  mesh net;
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t owner = 0;
  std::optional<session> ann;

  explicit bound_scene(zlink::testing::mesh_options options = {}, std::optional<room_settings> rooms = std::nullopt)
    : net(with_taps(std::move(options))) {
    net.start(serve_rooms(on, rooms.value_or(room_settings{})));
    create("ann");
    from = home_of_player(net, "ann");
    to = (from + 1) % 3;
    owner = (from + 2) % 3;
    ann.emplace(net, owner, "s", who);
    ann->bind("ann");
  }
  /// Lives on host `from`, if that is known.
  void create(const std::string& name, std::optional<std::size_t> where = std::nullopt) {
    net.run(net.host(0).actors().create(name, "player").submit());
    if (where && home_of_player(net, name) != *where)
      move(name, home_of_player(net, name), *where);
  }
  void move(const std::string& name, std::size_t source, std::size_t target) {
    REQUIRE(net.run(start_actor_move(net, name, source, target)).left);
    settle(name, source, target);
  }
  void settle(const std::string& name, std::size_t source, std::size_t target) {
    net.run_until([&] { return !player_lives(net, source, name) && player_lives(net, target, name); });
    net.run_until_idle();
  }
  auto start() { return start_actor_move(net, "ann", from, to); }
  auto start_and_hold(const std::string& step, barrier& until) {
    on.hold(step, until);
    auto moving = start();
    net.run_until([&] { return until.waiting() == 1; });
    return moving;
  }
  /// What "ann" has heard, wherever she is.
  std::vector<std::string> heard() { return net.run(say(net.host(from), "ann", "?")).heard; }
  std::size_t told() const { return wire.count(control_command::session_relocation_route); }

private:
  zlink::testing::mesh_options with_taps(zlink::testing::mesh_options options) {
    options.hosts = 3;
    const auto more = std::move(options.adjust);
    options.adjust = [tap = log.listens(wire.taps()), more](std::size_t host, zlink::host_options& of) {
      tap(host, of);
      if (more)
        more(host, of);
    };
    return options;
  }
};

} // namespace relocation_test
