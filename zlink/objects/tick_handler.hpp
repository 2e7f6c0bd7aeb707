// How `add_timer` of a Spot's or an Actor's context comes to a registration.
#pragma once

#include "zlink/objects/handler_table.hpp"
#include "zlink/task.hpp"
#include "zlink/time_span.hpp"
#include "zlink/timer.hpp"

#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>

namespace zlink::detail {

class actor_object;
class hosted_object;
class spot_object;

/// Calls the handler of a tick that `r` stands for.
using tick_invoke = handler_run* (*)(hosted_object& object, record* r, const timer_tick& tick);

/// A tick handler of this program under the name of its type, by which another run of the program, or another version of
/// it, finds it again (L-76). Made before `main`.
struct tick_registration {
  tick_registration(const char* name, tick_invoke invoke, bool (*serves)(hosted_object& object)) noexcept;
  const char* name;
  tick_invoke invoke;
  bool (*serves)(hosted_object& object); ///< the object's instance has that member; in a turn
  const tick_registration* next;
};
/// The name of a handler that is registered; null for none.
const char* name_of(tick_invoke invoke) noexcept;
/// The handler of that name for this object; null: this program has none. In a turn of the object.
tick_invoke find_tick_handler(std::string_view name, hosted_object& object) noexcept;

template <auto Handler>
struct tick_handler {
  using shape = member_shape<decltype(Handler)>;
  static_assert(shape::known, "a timer handler is a member function: add_timer<&my_spot::on_tick>(...)");
  static_assert(shape::template takes<const timer_tick&>, "a timer handler takes (const zlink::timer_tick&)");
  static_assert(std::is_void_v<typename task_value<typename shape::result>::type>, "a timer handler returns nothing");
  static handler_run* invoke(hosted_object& object, record* r, const timer_tick& tick);
  static bool serves(hosted_object& object);
  static const tick_registration registered;
};

template <auto Handler>
const tick_registration tick_handler<Handler>::registered{typeid(tick_handler<Handler>).name(), &tick_handler<Handler>::invoke,
                                                          &tick_handler<Handler>::serves};

task<timer> start_timer(spot_object& object, std::string name, time_span period, timer_options options, tick_invoke invoke,
                        std::stop_token cancel);
/// In turns of the Actor, and of the Spot that it belongs to or comes into being in.
task<timer> start_timer(actor_object& object, std::string name, time_span period, timer_options options, tick_invoke invoke,
                        std::stop_token cancel);

} // namespace zlink::detail
