// How a record becomes the call of a member function.
#pragma once

#include "zlink/actor.hpp"
#include "zlink/membership/actor_object.hpp"
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

/// Calls a handler of an object, `call(message, context)`, and leaves its answer in the record.
template <class Message, class Result, class Call>
handler_run* serve_record(execution_object& object, record* r, Call call) {
  using reply = typename task_value<Result>::type;
  auto& served = *static_cast<const Message*>(decoded_body(*r, object, packet_type_of<Message>()));
  if constexpr (task_value<Result>::is_task) {
    return start_run<reply>(r, [&](handler_run& run) { return call(served, run.context()); });
  } else {
    const message_context context{&object, r};
    if constexpr (std::is_void_v<reply>) {
      call(served, context);
      r->body.reset();
    } else {
      auto answer = call(served, context);
      r->body.template emplace<reply>(std::move(answer));
    }
    return nullptr;
  }
}

template <auto Handler>
handler_run* packet_handler<Handler>::invoke(spot_object& object, record* r) {
  auto& spot = static_cast<typename shape::owner&>(*object.application());
  return serve_record<message_type, typename shape::result>(
    object, r, [&spot](const message_type& m, const message_context& context) { return (spot.*Handler)(m, context); });
}

template <auto Handler>
handler_run* actor_handler<Handler>::invoke(actor_object& who, spot_object& object, record* r) {
  auto& spot = static_cast<typename shape::owner&>(*object.application());
  auto& actor = static_cast<actor_type&>(*who.application());
  return serve_record<message_type, typename shape::result>(
    who, r, [&](const message_type& m, const message_context& context) { return (spot.*Handler)(actor, context, m); });
}

template <auto Handler>
bool tick_handler<Handler>::serves(hosted_object& object) {
  using owner = typename shape::owner;
  constexpr bool of_actor = std::is_base_of_v<actor, owner>;
  if (object.is_actor() != of_actor)
    return false;
  using object_type = std::conditional_t<of_actor, actor_object, spot_object>;
  return dynamic_cast<owner*>(static_cast<object_type&>(object).application()) != nullptr;
}

template <auto Handler>
handler_run* tick_handler<Handler>::invoke(hosted_object& object, record* r, const timer_tick& tick) {
  using owner = typename shape::owner;
  static_cast<void>(&registered); // so that it exists
  using object_type = std::conditional_t<std::is_base_of_v<actor, owner>, actor_object, spot_object>;
  auto& instance = static_cast<owner&>(*static_cast<object_type&>(object).application());
  if constexpr (task_value<typename shape::result>::is_task) {
    return start_run<void>(r, [&](handler_run&) { return (instance.*Handler)(tick); });
  } else {
    (instance.*Handler)(tick);
    return nullptr;
  }
}

} // namespace zlink::detail
