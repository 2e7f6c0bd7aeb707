// One event to everybody who has subscribed (03 section 16).
#include "tests/contract/messaging/probe_spots.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <stop_token>

namespace zlink::test::messaging {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

/// Counts its copies and lives.
struct news {
  news() { ++alive; }
  explicit news(std::string what) : text(std::move(what)) { ++alive; }
  news(const news& other) : text(other.text) {
    ++alive;
    ++copies;
  }
  news(news&& other) noexcept : text(std::move(other.text)) { ++alive; }
  news& operator=(const news&) = default;
  news& operator=(news&&) = default;
  ~news() { --alive; }
  std::string text;
  static inline std::atomic<int> alive = 0;
  static inline std::atomic<int> copies = 0;
};
struct other_news {
  std::string text;
};
struct bad_news {
  std::string text;
};
ZLINK_PACKET(news, "probe.news", text)
ZLINK_PACKET(other_news, "probe.other_news", text)
ZLINK_PACKET(bad_news, "probe.bad_news", text)

/// What all listeners of a test do and have heard. Outlives the mesh.
struct audience {
  std::map<std::string, std::vector<std::string>> heard; ///< by Spot id
  latch gate;                                            ///< held by `held_note`
  latch birth;                                           ///< of Spots whose id begins with "slow"
  std::function<void()> more_subscriptions;
  std::vector<std::string> topics{"sport"};
  std::vector<description> contexts;

  std::vector<std::string> of(const std::string& id) const {
    const auto i = heard.find(id);
    return i == heard.end() ? std::vector<std::string>{} : i->second;
  }
};

template <class Base, class Context>
class listener : public Base {
public:
  listener(Context context, audience& all) : Base(std::move(context)), all_(all) {}
  void configure() override {
    const auto handlers = this->context().handlers();
    handlers.template add_packet<&listener::on_held_note>();
    handlers.template add_packet<&listener::on_ask>();
    for (const auto& topic : all_.topics)
      handlers.template add_subscribe<&listener::on_news>("press", topic)
        .template add_subscribe<&listener::on_bad_news>("press", topic);
  }
  task<void> on_initialize() override {
    if (id().starts_with("slow"))
      co_await all_.birth.wait();
  }

private:
  const std::string& id() const { return this->context().spot_id(); }
  void on_news(const news& m, const message_context& context) {
    all_.heard[id()].push_back(m.text);
    all_.contexts.push_back(describe_context(context));
  }
  void on_bad_news(const bad_news& m, const message_context&) {
    all_.heard[id()].push_back("bad " + m.text);
    throw std::runtime_error{"bad news"};
  }
  task<void> on_held_note(const held_note& m, const message_context&) {
    all_.heard[id()].push_back("begin " + m.text);
    co_await all_.gate.wait();
    all_.heard[id()].push_back("end " + m.text);
  }
  answer on_ask(const ask& m, const message_context&) { return {m.text + "!"}; }

  audience& all_;
};
using room = listener<spot<>, spot_context>;
using hall = listener<entry_spot<>, entry_spot_context>;

void serve_listeners(mesh_node& node, audience& all, bool with_hall = true) {
  auto server = node.object_server();
  if (with_hall)
    server.add_entry_spot<hall>([&all](entry_spot_context context) { return std::make_unique<hall>(std::move(context), all); });
  server.add_spot_factory<room>("room", [&all](auto& factory) {
    factory.disable_relocation().construct_with(
      [&all](spot_context context) { return std::make_unique<room>(std::move(context), all); });
  });
}

/// Host 0 only publishes to channel "press"; the others serve it, with an Entry Spot each.
struct press {
  explicit press(std::size_t hosts, std::uint64_t seed = 1, std::function<void(host_options&)> adjust = nullptr,
                 std::chrono::milliseconds send_timeout = 1s)
    : net({.hosts = hosts, .seed = seed, .max_link_delay = 2ms,
           .adjust = [adjust](std::size_t, host_options& o) {
             if (adjust)
               adjust(o);
           }}) {
    net.start([&](host& started, std::size_t index) {
      auto& node = started.add_mesh("m");
      node.send_timeout(send_timeout);
      if (index == 0) {
        node.object_client().add_channel_client("press");
        return;
      }
      node.add_channel_server("press");
      serve_listeners(node, all);
    });
    for (std::size_t i = 1; i < hosts; ++i)
      halls.push_back(net.host(i).mesh("m").entry_spot_id());
  }
  std::string open_room(const std::string& id) {
    return net.run(net.host(0).spots().get_or_create(id, "room").submit()).spot.spot_id;
  }
  task<void> publish(std::string text, std::string topic = "sport", std::size_t from = 0) {
    return net.host(from).channels().publish("press", std::move(topic), news{std::move(text)}).submit();
  }
  void publish_and_wait(std::string text, std::string topic = "sport", std::size_t from = 0) {
    net.run(publish(std::move(text), std::move(topic), from));
    net.run_until_idle();
  }

