// Hosts whose handlers are all busy, and what members may still do when a host ends (06 sections 19 and 20).
#include "tests/contract/relocation/room_scene.hpp"
#include "zlink/messaging/mesh_links.hpp"

namespace relocation_test {
namespace {

/// A pool for worker bodies that are all held while somebody says so.
class held_pool final : public zlink::detail::worker_pool {
public:
  held_pool(std::shared_ptr<worker_pool> inner, const bool& held, std::vector<zlink::unique_function<void()>>& waiting)
    : inner_(std::move(inner)), held_(held), waiting_(waiting) {}
  void submit(zlink::unique_function<void()> body) override {
    if (held_)
      waiting_.push_back(std::move(body));
    else
      inner_->submit(std::move(body));
  }
  void stop() override {
    waiting_.clear();
    inner_->stop();
  }

private:
  std::shared_ptr<worker_pool> inner_;
  const bool& held_;
  std::vector<zlink::unique_function<void()>>& waiting_;
};
class held_environment final : public zlink::execution_environment {
public:
  explicit held_environment(const bool& held) : held_(held) {}
  std::shared_ptr<zlink::detail::serial_executor> make_serial(std::string name, std::shared_ptr<const zlink::clock> time) override {
    return inner->make_serial(std::move(name), std::move(time));
  }
  std::shared_ptr<zlink::detail::worker_pool> make_workers(zlink::worker_options options) override {
    return std::make_shared<held_pool>(inner->make_workers(options), held_, waiting_);
  }
  std::shared_ptr<execution_environment> inner;

private:
  const bool& held_;
  std::vector<zlink::unique_function<void()>> waiting_;
};
std::string spot_of(mesh& net, std::size_t host, const std::string& prefix) {
  for (int i = 0;; ++i) {
    const auto id = prefix + std::to_string(i);
    net.run(rouse(net.host(host), id));
    net.run_until_idle();
    if (net.owner_of(id) == host)
      return id;
  }
}

TEST_CASE("L-261 all handlers and workers of a host are busy: replies come, its lease goes on, a unit on its way arrives, what follows it is passed on") {
  stage on;
  bool busy = false;
  mesh net{{.hosts = 3, .max_link_delay = 1ms, .adjust = [&](std::size_t, zlink::host_options& options) {
              auto held = std::make_shared<held_environment>(busy);
              held->inner = options.environment;
              options.environment = held;
            }}};
  net.start(serve(on));
  const auto moving = spot_of(net, 0, "a");
  const auto idle = spot_of(net, 0, "i");
  const auto other = spot_of(net, 1, "o");
  net.run(count(net.host(2), moving, "x", 0)); // its sender knows a route
  bool occupied = false;
  net.host(0).runtime().moving.on_step = [&](move_step step, const std::string&) {
    if (step == move_step::captured && !std::exchange(occupied, true)) {
      net.occupy_handlers(0);
      busy = true;
    }
  };
  auto held = start_move(net, moving, 0, 1);
  net.run_until([&] { return occupied; });
  auto idle_asked = count(net.host(2), idle, "x", 1, 100s);
  CHECK(net.run(std::move(held)).left);
  CHECK(net.run(count(net.host(2), moving, "x", 1, 2s)).number == 1); // held here, or passed on
  CHECK(look_at(net, 2, moving).rid == rid_of(net, 1));
  CHECK(net.run(count(net.host(0), other, "x", 1, 2s)).number == 1);  // a reply for who is outside
  CHECK(net.run(count(net.host(0), moving, "x", 2, 2s)).number == 2);
  const auto row = *row_of(net, idle);
  net.advance(60s); // four leases
  CHECK(row_of(net, idle)->owner == row.owner);
  CHECK(net.host(0).runtime().ownership->held());
  CHECK(net.host(0).status().accepting_work);
  CHECK(!idle_asked.ready()); // it is the application that waits
  CHECK(on.count("handle " + idle + " x/1") == 0);
  CHECK(on.count("closing " + moving) == 0);
  busy = false;
  net.free_handlers(0);
  CHECK(net.run(std::move(idle_asked)).number == 1);
  net.run_until([&] { return on.count("closing " + moving + " relocation_out") == 1; });
}

TEST_CASE("L-261 a host whose Spots all wait in their handlers takes in a unit, and a handler that waits for a reply gets it") {
  stage on;
  barrier never;
  mesh net{3};
  net.start(serve(on));
  const auto moving = spot_of(net, 0, "a");
  const auto other = spot_of(net, 2, "o");
  const std::vector<std::string> waiting{spot_of(net, 1, "w"), spot_of(net, 1, "v")};
  on.acts = [&](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word == "asks") {
      auto asking = context.outbound().request_to_spot(other, count_up{"w", 1}).submit<count_up>();
      static_cast<void>(co_await std::move(asking));
    } else if (word == "waits") {
      auto standing = never.passed();
      co_await std::move(standing);
    }
  };
  auto stands = bid(net.host(2), waiting[0], "waits");
  net.run_until([&] { return never.waiting() == 1; });
  CHECK(net.run(bid(net.host(2), waiting[1], "asks")).rid == rid_of(net, 1));
  auto stands_too = bid(net.host(2), waiting[1], "waits");
  net.run_until([&] { return never.waiting() == 2; });
  CHECK(net.run(start_move(net, moving, 0, 1)).left);
  CHECK(net.run(count(net.host(2), moving, "x", 1, 2s)).number == 1);
  CHECK(net.owner_of(moving) == 1);
  never.open();
  static_cast<void>(net.run(zlink::as_result(std::move(stands))));
  static_cast<void>(net.run(zlink::as_result(std::move(stands_too))));
}

// -- the end of a host ----------------------------------------------------------------------------------------------------

/// What a Spot found in its last callback. Outlives the mesh.
struct last_look {
  std::vector<std::string> found;
  std::function<zlink::task<void>(std::string spot, std::vector<player*> members)> does;
};
template <class Base>
class looking_place : public place<Base> {
public:
  template <class Context>
  looking_place(Context context, stage& on, last_look& last) : place<Base>(std::move(context), on), last_(last) {}
  ~looking_place() override { this->on.trace.push_back("destroy " + kept_name_); }
  zlink::task<void> on_initialize() override {
    kept_name_ = this->name();
    co_return;
  }
  zlink::task<void> on_disconnect_actor(player& who) override {
    this->on.happened("disconnected", who.id());
    co_return;
  }
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token) override {
    this->on.happened("closing", this->name(), to_string(why.reason));
    std::vector<player*> all;
    if constexpr (std::is_same_v<Base, zlink::spot<player>>)
      for (player* who : this->members())
        all.push_back(who);
    if (!last_.does)
      co_return;
    auto doing = last_.does(this->name(), all);
    co_await std::move(doing);
    this->on.happened("closed", this->name());
  }

private:
  last_look& last_;
  std::string kept_name_;
};
using looking_hall = looking_place<zlink::entry_spot<player>>;
class looking_room final : public looking_place<zlink::spot<player>> {
public:
  using looking_place::looking_place;
  zlink::task<zlink::actor_join_response> on_actor_join(std::string, const zlink::message&) override { co_return zlink::accept(); }
};

