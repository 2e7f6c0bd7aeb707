// A call that is a coroutine of the infrastructure unit: entered, limited and timed like every other call.
#pragma once

#include "zlink/execution/operation.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/call_start.hpp"
#include "zlink/task.hpp"

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace zlink::detail {

/// Runs `make()` (a `task<T>`) in the unit. Its failure is the caller's, unless the timeout or the cancellation came first.
/// `only_ends`: also while the host drains (J-164).
template <class T, class Make>
task<T> enter_call(host_runtime& host, const char* verb, std::string subject, std::chrono::milliseconds timeout,
                   std::stop_token cancel, Make make, bool only_ends = false) {
  auto ended = new_counted<operation<T>>();
  ended->verb = verb;
  ended->subject = std::move(subject);
  call_start starting{host, *ended, turn_use::submit, std::move(cancel)};
  task<T> answer{ended};
  if (!starting.allowed(std::nullopt, true, only_ends))
    return answer;
  const auto route = starting.enter_operation(timeout);
  starting.launch([&host, route, make = std::move(make)]() mutable {
    host.infra->post([route, make = std::move(make)]() mutable {
      start_coroutine(make(), [route](result<T> outcome) {
        auto* r = make_record(record_kind::completion);
        r->reply.id = route.id;
        if (!outcome)
          r->body.emplace<error>(outcome.error());
        else
          r->body.emplace<T>(std::move(*outcome));
        route.receiver->receive_reply(r);
        route.receiver->unref_receiver();
      });
    });
  });
  return answer;
}

} // namespace zlink::detail