  audience all;
  std::vector<std::string> halls;
  mesh net;
};
using words = std::vector<std::string>;

TEST_CASE("M-113 M-116 an event reaches every subscribed User and Entry Spot of all nodes once") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    press p{4, seed};
    INFO("seed ", seed);
    for (int i = 0; i < 6; ++i)
      p.open_room("r" + std::to_string(i));
    p.publish_and_wait("goal");
    p.publish_and_wait("from a server", "sport", 2);
    for (int i = 0; i < 6; ++i)
      CHECK(p.all.of("r" + std::to_string(i)) == words{"goal", "from a server"});
    for (const auto& id : p.halls)
      CHECK(p.all.of(id) == words{"goal", "from a server"});
  }
}

template <class Registry>
concept takes_subscriptions = requires(const Registry& r) { r.template add_subscribe<&room::configure>("c", "t"); };

TEST_CASE("M-113 X-4 Instance Spots have no subscriptions") {
  static_assert(!takes_subscriptions<instance_spot_handler_registry>);
  CHECK(true);
}

TEST_CASE("M-114 M-15 publishing needs a channel that this node takes part in, and a topic") {
  press p{2};
  auto& net = p.net;
  CHECK(failure(net, net.host(0).channels().publish("unknown", "t", news{"x"}).submit()) == error_kind::not_found);
  CHECK_THROWS_AS(net.host(0).channels().publish("press", "", news{"x"}), std::invalid_argument);
  CHECK_THROWS_AS(net.host(0).channels().publish("", "t", news{"x"}), std::invalid_argument);
  CHECK_THROWS_AS(net.host(0).channels().publish("press", "t", news{"x"}).metadata("", "x"), std::invalid_argument);
}

TEST_CASE("M-117 channel and topic match byte for byte, then the packet decides; no match is silence") {
  press p{2};
  p.open_room("r");
  for (const auto* topic : {"sports", "spor", "Sport", "sport ", "sport/x"})
    p.publish_and_wait("no", topic);
  CHECK(p.all.heard.empty());
  p.net.run(p.net.host(0).channels().publish("press", "sport", other_news{"x"}).submit());
  p.net.run_until_idle();
  CHECK(p.all.heard.empty());
  p.publish_and_wait("yes");
  CHECK(p.all.of("r") == words{"yes"});
}

TEST_CASE("M-115 M-116 weights do not matter but for 0, and who takes part hears its own") {
  press p{3};
  p.net.host(1).mesh("m").channel_weight("press", 1);
  p.net.host(2).mesh("m").channel_weight("press", 10'000);
  p.net.run_until_idle();
  p.publish_and_wait("a");
  CHECK(p.all.of(p.halls[0]) == words{"a"});
  CHECK(p.all.of(p.halls[1]) == words{"a"});
  p.net.host(2).mesh("m").channel_weight("press", 0);
  p.net.run_until_idle();
  p.publish_and_wait("b");
  p.publish_and_wait("c", "sport", 2); // its own Spots are no matter of its weight
  CHECK(p.all.of(p.halls[0]) == words{"a", "b", "c"});
  CHECK(p.all.of(p.halls[1]) == words{"a", "c"});
}

TEST_CASE("M-118 all Spots of a node refer to one payload, which is released after the last of them") {
  for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
    press p{2};
    for (int i = 0; i < 40; ++i)
      p.open_room("r" + std::to_string(i));
    news::copies = 0;
    p.publish_and_wait("x", "sport", from);
    CHECK(p.all.heard.size() == 41);
    CHECK(news::copies == 0);
    CHECK(news::alive == 0);
  }
}

TEST_CASE("M-31 the handler knows channel, topic and metadata of an event, near and far") {
  press p{2};
  p.net.run(p.net.host(0).channels().publish("press", "sport", news{"x"}).metadata("color", "red").submit());
  p.net.run(p.net.host(1).channels().publish("press", "sport", news{"x"}).metadata("color", "red").submit());
  p.net.run_until_idle();
  REQUIRE(p.all.contexts.size() == 2);
  for (const auto& seen : p.all.contexts) {
    CHECK(seen.mesh == "m");
    CHECK(seen.channel == "press");
    CHECK(seen.topic == "sport");
    CHECK(seen.packet == "probe.news");
    CHECK(seen.color == "red");
    CHECK(seen.correlation == "absent");
  }
}

