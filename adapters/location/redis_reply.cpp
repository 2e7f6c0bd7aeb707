#include "adapters/location/redis_reply.hpp"

#include <charconv>

namespace zlink::adapters {

namespace {

struct known_refusal {
  std::string_view code;
  redis_refusal meaning;
  const char* advice;
};

/// Errors that a server raises before a command or the first write of a script, so nothing has happened (S-157).
constexpr known_refusal known_refusals[] = {
  {"NOSCRIPT", redis_refusal::unknown_script, "it does not know the script"},
  {"MOVED", redis_refusal::elsewhere, "another server of the cluster has the data"},
  {"ASK", redis_refusal::refused, "the data is on its way to another server of the cluster; wait for the end of that"},
  {"TRYAGAIN", redis_refusal::refused,
   "the data is on its way to another server of the cluster; wait for the end of that"},
  {"CLUSTERDOWN", redis_refusal::refused, "the cluster is down; see CLUSTER INFO there"},
  {"READONLY", redis_refusal::elsewhere, "it is a replica, which must not be asked; give the primary"},
  {"MASTERDOWN", redis_refusal::elsewhere, "it is a replica without its primary; give the primary"},
  {"LOADING", redis_refusal::starting, "it still loads its data"},
  {"BUSY", redis_refusal::refused, "somebody's script keeps it busy; see SCRIPT KILL"},
  {"OOM", redis_refusal::refused, "it has no memory left; raise maxmemory, with the policy noeviction"},
  {"MISCONF", redis_refusal::refused, "it cannot save its data and takes no writes; see its log"},
  {"NOREPLICAS", redis_refusal::refused, "too few replicas are connected to it for a write"},
  {"NOAUTH", redis_refusal::refused, "it demands a password; put it into the URL"},
  {"NOPERM", redis_refusal::refused, "the user lacks a right; it needs the scripts' commands on keys with the prefix"},
};

const known_refusal* find_refusal(std::string_view error) noexcept {
  const auto code = error_code(error);
  for (const auto& one : known_refusals)
    if (one.code == code)
      return &one;
  return nullptr;
}

/// More parts than any answer to us has: memory for them is not even asked for.
constexpr int most_parts = 65'536;

using array_maker = void* (*)(const redisReadTask*, int);

array_maker usual_array() {
  static const auto usual = [] {
    const std::unique_ptr<redisReader, decltype(&::redisReaderFree)> any{::redisReaderCreate(), &::redisReaderFree};
    return any->fn->createArray;
  }();
  return usual;
}

void* bounded_array(const redisReadTask* task, int parts) { return parts > most_parts ? nullptr : usual_array()(task, parts); }

} // namespace

redis_reader::redis_reader() : reader_(::redisReaderCreate(), &::redisReaderFree) {
  make_ = *reader_->fn;
  make_.createArray = &bounded_array;
  reader_->fn = &make_;
}

store_failure not_understood() {
  return {store_failure_class::unclear, "the Redis server answered in a form that is not known; are the keys with this "
                                        "prefix used by something else?"};
}

std::string_view error_code(std::string_view error) noexcept {
  if (error.starts_with("ERR Error running script")) {
    const auto inner = error.find(": -");
    if (inner != std::string_view::npos)
      error.remove_prefix(inner + 3);
  }
  return error.substr(0, error.find(' '));
}

redis_refusal judge_refusal(std::string_view error) noexcept {
  const auto* known = find_refusal(error);
  return known == nullptr ? redis_refusal::unclear : known->meaning;
}

std::string explain_refusal(std::string_view error) {
  const auto* known = find_refusal(error);
  if (known != nullptr)
    return "the Redis server refused (" + std::string{known->code} + "): " + known->advice;
  return "the Redis server answered with the error " + std::string{error_code(error).substr(0, 32)};
}

std::optional<redis_redirection> parse_redirection(std::string_view error) {
  if (error_code(error) != "MOVED")
    return std::nullopt;
  const auto place = error.substr(error.rfind(' ') + 1);
  const auto colon = place.rfind(':');
  if (colon == std::string_view::npos)
    return std::nullopt;
  redis_redirection there;
  there.host = place.substr(0, colon);
  const auto digits = place.substr(colon + 1);
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), there.port);
  if (failed != std::errc{} || there.port == 0)
    return std::nullopt;
  return there;
}

} // namespace zlink::adapters
