#include "adapters/location/redis_session.hpp"

#include <algorithm>
#include <utility>

namespace zlink::adapters {

namespace {
constexpr std::size_t read_room = 64 * 1024;
constexpr std::size_t send_room = 256 * 1024; // what stands ready to be sent at once, unless one request is larger
} // namespace

redis_session::redis_session(const redis_address& address, SSL_CTX* context,
                             const std::vector<const redis_script*>& scripts, std::chrono::milliseconds silence,
                             steady_time now)
  : silence_(silence), socket_(address, context), login_(address, scripts), progress_(now) {}

void redis_session::step(redis_pipeline& pipeline, bool readable, steady_time now) {
  if (socket_.connect() == redis_socket::state::open) {
    if (!std::exchange(login_sent_, true)) {
      append(login_.commands());
      progress_ = now;
    }
    if (readable)
      receive(pipeline, now);
    if (!trouble_)
      send(pipeline, now);
  }
  if (socket_.now() == redis_socket::state::closed)
    end(socket_.reason(), socket_.refused());
  check_silence(pipeline, now);
}

void redis_session::receive(redis_pipeline& pipeline, steady_time now) {
  char bytes[read_room];
  for (;;) {
    const auto count = socket_.read(bytes, sizeof bytes);
    if (count == 0)
      return;
    progress_ = now;
    reader_.feed(bytes, count);
    while (auto reply = reader_.next()) {
      take(pipeline, std::move(reply));
      if (trouble_)
        return;
    }
    if (reader_.broken())
      return end("what answers there is no Redis server, or expects TLS");
  }
}

void redis_session::take(redis_pipeline& pipeline, redis_reply reply) {
  if (!login_done_) {
    trouble_ = login_.answered(*reply);
    login_done_ = login_.complete() && !trouble_;
    role_due_ = progress_ + role_check;
  } else if (role_after_ && *role_after_ == 0) {
    role_after_.reset();
    trouble_ = is_error(*reply) ? std::nullopt : judge_role(*reply);
  } else if (!pipeline.has_in_flight()) {
    end(is_error(*reply) ? explain_refusal(text_of(*reply)) : "the server answered what was not asked");
  } else {
    if (role_after_)
      --*role_after_;
    if (pipeline.answered(std::move(reply)) == redis_pipeline::sequel::leave)
      leaving_ = true;
  }
}

void redis_session::send(redis_pipeline& pipeline, steady_time now) {
  if (login_done_ && !leaving_ && !role_after_ && now >= role_due_)
    ask_role(pipeline, now);
  for (;;) {
    if (login_done_ && !leaving_) {
      const auto before = out_.size();
      pipeline.fill(out_, out_at_ + send_room, appended_);
      appended_ += out_.size() - before;
    }
    const auto count = socket_.write(out_.data() + out_at_, out_.size() - out_at_);
    if (count == 0)
      return;
    sent_ += count;
    out_at_ += count;
    progress_ = now;
    if (out_at_ >= out_.size() / 2) { // no more is moved than was sent, however large a request is
      out_.erase(0, out_at_);
      out_at_ = 0;
    }
  }
}

/// A primary that became a replica would go on answering reads (S-134). An idle connection proves itself by it as well.
void redis_session::ask_role(const redis_pipeline& pipeline, steady_time now) {
  append(make_command("ROLE"));
  role_after_ = pipeline.replies_due();
  role_due_ = now + role_check;
}

steady_time redis_session::next_step() const noexcept {
  const auto silent_at = progress_ + silence_;
  if (!login_done_ || leaving_ || role_after_)
    return silent_at;
  return waits_for_answer_ ? std::min(silent_at, role_due_) : role_due_;
}

const char* redis_session::stage() const noexcept {
  if (!login_sent_)
    return socket_.shakes_hands() ? "the server does not answer the TLS handshake; does its port speak TLS?"
                                  : "the connection is not open yet";
  return login_done_ ? "the server took no more requests" : "the server does not answer the login";
}

void redis_session::check_silence(const redis_pipeline& pipeline, steady_time now) {
  if (leaving_ && !pipeline.has_in_flight())
    end("the server does not serve these keys now");
  waits_for_answer_ = !login_done_ || role_after_ || pipeline.has_in_flight();
  if (waits_for_answer_ && now - progress_ >= silence_)
    end(login_done_ ? "the server is silent" : stage());
}

void redis_session::append(const std::string& command) {
  out_ += command;
  appended_ += command.size();
}

void redis_session::end(std::string why, bool misconfigured) {
  if (!trouble_)
    trouble_ = redis_trouble{std::move(why), misconfigured};
}

} // namespace zlink::adapters
