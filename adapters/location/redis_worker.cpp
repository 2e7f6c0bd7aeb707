#include "adapters/location/redis_worker.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace zlink::adapters {

using namespace std::chrono_literals;

namespace {

constexpr steady_duration first_pause = 50ms;
constexpr steady_duration longest_pause = 2s;
constexpr std::chrono::milliseconds shortest_silence = 1s; // time to connect and to log in, whatever the timeout is

redis_pipeline::limits limits_of(const redis_options& options) {
  redis_pipeline::limits most;
  most.in_flight = options.max_in_flight;
  most.acknowledging_replicas = options.acknowledging_replicas;
  most.acknowledgement = std::max<std::chrono::milliseconds>(options.operation_timeout / 2, 1ms);
  return most;
}

} // namespace

redis_connection::worker::worker(redis_options options, std::vector<const redis_script*> scripts)
  : options_(std::move(options)),
    address_(parse_redis_url(options_.url)),
    scripts_(std::move(scripts)),
    pipeline_(limits_of(options_)) {
  if (address_.tls)
    context_ = make_tls_context(address_);
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0)
    throw std::system_error{errno, std::generic_category(), "eventfd"};
}

redis_connection::worker::~worker() { ::close(wake_fd_); }

void redis_connection::worker::submit(redis_request request) {
  request.deadline = time_.now() + options_.operation_timeout;
  const auto bytes = request.arguments.size();
  const char* refused = nullptr;
  bool first = false;
  {
    const std::lock_guard guard{mutex_};
    const auto requests = inbox_.size() + load_;
    if (stopped_) {
      refused = "the Redis store is closed";
    } else if (requests >= most_requests || (requests > 0 && inbox_bytes_ + load_bytes_ + bytes > most_bytes)) {
      refused = "too many requests to the Redis server are outstanding";
    } else {
      request.deadline = std::max(request.deadline, inbox_.empty() ? request.deadline : inbox_.back().deadline);
      first = inbox_.empty();
      inbox_bytes_ += bytes;
      inbox_.push_back(std::move(request));
    }
  }
  if (refused != nullptr)
    request.done(store_failure{store_failure_class::not_applied, refused});
  else if (first)
    wake();
}

void redis_connection::worker::stop() {
  {
    const std::lock_guard guard{mutex_};
    stopped_ = true;
  }
  wake();
}

void redis_connection::worker::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof one); // full: it is awake anyway
}

/// False: it is to stop.
bool redis_connection::worker::take_inbox(std::vector<redis_request>& into) {
  const std::lock_guard guard{mutex_};
  into.swap(inbox_);
  load_ += into.size();
  load_bytes_ += inbox_bytes_.exchange(0);
  return !stopped_;
}

void redis_connection::worker::publish_load() noexcept {
  load_ = pipeline_.size();
  load_bytes_ = pipeline_.bytes();
}

void redis_connection::worker::run() {
  std::vector<redis_request> taken;
  for (bool going_on = true; going_on;) {
    going_on = take_inbox(taken);
    for (auto& request : taken)
      pipeline_.add(std::move(request));
    taken.clear();
    const auto now = time_.now();
    pipeline_.expire(now, session_ && !was_ready_ ? place() + ": " + session_->stage() : trouble_);
    if (going_on) {
      keep_session(now);
      publish_load();
      wait(now);
    }
  }
  if (session_)
    pipeline_.broken(session_->sent(), "the Redis store was closed before the answer came");
  pipeline_.close("the Redis store was closed");
  session_.reset();
}

void redis_connection::worker::keep_session(steady_time now) {
  if (!session_) {
    if (now < retry_at_)
      return;
    const auto silence = std::max(options_.operation_timeout, shortest_silence);
    session_ = std::make_unique<redis_session>(redirected_.value_or(address_), context_.get(), scripts_, silence, now);
    was_ready_ = false;
    readable_ = true;
  }
  session_->step(pipeline_, readable_, now);
  if (session_->ready() && !was_ready_)
    note_ready();
  if (const auto trouble = session_->trouble())
    end_session(*trouble, now);
}

void redis_connection::worker::note_ready() {
  was_ready_ = true;
  failures_ = 0;
  if (!noted_.empty())
    note("connected");
  noted_.clear();
  auto warnings = session_->login().warnings();
  for (const auto& one : warnings)
    if (std::find(warned_.begin(), warned_.end(), one) == warned_.end())
      note(one);
  warned_ = std::move(warnings);
  trouble_ = "the server took no more requests";
}

void redis_connection::worker::end_session(const redis_trouble& why, steady_time now) {
  trouble_ = place() + ": " + why.text;
  pipeline_.broken(session_->sent(), "the connection to the Redis server was lost before the answer came");
  session_.reset();
  redirected_.reset();
  if (const auto there = pipeline_.take_redirection()) {
    redirected_ = address_;
    redirected_->port = there->port;
    if (!there->host.empty())
      redirected_->host = there->host;
  } else {
    if (noted_ != trouble_)
      note(why.text + (why.misconfigured ? "" : "; trying again"));
    noted_ = trouble_;
  }
  if (why.misconfigured)
    pipeline_.refuse_waiting({store_failure_class::not_applied, "Redis " + trouble_, true});
  retry_at_ = now + next_pause();
  ++failures_;
}

/// Half of it by chance, so that hosts that lost a server together do not return together (S-139).
steady_duration redis_connection::worker::next_pause() {
  const auto whole =
    std::min<steady_duration>(first_pause * (std::int64_t{1} << std::min(failures_, 10U)), longest_pause);
  const auto least = failures_ == 0 ? steady_duration::zero() : whole / 2;
  const auto chance = random_.next() % static_cast<std::uint64_t>((whole - least).count() + 1);
  return least + steady_duration{static_cast<steady_duration::rep>(chance)};
}

void redis_connection::worker::note(const std::string& text) {
  const auto line = "Redis " + address_.shown() + ": " + text;
  if (options_.on_notice)
    options_.on_notice(line);
  else
    std::fprintf(stderr, "%s\n", line.c_str());
}

void redis_connection::worker::wait(steady_time now) {
  auto until = session_ ? session_->next_step() : retry_at_;
  if (const auto deadline = pipeline_.next_deadline())
    until = std::min(until, *deadline);
  pollfd both[2] = {{wake_fd_, POLLIN, 0}, {-1, 0, 0}};
  if (session_) {
    both[1].fd = session_->descriptor();
    both[1].events = session_->wanted_events();
  }
  const auto pause = std::chrono::ceil<std::chrono::milliseconds>(std::max(until - now, steady_duration::zero()));
  ::poll(both, 2, static_cast<int>(std::min<std::int64_t>(pause.count(), 60'000)));
  if ((both[0].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto size = ::read(wake_fd_, &count, sizeof count);
  }
  readable_ = session_ && (both[1].revents & ~POLLOUT) != 0;
}

} // namespace zlink::adapters
