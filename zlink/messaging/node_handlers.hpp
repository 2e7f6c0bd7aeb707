// Handlers of node-direct and channel messages: a table per node and per channel that it serves; dispatches start in
// acceptance order and overlap.
#pragma once

#include "zlink/execution/execution_object.hpp"
#include "zlink/filter.hpp"
#include "zlink/objects/handler_table.hpp"
#include "zlink/unique_function.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace zlink::detail {

/// One registered function.
struct function_handler {
  const packet_type* packet = nullptr;
  std::string packet_name;
  bool replies = false;
  /// Inside a turn. Null: ended, and for a request the record's body is the reply. Called from many turns at once.
  unique_function<handler_run*(execution_object& object, record* r)> invoke;
  /// The same as part of a run that is under way: ends with the reply, and the record's body stays the message.
  unique_function<task<payload>(execution_object& object, record* r, const message_context& context)> serve;
};

enum class handler_surface : std::uint8_t { node, channel };

/// Made for each dispatch. Called from many turns at once; nothing is added once messages come.
using filter_maker = unique_function<std::unique_ptr<message_filter>()>;
using filter_makers = std::vector<filter_maker>;

class node_handlers {
public:
  /// `filters`: those of the node, which stand around all its tables (M-53).
  node_handlers(execution_domain& domain, std::string mesh_name, handler_surface surface,
                std::shared_ptr<filter_makers> filters)
    : domain_(domain), mesh_name_(std::move(mesh_name)), surface_(surface), filters_(std::move(filters)) {}
  ~node_handlers();
  node_handlers(const node_handlers&) = delete;
  node_handlers& operator=(const node_handlers&) = delete;

  /// Before start. Throws `configuration_error` for a key that is there (M-50).
  void add(function_handler handler);
  bool empty() const noexcept { return entries_.empty(); }
  const std::vector<std::unique_ptr<function_handler>>& entries() const noexcept { return entries_; }

  /// Takes a send or request. Any thread.
  void accept(record* r);
  /// Messages wait, or handlers have not ended with all that they began. Any thread.
  bool busy() const;
  /// What has not started is refused, what handlers wait for fails. Any thread.
  void cut_short(const error& why);

private:
  class runner;

  function_handler* find(payload& body, bool replies) noexcept;
  handler_run* run(function_handler& handler, execution_object& object, record* r);
  /// The front message for a runner that may start it, or null: the runner rests.
  record* next_for(runner& ready);
  /// A handler is suspended: another runner may take its place.
  void suspended();
  /// It has ended: its runner asks for the next message.
  void resumed();
  void rest(runner& idle);
  /// A runner that is to ask for the front message, if there is one and one more may run. Inside the lock.
  runner* choose_another();

  execution_domain& domain_;
  const std::string mesh_name_;
  const handler_surface surface_;
  const std::shared_ptr<filter_makers> filters_;
  std::vector<std::unique_ptr<function_handler>> entries_;
  mutable std::mutex mutex_;
  std::deque<record*> waiting_;
  std::vector<runner*> all_;
  std::vector<runner*> resting_;
  unsigned running_ = 0; ///< runners that serve a message or are about to ask for one
};

template <class R, class Make>
handler_run* start_run(record* r, Make make);

/// The handler's answer as a body.
template <class R, class F, class T>
task<payload> answer_of(F& function, const T& served, const message_context& context) {
  payload answer;
  if constexpr (!task_value<std::invoke_result_t<F&, const T&, const message_context&>>::is_task) {
    if constexpr (std::is_void_v<R>)
      function(served, context);
    else
      answer.emplace<R>(function(served, context));
  } else {
    auto serving = function(served, context);
    if constexpr (std::is_void_v<R>) {
      co_await std::move(serving);
    } else {
      R value = co_await std::move(serving);
      answer.emplace<R>(std::move(value));
    }
  }
  co_return answer;
}

/// Makes an entry from `R f(const T&, const message_context&)`, R nothing, a packet, or a task of either.
template <class F>
function_handler make_function_handler(F function, std::string packet_name) {
  using shape = member_shape<decltype(&F::operator())>;
  static_assert(shape::known, "a node or channel handler is a lambda with one signature, not a template");
  using message_type = std::remove_cvref_t<typename shape::first>;
  static_assert(packet<message_type>, "a handler's message needs a ZLINK_PACKET line");
  static_assert(shape::template takes<const message_type&, const message_context&>,
                "a node or channel handler takes (const message&, const zlink::message_context&)");
  using reply = typename task_value<typename shape::result>::type;
  static_assert(std::is_void_v<reply> || packet<reply>, "a handler returns nothing or a packet, or a task of either");
  const auto& type = packet_type_of<message_type>();
  function_handler made{&type, packet_name.empty() ? std::string{type.name} : std::move(packet_name),
                        !std::is_void_v<reply>, {}, {}};
  auto kept = std::make_shared<F>(std::move(function));
  made.serve = [kept](execution_object& object, record* r, const message_context& context) {
    auto& served = *static_cast<const message_type*>(decoded_body(*r, object, packet_type_of<message_type>()));
    return answer_of<reply>(*kept, served, context);
  };
  made.invoke = [kept](execution_object& object, record* r) -> handler_run* {
    auto& function = *kept;
    auto& served = *static_cast<const message_type*>(decoded_body(*r, object, packet_type_of<message_type>()));
    if constexpr (task_value<typename shape::result>::is_task) {
      return start_run<reply>(r, [&](handler_run& run) { return function(served, run.context()); });
    } else {
      const message_context context{&object, r};
      if constexpr (std::is_void_v<reply>) {
        function(served, context);
        r->body.reset();
      } else {
        auto answer = function(served, context);
        r->body.template emplace<reply>(std::move(answer));
      }
      return nullptr;
    }
  };
  return made;
}

} // namespace zlink::detail