TEST_CASE("M-121 M-122 without targets a publish ends well, and an unreachable one is skipped") {
  press alone{1};
  alone.net.run(alone.publish("nobody"));
  press p{3};
  p.net.partition({0}, {2});
  p.net.run_until_idle();
  p.net.run(p.publish("to one"));
  p.net.advance(5s);
  CHECK(p.all.of(p.halls[0]) == words{"to one"});
  CHECK(p.all.of(p.halls[1]).empty());
  p.net.heal();
  p.net.advance(30s);
  CHECK(p.all.of(p.halls[1]).empty()); // nothing is sent again
  p.publish_and_wait("to both");
  CHECK(p.all.of(p.halls[1]) == words{"to both"});
}

/// Holds a Spot of host 1 and fills its lane of one place.
void fill(press& p, const std::string& id) {
  auto spots = p.net.host(1).spots();
  p.net.run(spots.send_to_spot(id, held_note{"1"}).submit());
  p.net.run_until([&] { return p.all.gate.waiting() == 1; });
}
void narrow(host_options& options) { options.application_lane_records = 1; }

TEST_CASE("M-123 a full Spot is waited for up to the send timeout, and its siblings do not wait for it") {
  for (const bool in_time : {true, false})
    for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
      press p{2, 1, narrow, 2s};
      p.open_room("full");
      p.open_room("free");
      fill(p, "full");
      p.net.run(p.publish("x", "sport", from));
      p.net.advance(100ms);
      CHECK(p.all.of("free") == words{"x"});
      CHECK(p.all.of(p.halls[0]) == words{"x"});
      CHECK(p.all.of("full") == words{"begin 1"});
      p.net.advance(in_time ? 1s : 3s);
      p.all.gate.open();
      p.net.advance(5s);
      CHECK(p.all.of("full") == (in_time ? words{"begin 1", "end 1", "x"} : words{"begin 1", "end 1"}));
    }
}

TEST_CASE("M-119 M-120 without a free worker a publish waits for its start, and touches nobody if it does not come") {
  press p{2, 1,
          [](host_options& options) {
            narrow(options);
            options.publish_workers = 1;
          },
          2s};
  auto& net = p.net;
  p.open_room("full");
  fill(p, "full");
  const auto before = net.elapsed();
  std::stop_source too_late;
  auto first = net.host(1).channels().publish("press", "sport", news{"first"}).submit(too_late.get_token());
  net.run(std::move(first)); // has started: takes the only worker until the full Spot is given up
  too_late.request_stop();
  net.advance(10ms);
  std::stop_source stop;
  auto cancelled = net.host(1).channels().publish("press", "sport", news{"cancelled"}).submit(stop.get_token());
  auto waiting = net.host(1).channels().publish("press", "sport", news{"waiting"}).submit();
  net.advance(100ms);
  stop.request_stop();
  CHECK(net.run(as_result(std::move(cancelled))).is_cancelled());
  CHECK(net.elapsed() - before < 1s);
  CHECK(p.all.of(p.halls[0]) == words{"first"});
  net.run(std::move(waiting)); // the first has given up the full Spot by its send timeout
  CHECK(net.elapsed() - before >= 2s);
  p.all.gate.open();
  net.run_until_idle();
  const auto heard = p.all.of(p.halls[0]);
  CHECK(std::ranges::count(heard, "cancelled") == 0);
  CHECK(std::ranges::count(heard, "first") == 1);
  CHECK(std::ranges::count(heard, "waiting") == 1);
}

TEST_CASE("M-119 a publish whose turn does not come within the send timeout ends so, and touches nobody") {
  press p{2, 1,
          [](host_options& options) {
            narrow(options);
            options.publish_workers = 1;
          },
          2s};
  auto& net = p.net;
  p.open_room("full");
  fill(p, "full");
  net.run(p.publish("first", "sport", 1));
  std::vector<task<void>> more;
  for (int i = 0; i < 3; ++i)
    more.push_back(p.publish("more " + std::to_string(i), "sport", 1));
  int late = 0;
  for (auto& one : more) {
    const auto outcome = net.run(as_result(std::move(one)));
    if (!outcome) {
      CHECK(outcome.error().kind() == error_kind::deadline_exceeded);
      ++late;
    }
  }
  CHECK(late >= 1);
  p.all.gate.open();
  net.run_until_idle();
  CHECK(p.all.of(p.halls[0]).size() == static_cast<std::size_t>(4 - late));
}

