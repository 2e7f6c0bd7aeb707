#include "adapters/location/redis_pipeline.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace zlink::adapters {

namespace {

store_failure not_applied(std::string text) { return {store_failure_class::not_applied, std::move(text)}; }
store_failure unclear(std::string text) { return {store_failure_class::unclear, std::move(text)}; }

} // namespace

void redis_pipeline::add(redis_request request) {
  waiting_bytes_ += request.arguments.size();
  waiting_.push_back(std::move(request));
}

/// Among those that wait, in the order of deadlines, which is the order in which they came.
void redis_pipeline::wait_again(redis_request request) {
  waiting_bytes_ += request.arguments.size();
  const auto later = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const redis_request& one) { return one.deadline > request.deadline; });
  waiting_.insert(later, std::move(request));
}

redis_request redis_pipeline::take_waiting() {
  auto first = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= first.arguments.size();
  return first;
}

void redis_pipeline::append(std::string& out, const redis_request& request) const {
  request.arguments.append_call(out, *request.script, request.whole);
  if (acknowledges(request))
    out += make_command("WAIT", std::to_string(limits_.acknowledging_replicas),
                        std::to_string(limits_.acknowledgement.count()));
}

void redis_pipeline::fill(std::string& out, std::size_t room, std::uint64_t sent_before) {
  const auto begin = out.size();
  while (!waiting_.empty() && out.size() < room && in_flight_.size() < limits_.in_flight
         && (in_flight_.empty() || in_flight_bytes_ + waiting_.front().arguments.size() <= limits_.in_flight_bytes)) {
    sent_request next{take_waiting()};
    append(out, next.request);
    next.acknowledged = acknowledges(next.request);
    next.ends_at = sent_before + (out.size() - begin);
    in_flight_bytes_ += next.request.arguments.size();
    replies_due_ += next.acknowledged ? 2 : 1;
    in_flight_.push_back(std::move(next));
  }
}

redis_pipeline::sequel redis_pipeline::answered(redis_reply reply) {
  --replies_due_;
  auto& first = in_flight_.front();
  if (first.acknowledged && !first.reply) {
    first.reply = std::move(reply);
    return sequel::go_on;
  }
  auto which = std::move(first);
  in_flight_.pop_front();
  in_flight_bytes_ -= which.request.arguments.size();
  if (which.ended)
    --ended_;
  if (!which.reply)
    return judge(std::move(which), std::move(reply));
  // The acknowledgement of a change: its own reply came before.
  const bool enough = is_integer(*reply) && reply->integer >= limits_.acknowledging_replicas;
  if (!enough && !is_error(*which.reply) && !which.ended) {
    which.request.done(unclear("too few replicas have the write"));
    return sequel::go_on;
  }
  auto own_reply = std::move(which.reply);
  return judge(std::move(which), std::move(own_reply));
}

redis_pipeline::sequel redis_pipeline::judge(sent_request which, redis_reply reply) {
  auto& request = which.request;
  if (!is_error(*reply)) {
    if (!which.ended)
      request.done(std::move(reply));
    return sequel::go_on;
  }
  const auto error = text_of(*reply);
  const auto refusal = judge_refusal(error);
  const bool moves = refusal == redis_refusal::elsewhere || refusal == redis_refusal::starting;
  if (auto there = parse_redirection(error))
    redirection_ = std::move(there);
  if (which.ended)
    return moves ? sequel::leave : sequel::go_on;
  if (moves || (refusal == redis_refusal::unknown_script && !request.whole)) {
    request.whole = request.whole || refusal == redis_refusal::unknown_script;
    wait_again(std::move(request));
  } else {
    const bool without_effect = refusal != redis_refusal::unclear || !request.changes;
    auto text = explain_refusal(error);
    request.done(without_effect ? not_applied(std::move(text)) : unclear(std::move(text)));
  }
  return moves ? sequel::leave : sequel::go_on;
}

void redis_pipeline::broken(std::uint64_t sent, const std::string& why) {
  std::vector<redis_request> unclear_ones;
  std::deque<redis_request> again;
  for (auto& one : std::exchange(in_flight_, {})) {
    if (one.ended)
      continue;
    if (one.request.changes && one.ends_at <= sent)
      unclear_ones.push_back(std::move(one.request));
    else
      again.push_back(std::move(one.request));
  }
  in_flight_bytes_ = 0;
  replies_due_ = 0;
  ended_ = 0;
  auto younger = std::exchange(waiting_, std::move(again));
  std::move(younger.begin(), younger.end(), std::back_inserter(waiting_));
  waiting_bytes_ = 0;
  for (const auto& one : waiting_)
    waiting_bytes_ += one.arguments.size();
  for (auto& one : unclear_ones)
    one.done(unclear(why));
}

void redis_pipeline::expire(steady_time now, const std::string& why) {
  for (; ended_ < in_flight_.size() && in_flight_[ended_].request.deadline <= now; ++ended_) {
    auto& one = in_flight_[ended_];
    one.ended = true;
    auto done = std::move(one.request.done);
    done(one.request.changes ? unclear("the Redis server did not answer in time")
                             : not_applied("the Redis server did not answer in time"));
  }
  while (!waiting_.empty() && waiting_.front().deadline <= now) {
    auto request = take_waiting();
    request.done(not_applied("the request could not be sent to the Redis server in time: " + why));
  }
}

void redis_pipeline::refuse_waiting(const store_failure& why) {
  waiting_bytes_ = 0;
  for (auto& one : std::exchange(waiting_, {}))
    one.done(why);
}

void redis_pipeline::close(const std::string& why) {
  for (auto& one : std::exchange(in_flight_, {}))
    if (!one.ended)
      one.request.done(one.request.changes ? unclear(why) : not_applied(why));
  in_flight_bytes_ = 0;
  replies_due_ = 0;
  ended_ = 0;
  refuse_waiting(not_applied(why));
}

std::optional<steady_time> redis_pipeline::next_deadline() const noexcept {
  if (ended_ < in_flight_.size())
    return in_flight_[ended_].request.deadline;
  if (!waiting_.empty())
    return waiting_.front().deadline;
  return std::nullopt;
}

} // namespace zlink::adapters
