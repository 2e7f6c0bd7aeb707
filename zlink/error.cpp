#include "zlink/error.hpp"

namespace zlink {

const char* to_string(error_kind kind) noexcept {
  switch (kind) {
    case error_kind::not_found: return "not_found";
    case error_kind::already_exists: return "already_exists";
    case error_kind::type_mismatch: return "type_mismatch";
    case error_kind::not_configured: return "not_configured";
    case error_kind::rejected: return "rejected";
    case error_kind::unavailable: return "unavailable";
    case error_kind::deadline_exceeded: return "deadline_exceeded";
    case error_kind::shutting_down: return "shutting_down";
    case error_kind::protocol_error: return "protocol_error";
    case error_kind::invalid_operation: return "invalid_operation";
    case error_kind::data_lost: return "data_lost";
    case error_kind::internal_failure: return "internal_failure";
    case error_kind::invalid_configuration: return "invalid_configuration";
  }
  return "unknown";
}

std::string to_string(const error& what) {
  std::string text = to_string(what.kind());
  if (!what.message().empty())
    text += ": " + what.message();
  if (what.code())
    text += " [" + what.code()->category + " " + std::to_string(what.code()->value) + "]";
  return text;
}

operation_failed::operation_failed(error what) : std::runtime_error(to_string(what)), error_(std::move(what)) {}

namespace {

std::string join(const std::vector<std::string>& mistakes) {
  std::string text;
  for (const auto& mistake : mistakes) {
    if (!text.empty())
      text += '\n';
    text += mistake;
  }
  return text;
}

} // namespace

configuration_error::configuration_error(std::vector<std::string> mistakes, error_kind kind)
  : std::runtime_error(join(mistakes)), mistakes_(std::move(mistakes)), kind_(kind) {}

configuration_error::configuration_error(std::string mistake, error_kind kind)
  : configuration_error(std::vector<std::string>{std::move(mistake)}, kind) {}

namespace detail {

void throw_operation_failed(const error& what) { throw operation_failed{what}; }
void throw_operation_cancelled() { throw operation_cancelled{}; }
void throw_bad_result_access(const char* what) { throw std::logic_error{what}; }

} // namespace detail

} // namespace zlink
