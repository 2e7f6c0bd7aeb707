// How a record becomes the call of a member function.
#pragma once

#include "zlink/objects/handler_table.hpp"
#include "zlink/objects/spot_object.hpp"
#include "zlink/spot.hpp"
#include "zlink/timer.hpp"

namespace zlink::detail {

/// Calls `make(run)`, which returns the handler's task, as a coroutine run of the current turn.
template <class R, class Make>
handler_run* start_run(record* r, Make make) {
  const auto& t = *current_turn();
  auto* run = new handler_run{*t.home, *t.object, r, false};
  turn_scope scope{*t.home, *t.object, run};
  try {
    run->start(make(*run));
  } catch (...) { // of a plain function that was to return a task
    run->never_began();
    throw;
  }
  return run;
}

template <auto Handler>
handler_run* packet_handler<Handler>::invoke(spot_object& object, record* r) {
  auto& served = *static_cast<const message_type*>(decoded_body(*r, object, packet_type_of<message_type>()));
  auto& spot = static_cast<typename shape::owner&>(*object.application());
  if constexpr (task_value<typename shape::result>::is_task) {
    return start_run<reply>(r, [&](handler_run& run) { return (spot.*Handler)(served, run.context()); });
  } else {
    const message_context context{&object, r};
    if constexpr (std::is_void_v<reply>) {
      (spot.*Handler)(served, context);
      r->body.reset();
    } else {
      auto answer = (spot.*Handler)(served, context);
      r->body.template emplace<reply>(std::move(answer));
    }
    return nullptr;
  }
}

template <auto Handler>
handler_run* tick_handler<Handler>::invoke(spot_object& object, record* r, const timer_tick& tick) {
  auto& spot = static_cast<typename shape::owner&>(*object.application());
  if constexpr (task_value<typename shape::result>::is_task) {
    return start_run<void>(r, [&](handler_run&) { return (spot.*Handler)(tick); });
  } else {
    (spot.*Handler)(tick);
    return nullptr;
  }
}

} // namespace zlink::detail
