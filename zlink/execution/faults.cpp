#include "zlink/execution/faults.hpp"

#include "zlink/execution/domain.hpp"
#include "zlink/execution/execution_object.hpp"

#include <iostream>

namespace zlink::detail {

std::string text_of_current_exception() {
  try {
    throw;
  } catch (const std::exception& what) {
    return what.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

namespace {

struct cause {
  std::string text;
  bool undecodable = false;
};

cause cause_of(const std::exception_ptr& what) {
  try {
    std::rethrow_exception(what);
  } catch (const undecodable_record& failure) {
    return {failure.what(), true};
  } catch (...) {
    return {text_of_current_exception(), false};
  }
}

dispatch_error about(const execution_object& object) {
  dispatch_error what;
  what.surface = object.surface();
  what.mesh_name = object.mesh_name();
  what.spot_id = object.spot_id();
  return what;
}

void report_record(const execution_object& object, record& r, dispatch_reason reason, std::string_view text) {
  const bool request = r.kind == record_kind::request;
  const auto subject = object.subject_of(r);
  dispatch_error what = about(object);
  what.reason = reason;
  what.action = request ? dispatch_action::reply_error : dispatch_action::drop;
  what.kind = request ? "request" : r.kind == record_kind::send ? "send" : "control";
  what.subject = subject;
  what.text = text;
  report(object.domain(), what);
}

} // namespace

void report(const execution_domain& domain, dispatch_error what) noexcept {
  constexpr std::size_t longest_text = 256; // O-92
  what.text = what.text.substr(0, longest_text);
  try {
    if (domain.log)
      domain.log(what);
    else
      std::cerr << to_string(what) + '\n';
  } catch (...) {
    // A log that fails changes nothing (O-115).
  }
}

void fail_record(execution_object& object, record& r, std::exception_ptr what) noexcept {
  auto why = cause_of(what);
  auto& domain = object.domain();
  if (!why.undecodable)
    domain.counters.handler_exceptions.fetch_add(1, std::memory_order_relaxed);
  if (r.kind != record_kind::request)
    domain.counters.drop(why.undecodable ? drop_reason::undecodable : drop_reason::handler_failed);
  report_record(object, r, why.undecodable ? dispatch_reason::decode_error : dispatch_reason::handler_exception, why.text);
  r.body.reset();
  r.body.emplace<error>(why.undecodable ? error_kind::protocol_error : error_kind::internal_failure, std::move(why.text));
}

void note_no_handler(execution_object& object, record& r) noexcept {
  object.domain().counters.drop(drop_reason::no_handler);
  report_record(object, r, dispatch_reason::no_handler, {});
}

void note_failure(execution_object& object, std::string_view subject, std::exception_ptr what, bool answered) noexcept {
  const auto why = cause_of(what);
  object.domain().counters.handler_exceptions.fetch_add(1, std::memory_order_relaxed);
  dispatch_error logged = about(object);
  logged.action = answered ? dispatch_action::fail_caller : dispatch_action::drop;
  logged.kind = "control";
  logged.subject = subject;
  logged.text = why.text;
  report(object.domain(), logged);
}

} // namespace zlink::detail