TEST_CASE("L-242 OnClosing at host shutdown uses members and the instance; scope and rows go after it, and no Actor is called") {
  stage on;
  last_look last;
  barrier hold;
  mesh net{2};
  net.start([&](zlink::host& host) {
    auto server = host.add_mesh("m").object_server();
    server.add_entry_spot<looking_hall>([&](zlink::entry_spot_context context) { return std::make_unique<looking_hall>(std::move(context), on, last); });
    server.add_spot_factory<looking_room>("room", [&](auto& factory) {
      factory.recreate_on_relocation().construct_with([&](zlink::spot_context context) { return std::make_unique<looking_room>(std::move(context), on, last); });
    });
    server.add_actor_factory<player>("player", [&](auto& factory) {
      factory.preserve_state_with(player_adapter{}).construct_with([&](zlink::actor_context context) { return std::make_unique<player>(std::move(context), on); });
    });
  });
  const table t{net, on, "r", {"ada", "bob"}};
  for (const auto* who : {"ada", "bob"})
    net.run(say(net.host(0), who, "hello"));
  on.trace.clear();
  last.does = [&](std::string spot, std::vector<player*> members) -> zlink::task<void> {
    if (spot != t.room)
      co_return;
    for (player* who : members) {
      who->state.heard.push_back("goodbye");
      last.found.push_back(who->id() + ' ' + who->context().spot_id() + ' ' + std::to_string(who->state.heard.size()));
      CHECK(player_row(net, who->id()));
    }
    CHECK(row_of(net, spot));
    auto standing = hold.passed();
    co_await std::move(standing);
    for (player* who : members)
      last.found.push_back(who->id() + ' ' + who->state.heard.back());
  };
  auto ending = net.host(t.home).shutdown();
  net.run_until([&] { return hold.waiting() == 1; });
  net.advance(2s);
  CHECK(row_of(net, t.room));
  CHECK(player_row(net, "ada"));
  CHECK(player_row(net, "bob"));
  for (const auto& there : {"destroy " + t.room, std::string{"destroy ada"}, std::string{"destroy bob"}})
    CHECK(on.count(there) == 0);
  hold.open();
  const auto end = net.run(std::move(ending));
  CHECK(end.outcome == zlink::shutdown_outcome::stopped);
  CHECK(last.found == std::vector<std::string>{"ada " + t.room + " 2", "bob " + t.room + " 2", "ada goodbye", "bob goodbye"});
  CHECK(on.count("closing " + t.room + " host_shutdown") == 1);
  CHECK(on.count("closing hall host_shutdown") == 1);
  CHECK(!row_of(net, t.room));
  CHECK(!player_row(net, "ada"));
  CHECK(!player_row(net, "bob"));
  for (const auto& gone : {"destroy " + t.room, std::string{"destroy ada"}, std::string{"destroy bob"}}) {
    REQUIRE(on.count(gone) == 1);
    CHECK(std::ranges::find(on.trace, "closed " + t.room) < std::ranges::find(on.trace, gone));
  }
  CHECK(on.count("left") + on.count("disconnected") + on.count("joined") + on.count("completed") == 0);
  last.does = nullptr;
}

