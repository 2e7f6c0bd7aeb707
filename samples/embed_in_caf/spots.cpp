#include "spots.hpp"

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>

#include <utility>

// self() is a caf::event_based_actor. What CAF calls back runs in this Spot's turns, so none of this needs a lock.

zlink::task<void> boiler_spot::on_initialize() {
  self()->set_down_handler([this](const caf::down_msg& down) {
    if (down.source == pump_.address())
      pump_broke(self()->system().render(down.reason));
  });
  start_pump();
  co_return;
}

zlink::task<void> boiler_spot::on_closing(const zlink::spot_closing_context&, std::stop_token) {
  self()->demonitor(pump_.address());
  self()->send_exit(pump_, caf::exit_reason::user_shutdown); // an actor system waits for its actors
  co_return;
}

caf::behavior boiler_spot::make_behavior() {
  return {
    [this](const pump_stroke& m) { self()->send(pump_, m); },
    [this](const next_repair&) -> caf::result<repair> {
      if (pumps_ > 1)
        return repair{pumps_, last_reason_};
      auto answer = self()->make_response_promise<repair>();
      asked_.push_back(answer);
      return answer;
    },
  };
}

void boiler_spot::start_pump() {
  pump_ = self()->spawn<caf::monitored>(pump);
  ++pumps_;
}

void boiler_spot::pump_broke(const std::string& reason) {
  last_reason_ = reason;
  start_pump();
  for (auto& answer : std::exchange(asked_, {}))
    answer.deliver(repair{pumps_, last_reason_});
}
