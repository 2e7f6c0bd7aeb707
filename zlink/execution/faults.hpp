// Exceptions of application code: counted, logged with their cause, and turned into the record's answer.
#pragma once

#include "zlink/dispatch_error.hpp"
#include "zlink/execution/record.hpp"

#include <exception>
#include <stdexcept>
#include <string_view>

namespace zlink::detail {

/// In a `catch (...)`: what it says, also if it is no `std::exception`.
std::string text_of_current_exception();

struct execution_domain;
class execution_object;

/// A record whose body is no such packet: the fault of its sender, not of a handler (M-143).
class undecodable_record : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Tells the host's log. Whatever the log does, nothing comes out.
void report(const execution_domain& domain, dispatch_error what) noexcept;

/// The exception ended the handler of `r`: its body becomes the error that the caller of a request gets.
void fail_record(execution_object& object, record& r, std::exception_ptr what) noexcept;

/// Nobody serves `r`, whose body is still there.
void note_no_handler(execution_object& object, record& r) noexcept;

/// The exception ended application code that serves no record: a callback, or a step of the layer. `answered`: whoever
/// waits for it is told.
void note_failure(execution_object& object, std::string_view subject, std::exception_ptr what, bool answered) noexcept;

} // namespace zlink::detail