TEST_CASE("L-246 a host that drains begins no link and takes none, tells its peers that it drains, and stays so when it loses one") {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) { // who of two nodes dials is a matter of their names
    CAPTURE(seed);
    stage on;
    barrier handler;
    mesh net{{.hosts = 3, .seed = seed}};
    net.start(serve(on));
    const auto held = spot_of(net, 0, "h");
    net.kill(2);
    net.advance(1s);
    on.hold("handle", handler);
    auto running = net.host(1).spots().request_to_spot(held, count_up{"x", 1}).timeout(60s).submit<count_up>();
    net.run_until([&] { return handler.waiting() == 1; });
    auto ending = net.host(0).shutdown();
    net.advance(500ms);
    const auto& links = *net.host(0).runtime().find_node("m")->links;
    CHECK(links.ready_count() == 1);
    net.restart(2);
    net.advance(5s);
    CHECK(links.ready_count() == 1); // with who was its peer before
    CHECK(!links.ready_link(rid_of(net, 2)));
    CHECK(!net.host(2).runtime().find_node("m")->links->ready_link(rid_of(net, 0)));
    CHECK(net.host(2).runtime().find_node("m")->links->ready_link(rid_of(net, 1)));
    const auto told = creation_test::descriptor_of(net, rid_of(net, 0));
    REQUIRE(told);
    CHECK(told->state == zlink::placement::node_state::draining);
    net.lose_links(0, 1);
    net.advance(5s);
    CHECK(links.ready_count() == 0);
    CHECK(net.host(0).status().state == zlink::host_state::draining);
    CHECK(!ending.ready());
    handler.open();
    CHECK(net.run(std::move(ending)).outcome == zlink::shutdown_outcome::stopped);
    static_cast<void>(net.run(zlink::as_result(std::move(running))));
  }
}

} // namespace
} // namespace relocation_test