TEST_CASE("M-119 M-128 a shutdown ends publishes that have not started, and waits for those that have") {
  press p{2, 1,
          [](host_options& options) {
            narrow(options);
            options.publish_workers = 1;
          },
          2s};
  auto& net = p.net;
  p.open_room("full");
  fill(p, "full");
  net.run(p.publish("started", "sport", 1));
  auto waiting = p.publish("waiting", "sport", 1);
  net.advance(10ms);
  auto ending = net.host(1).shutdown();
  CHECK(failure(net, std::move(waiting)) == error_kind::shutting_down);
  CHECK(failure(net, p.publish("too late", "sport", 1)) == error_kind::shutting_down);
  p.all.gate.open();
  net.run(std::move(ending));
  CHECK(p.all.of("full") == words{"begin 1", "end 1", "started"});

  press q{3};
  net.advance(0ms);
  q.net.run(q.publish("last", "sport", 1));
  auto over = q.net.host(1).shutdown();
  q.net.run(std::move(over));
  q.net.run_until_idle();
  CHECK(q.all.of(q.halls[1]) == words{"last"});
}

TEST_CASE("M-124 a subscription names a channel of its node and a topic, once for each packet") {
  const auto outcome = [](std::vector<std::string> topics, bool take_part, bool entry) {
    audience all;
    all.topics = std::move(topics);
    mesh net{1};
    const auto registration = [&](host& started) {
      auto& node = started.add_mesh("m");
      if (take_part)
        node.add_channel_client("press");
      serve_listeners(node, all, entry);
    };
    if (entry) {
      try {
        net.start(registration);
      } catch (const configuration_error&) {
        return std::string{"refused"};
      }
      return std::string{"started"};
    }
    net.start(registration);
    const auto made = net.run(as_result(net.host(0).spots().create("room").submit()));
    CHECK(net.host(0).status().spots == (made.has_value() ? 1u : 0u));
    return std::string{made.has_value() ? "started" : "refused"};
  };
  for (const bool entry : {true, false}) {
    CHECK(outcome({"a", "b"}, true, entry) == "started");
    CHECK(outcome({"a", "a"}, true, entry) == "refused");
    CHECK(outcome({""}, true, entry) == "refused");
    CHECK(outcome({"a"}, false, entry) == "refused");
  }
}

TEST_CASE("M-125 a Spot hears from Ready until its end begins, and nothing of before") {
  press p{2};
  auto& net = p.net;
  auto creating = net.host(0).spots().get_or_create("slow", "room").submit();
  net.run_until([&] { return p.all.birth.waiting() == 1; });
  p.publish_and_wait("before");
  p.all.birth.open();
  const auto made = net.run(std::move(creating));
  p.publish_and_wait("after");
  CHECK(p.all.of("slow") == words{"after"});
  net.run(net.host(0).spots().close(made.spot));
  p.publish_and_wait("gone");
  CHECK(p.all.of("slow") == words{"after"});
  CHECK(p.all.of(p.halls[0]) == words{"before", "after", "gone"});
  p.open_room("slow");
  p.publish_and_wait("again");
  CHECK(p.all.of("slow") == words{"after", "again"});
}

TEST_CASE("M-126 X-10 an event runs in a turn of its Spot, never beside a packet") {
  press p{2};
  p.open_room("r");
  fill(p, "r");
  p.publish_and_wait("x");
  CHECK(p.all.of("r") == words{"begin 1"});
  p.all.gate.open();
  p.net.run_until_idle();
  CHECK(p.all.of("r") == words{"begin 1", "end 1", "x"});
}

TEST_CASE("M-127 a handler that throws is a matter of its Spot alone") {
  press p{3};
  p.open_room("r");
  p.net.run(p.net.host(0).channels().publish("press", "sport", bad_news{"x"}).submit());
  p.net.run_until_idle();
  CHECK(p.all.of("r") == words{"bad x"});
  for (const auto& id : p.halls)
    CHECK(p.all.of(id) == words{"bad x"});
  p.publish_and_wait("good");
  CHECK(p.all.of("r") == words{"bad x", "good"});
}

TEST_CASE("M-114 a Spot publishes, to itself as well") {
  static int heard = 0;
  heard = 0;
  mesh net{1};
  struct speaker final : spot<> {
    using spot::spot;
    void configure() override {
      context().handlers().add_packet<&speaker::on_ask>().add_subscribe<&speaker::on_news>("press", "own");
    }
    task<answer> on_ask(const ask& m, const message_context&) {
      auto telling = context().outbound().publish("press", "own", news{m.text}).submit();
      co_await std::move(telling);
      co_return answer{std::to_string(heard)};
    }
    void on_news(const news&, const message_context&) { ++heard; }
  };
  net.start([](host& started) {
    auto& node = started.add_mesh("m");
    node.add_channel_server("press");
    node.object_server().add_spot_factory<speaker>("speaker", [](auto& factory) { factory.disable_relocation(); });
  });
  net.run(net.host(0).spots().get_or_create("s", "speaker").submit());
  CHECK(net.run(net.host(0).spots().request_to_spot("s", ask{"x"}).submit<answer>()).text == "0"); // behind this turn
  net.run_until_idle();
  CHECK(heard == 1);
}

} // namespace
} // namespace zlink::test::messaging
