// People with timers of their own.
#pragma once

#include "tests/contract/membership/join_scene.hpp"

namespace membership_test {

inline person& as_person(zlink::actor& who) { return static_cast<person&>(who); }

inline zlink::task<zlink::timer> add_tick(zlink::actor& who, std::string name, zlink::time_span period,
                                          zlink::timer_options options = {}, std::stop_token cancel = {}) {
  return as_person(who).context().add_timer<&person::on_tick>(std::move(name), period, options, std::move(cancel));
}
inline zlink::task<zlink::timer> add_other_tick(zlink::actor& who, std::string name, zlink::time_span period) {
  return as_person(who).context().add_timer<&person::on_other_tick>(std::move(name), period);
}

/// A scene whose people start timers when they are told "tick"; they do what `then` says for other words.
struct ticking_scene : scene {
  explicit ticking_scene(node_settings wanted = {}, std::uint64_t seed = 1, std::size_t hosts = 1)
    : scene(hosts, seed, wanted) {
    on.handler = [this](zlink::actor& who, const std::string& word) -> zlink::task<void> {
      if (word == "tick") {
        auto adding = add_tick(who, "t", period);
        handle = co_await std::move(adding);
      } else if (then) {
        auto going_on = then(who, word);
        co_await std::move(going_on);
      }
    };
  }
  void start_ticking(std::chrono::milliseconds every = 100ms, const std::string& id = "ada") {
    period = every;
    net.run(talk(net.host(0), id, "tick"));
    on.trace.clear();
  }
  /// Waits for an answer of another room, which comes when the barrier `open` says so.
  zlink::task<void> ask_helper(zlink::actor& who, bool yield = false) {
    auto asking = who.context().outbound().request_to_spot("helper", say{"wait"}).timeout(10min);
    auto asked = yield ? asking.yield<said>() : asking.submit<said>();
    co_await std::move(asked);
  }
  void open_helper() {
    open_room(net, "helper");
    on.during = [this](const std::string& step) { return step == "list" ? open.passed() : zlink::task<void>::done(); };
  }

  std::chrono::milliseconds period{100};
  zlink::timer handle;
  barrier open;
  std::function<zlink::task<void>(zlink::actor& who, const std::string& word)> then;
};

/// How many are inside of something, and how many ever were at once.
struct occupancy {
  int now = 0;
  int most = 0;
  void enter() { most = std::max(most, ++now); }
  void leave() { --now; }
};

} // namespace membership_test
