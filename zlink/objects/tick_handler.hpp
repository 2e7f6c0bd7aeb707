// How `add_timer` of a Spot's or an Actor's context comes to a registration.
#pragma once

#include "zlink/objects/handler_table.hpp"
#include "zlink/task.hpp"
#include "zlink/time_span.hpp"
#include "zlink/timer.hpp"

#include <stop_token>
#include <string>
#include <type_traits>

namespace zlink::detail {

class actor_object;
class hosted_object;
class spot_object;

/// Calls the handler of a tick that `r` stands for.
using tick_invoke = handler_run* (*)(hosted_object& object, record* r, const timer_tick& tick);

template <auto Handler>
struct tick_handler {
  using shape = member_shape<decltype(Handler)>;
  static_assert(shape::known, "a timer handler is a member function: add_timer<&my_spot::on_tick>(...)");
  static_assert(shape::template takes<const timer_tick&>, "a timer handler takes (const zlink::timer_tick&)");
  static_assert(std::is_void_v<typename task_value<typename shape::result>::type>, "a timer handler returns nothing");
  static handler_run* invoke(hosted_object& object, record* r, const timer_tick& tick);
};

task<timer> start_timer(spot_object& object, std::string name, time_span period, timer_options options, tick_invoke invoke,
                        std::stop_token cancel);
/// In turns of the Actor, and of the Spot that it belongs to or comes into being in.
task<timer> start_timer(actor_object& object, std::string name, time_span period, timer_options options, tick_invoke invoke,
                        std::stop_token cancel);

} // namespace zlink::detail
