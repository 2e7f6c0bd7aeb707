// Many nodes, few ids, and everything that can go wrong: whatever the order, an id has one incarnation that runs at a
// time, each incarnation is built and closed once, and everybody who asked hears how it ended.
#include "tests/contract/creation/scripted_spots.hpp"
#include "tests/sim/checkers.hpp"

#include <cstdlib>
#include <map>
#include <random>
#include <set>

namespace creation_test {
namespace {

/// More of them by ZLINK_TEST_SEEDS in the environment.
std::uint64_t seeds(std::uint64_t usual) {
  const char* wanted = std::getenv("ZLINK_TEST_SEEDS");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

/// What Spots report, and what must never be.
struct watch {
  std::map<std::string, int> factories; ///< by incarnation
  std::map<std::string, int> closings;  ///< by incarnation
  std::map<std::string, std::set<std::string>>
    inside; ///< id -> incarnations with a handler under way, dead nodes apart
  zlink::test::single_owner owners;
  zlink::test::at_most_once messages;
  std::set<std::string> dead_nodes;
  std::vector<std::string> broken;
  int resumed = 0;

  static std::string name(const zlink::common_spot_context& of) {
    return of.spot_id() + '#' + std::to_string(of.object_generation());
  }
  void enter(const zlink::common_spot_context& of) {
    auto& now = inside[of.spot_id()];
    for (const auto& other : now)
      if (other != name(of))
        broken.push_back(name(of) + " runs a handler while " + other + " does");
    if (!dead_nodes.contains(of.node_rid()))
      now.insert(name(of));
    if (factories[name(of)] == 0 || closings[name(of)] != 0)
      broken.push_back(name(of) + " runs a handler before it was built or after it was closed");
    owners.ran(of.spot_id(), name(of));
  }
  void leave(const zlink::common_spot_context& of) { inside[of.spot_id()].erase(name(of)); }
  void died(const std::string& rid) {
    dead_nodes.insert(rid);
    inside.clear(); // what stood still there never goes on; others enter anew
  }
};

template <class Base>
class watched final : public Base {
public:
  template <class Context>
  watched(Context context, watch& on) : Base(std::move(context)), on_(on) {
    if (++on_.factories[watch::name(this->context())] > 1 + on_.resumed)
      on_.broken.push_back(watch::name(this->context()) + " was built again");
  }
  void configure() override {
    this->context().handlers().template add_packet<&watched::on_wake>();
    this->context().handlers().template add_packet<&watched::on_hint>();
  }
  zlink::task<void> on_initialize() override { return work(); }
  zlink::task<void> on_closing(const zlink::spot_closing_context&, std::stop_token) override {
    if (++on_.closings[watch::name(this->context())] > 1)
      on_.broken.push_back(watch::name(this->context()) + " was closed again");
    return work();
  }

private:
  zlink::task<void> work() {
    auto call = this->context().run_cpu_worker([](std::stop_token) {});
    [[maybe_unused]] const auto worked = co_await zlink::as_result(call.submit());
  }
  zlink::task<told> on_wake(const wake& m, const zlink::message_context&) {
    on_.messages.ran(m.word);
    on_.enter(this->context());
    co_await work();
    on_.leave(this->context());
    told answer{m.word, this->context().object_generation(), this->context().node_rid()};
    if (m.word.ends_with("close"))
      [[maybe_unused]] const auto closed = co_await zlink::as_result(this->context().close());
    co_return answer;
  }
  void on_hint(const hint& m, const zlink::message_context&) {
    on_.messages.ran(m.word);
    on_.enter(this->context());
    on_.leave(this->context());
  }

  watch& on_;
};
using watched_cell = watched<zlink::instance_spot>;
using watched_room = watched<zlink::spot<>>;

auto serve_watched(watch& on) {
  return [&on](zlink::host& host) {
    host.add_mesh("m")
      .object_server()
      .add_instance_spot_factory<watched_cell>("cell",
                                               [&on](auto& factory) {
                                                 factory.disable_relocation().construct_with(
                                                   [&on](zlink::instance_spot_context context) {
                                                     return std::make_unique<watched_cell>(std::move(context), on);
                                                   });
                                               })
      .add_spot_factory<watched_room>("room", [&on](auto& factory) {
        factory.disable_relocation().construct_with(
          [&on](zlink::spot_context context) { return std::make_unique<watched_room>(std::move(context), on); });
      });
  };
}

/// Calls under way, by the host that made them.
struct calls {
  struct one {
    std::size_t host;
    std::string what;
    std::optional<std::string> end;
  };
  std::vector<std::shared_ptr<one>> all;

  template <class T, class Note>
  void add(std::size_t host, std::string what, zlink::task<T> call, Note note) {
    auto made = std::make_shared<one>(one{host, std::move(what), {}});
    all.push_back(made);
    std::move(call).then([made, note = std::move(note)](zlink::result<T> end) mutable {
      if (made->end)
        made->end = "twice";
      else
        made->end = end ? "well" : end.is_cancelled() ? "cancelled" : zlink::to_string(end.error().kind());
      if constexpr (std::is_void_v<T>)
        note();
      else if (end)
        note(*end);
    });
  }
};

/// One run of everything at once.
struct chaos {
  explicit chaos(std::uint64_t seed, bool kills, bool loses_stores)
    : choice(seed),
      with_kills(kills),
      with_stores(loses_stores),
      net({.hosts = 4,
           .seed = seed,
           .max_link_delay = 10ms,
           .max_store_delay = 10ms,
           .adjust = [this](std::size_t, zlink::host_options& options) {
             options.on_trace = [this](const zlink::trace_record& told) {
               on.resumed += told.event == "resumed" ? 1 : 0;
             };
           }}) {}

  std::size_t pick(std::size_t n) { return choice() % n; }
  std::string cell_id() { return "cell " + std::to_string(pick(3)); }
  std::string room_id() { return "room " + std::to_string(pick(2)); }
  std::size_t live_host() {
    for (;;)
      if (const auto host = pick(4); host != killed)
        return host;
  }

  void run() {
    net.start(serve_watched(on));
    for (int step = 0; step < 60; ++step) {
      if (pick(5) == 0)
        fault();
      else
        call(step);
      net.advance(std::chrono::milliseconds{pick(4) == 0 ? pick(40) : pick(4)});
    }
    net.heal();
    for (std::size_t host = 0; host < 4; ++host)
      if (host != killed) {
        net.faults(host).clear_script();
        net.faults(host).release_all();
      }
    net.advance(6min); // the sweep has passed several times
    judge();
  }

  void call(int step) {
    const auto from = live_host();
    auto spots = net.host(from).spots();
    const auto word = std::to_string(step) + (pick(6) == 0 ? " close" : "");
    const std::chrono::milliseconds limit = pick(4) == 0 ? 50ms : 5s;
    switch (pick(6)) {
      case 0:
      case 1: {
        const auto id = cell_id();
        auto request = spots.request_to_spot(id, wake{word}).instance_spot("cell").timeout(limit);
        made.add(from, "wake " + id, request.submit<told>(), [](const told&) {});
        break;
      }
      case 2: {
        const auto id = cell_id();
        auto send = spots.send_to_spot(id, hint{word}).instance_spot("cell");
        made.add(from, "send " + id, send.submit(), [] {});
        break;
      }
      case 3: {
        const auto id = room_id();
        auto create = spots.get_or_create(id, "room").timeout(limit);
        made.add(from, "create " + id, create.submit(), [this](const zlink::spot_create_result& done) {
          refs[done.spot.spot_id] = done.spot;
          if (done.state == zlink::spot_create_state::created
              && !created.insert(done.spot.spot_id + '#' + std::to_string(done.spot.object_generation)).second)
            on.broken.push_back("two callers created the same incarnation");
        });
        break;
      }
      case 4: {
        const auto id = room_id();
        auto request = spots.request_to_spot(id, wake{word}).timeout(limit);
        made.add(from, "ask " + id, request.submit<told>(), [](const told&) {});
        break;
      }
      default:
        if (const auto ref = refs.find(room_id()); ref != refs.end())
          made.add(from, "close " + ref->first, spots.close(ref->second), [](bool) {});
    }
  }

  void fault() {
    const auto at = live_host();
    const auto other = live_host();
    const auto on_rows = [&](store_fault what) {
      net.faults(at).once(store_operation::write,
                          zlink::placement::spot_key(pick(2) == 0 ? "cell " + std::to_string(pick(3)) : room_id()),
                          what);
    };
    switch (pick(with_kills ? 7 : 6)) {
      case 0: on_rows(store_fault::conflict); break;
      case 1: on_rows(store_fault::lose_reply); break;
      case 2:
        if (with_stores)
          on_rows(pick(2) == 0 ? store_fault::vanish : store_fault::late);
        break;
      case 3:
        if (at != other)
          net.lose_links(at, other);
        break;
      case 4:
        if (at != other)
          net.mute(at, other);
        break;
      case 5: net.heal(); break;
      default:
        if (killed == none && pick(3) == 0) {
          killed = at;
          on.died(net.host(at).mesh("m").rid());
          net.kill(at);
        }
    }
  }

  void judge() {
    CHECK(on.broken == std::vector<std::string>{});
    CHECK(on.owners.broken() == std::vector<std::string>{});
    CHECK(on.messages.broken() == std::vector<std::string>{});
    for (const auto& one : made.all) {
      INFO(one->what, " of host ", one->host);
      if (one->host != killed)
        CHECK(one->end.value_or("never") != "never");
      CHECK(one->end.value_or("") != "twice");
    }
    // No id is lost for good: those of live nodes answer, those of the dead one are released by their refs.
    const auto asker = killed == 0 ? std::size_t{1} : std::size_t{0};
    for (int i = 0; i < 3; ++i) {
      const auto id = "cell " + std::to_string(i);
      INFO("the end of ", id);
      release_if_dead(asker, id);
      const auto end = net.run(zlink::as_result(rouse(net.host(asker), id, "end of " + id)));
      CHECK((end ? std::string{"well"} : zlink::to_string(end.error())) == "well");
    }
    for (int i = 0; i < 2; ++i) {
      const auto id = "room " + std::to_string(i);
      INFO("the end of ", id);
      release_if_dead(asker, id);
      const auto end = net.run(zlink::as_result(open_room(net.host(asker), id)));
      CHECK((end ? std::string{"well"} : zlink::to_string(end.error())) == "well");
    }
    CHECK(on.broken == std::vector<std::string>{});
  }

  void release_if_dead(std::size_t asker, const std::string& id) {
    const auto row = row_of(net, id);
    if (row && on.dead_nodes.contains(row->node.node_rid))
      net.run(net.host(asker).spots().close({id, row->generation.value, "m", row->node.node_rid}));
  }

  static constexpr std::size_t none = 99;
  std::mt19937_64 choice;
  bool with_kills;
  bool with_stores;
  watch on;
  calls made;
  std::map<std::string, zlink::spot_ref> refs;
  std::set<std::string> created;
  std::size_t killed = none;
  mesh net;
};

TEST_CASE("C-71 C-99 C-100 C-109 C-115 competing activations, creations and closes under lost links and answers") {
  for (std::uint64_t seed = 1; seed <= seeds(120); ++seed) {
    INFO("seed ", seed);
    chaos{seed, false, false}.run();
  }
}

TEST_CASE("C-71 C-72 C-79 C-104 the same while writes of the store vanish, or happen later than anybody hears") {
  for (std::uint64_t seed = 1; seed <= seeds(120); ++seed) {
    INFO("seed ", seed);
    chaos{seed, false, true}.run();
  }
}

TEST_CASE("C-71 C-79 C-106 S-2 the same while a node dies") {
  for (std::uint64_t seed = 1; seed <= seeds(120); ++seed) {
    INFO("seed ", seed);
    chaos{seed, true, true}.run();
  }
}

TEST_CASE("M-148 D-7 what one origin sends to a missing id goes to one node, in order") {
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    INFO("seed ", seed);
    stage on;
    mesh net{{.hosts = 5, .seed = seed, .max_link_delay = 10ms, .max_store_delay = 10ms}};
    net.start(serve_beside_client(on));
    std::mt19937_64 choice{seed};
    std::string expected;
    for (int i = 0; i < 20; ++i) {
      const auto word = std::to_string(i);
      net.host(0).spots().send_to_spot("a", hint{word}).instance_spot("cell").submit();
      expected += word + ' ';
      net.advance(std::chrono::milliseconds{choice() % 4});
    }
    net.run_until_idle();
    std::string ran;
    for (const auto& one : on.trace)
      ran += one.starts_with("handle a ") ? one.substr(9) + ' ' : "";
    CHECK(ran == expected);
  }
}

} // namespace
} // namespace creation_test
