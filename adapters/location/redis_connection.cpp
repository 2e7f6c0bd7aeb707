#include "adapters/location/redis_connection.hpp"

#include "adapters/location/redis_worker.hpp"
#include "zlink/error.hpp"
#include "zlink/execution/signals_blocked.hpp"
#include "zlink/identity.hpp"

#include <algorithm>

namespace zlink::adapters {

namespace {

bool is_usable_prefix(std::string_view prefix) noexcept {
  const auto unusable = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 0x7f || c == '{' || c == '}';
  };
  return !prefix.empty() && prefix.size() <= 256 && detail::is_utf8(prefix)
         && std::none_of(prefix.begin(), prefix.end(), unusable);
}

redis_options checked(redis_options options) {
  using namespace std::chrono_literals;
  std::vector<std::string> mistakes;
  try {
    parse_redis_url(options.url);
  } catch (const configuration_error& wrong) {
    mistakes = wrong.mistakes();
  }
  if (!is_usable_prefix(options.key_prefix))
    mistakes.push_back("Redis key prefix: 1 to 256 bytes of UTF-8 without braces, white space and control characters");
  if (options.operation_timeout < 1ms || options.operation_timeout > 10min)
    mistakes.push_back("Redis operation timeout: 1 ms to 10 min");
  if (options.max_in_flight < 1 || options.max_in_flight > 65'536)
    mistakes.push_back("Redis requests in flight: 1 to 65536");
  if (options.acknowledging_replicas > 16)
    mistakes.push_back("Redis acknowledging replicas: 0 to 16");
  if (!mistakes.empty())
    throw configuration_error{std::move(mistakes)};
  return options;
}

} // namespace

redis_connection::redis_connection(redis_options options, std::vector<const redis_script*> scripts)
  : key_prefix_("{" + options.key_prefix + "}:"),
    worker_(std::make_shared<worker>(checked(std::move(options)), std::move(scripts))) {
  const detail::signals_blocked blocked{detail::signals_blocked::which::all}; // and a write to a closed socket only fails
  thread_ = std::thread{[work = worker_] { work->run(); }};
}

redis_connection::~redis_connection() {
  worker_->stop();
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach(); // destroyed by a completion: the thread ends when that returns
  else
    thread_.join();
}

void redis_connection::submit(const redis_script& script, redis_arguments arguments, bool changes,
                              unique_function<void(redis_answer)> done) {
  worker_->submit({&script, std::move(arguments), changes, std::move(done)});
}

} // namespace zlink::adapters
