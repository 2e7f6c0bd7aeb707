// Starts calls and writes down how each of them ended.
#pragma once

#include "tests/e2e/node/ledger.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace zlink::test {

/// Who calls whom, and how.
struct called {
  std::string id;
  std::string sender;
  std::uint64_t number = 0;
  bool one_way = false;
  bool intent = true; ///< a missing Spot is to come to life
  bool actor = false; ///< the id is one of an Actor
  std::chrono::milliseconds timeout{0};
};

template <class T>
std::string outcome_of(const result<T>& end) {
  return end.has_value() ? "ok" : end.is_cancelled() ? "cancelled" : to_string(end.error().kind());
}

inline std::string served_by(const result<stroke_done>& end) {
  return end.has_value() ? to_string(incarnation{end->generation, end->process, end->tag}) : "-";
}
template <class T>
std::string served_by(const result<T>&) {
  return "-";
}

/// `then(result)` is called when it has ended; the log has it by then.
template <class Reply, class Packet, class F>
void start_request(process_log& log, host& from, const called& c, Packet question, F then) {
  const auto key = ' ' + c.id + ' ' + c.sender + ' ' + std::to_string(c.number) + ' ';
  log.calls.append("s " + log.now() + key + "r " + std::to_string(c.timeout.count()) + '\n');
  auto ended = [&log, key, then = std::move(then)](result<Reply> end) mutable {
    log.calls.append("d " + log.now() + key + outcome_of(end) + ' ' + served_by(end) + '\n');
    then(std::move(end));
  };
  if (c.actor) {
    auto request = from.actors().request_to_actor(c.id, std::move(question)).timeout(c.timeout);
    request.template submit<Reply>().then(std::move(ended));
    return;
  }
  auto request = from.spots().request_to_spot(c.id, std::move(question)).timeout(c.timeout);
  if (c.intent)
    request.instance_spot(ledger_type);
  request.template submit<Reply>().then(std::move(ended));
}

/// As above; `then(result)` when it is admitted.
template <class F>
void start_send(process_log& log, host& from, const called& c, F then) {
  const auto key = ' ' + c.id + ' ' + c.sender + ' ' + std::to_string(c.number) + ' ';
  log.calls.append("s " + log.now() + key + "o " + std::to_string(c.timeout.count()) + '\n');
  auto ended = [&log, key, then = std::move(then)](result<void> end) mutable {
    log.calls.append("d " + log.now() + key + outcome_of(end) + " -\n");
    then(std::move(end));
  };
  if (c.actor) {
    from.actors().send_to_actor(c.id, mark{c.sender, c.number}).submit().then(std::move(ended));
    return;
  }
  auto send = from.spots().send_to_spot(c.id, mark{c.sender, c.number});
  if (c.intent)
    send.instance_spot(ledger_type);
  send.submit().then(std::move(ended));
}

} // namespace zlink::test
