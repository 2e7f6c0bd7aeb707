// What can go wrong, as values: the closed set of error kinds, `error`, `result<T>`, and the exceptions of the awaitable
// surface. Includes nothing of CAF.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace zlink {

/// The thirteen kinds an application can meet, and no other (O-1). The values are fixed.
enum class error_kind : std::uint8_t {
  not_found = 0,
  already_exists = 1,
  type_mismatch = 2,
  not_configured = 3,
  rejected = 4,
  unavailable = 5,
  deadline_exceeded = 6,
  shutting_down = 7,
  protocol_error = 8,
  invalid_operation = 9,
  data_lost = 10,
  internal_failure = 11,
  invalid_configuration = 12,
};

/// The enumerator's name, for example "deadline_exceeded"; "unknown" for a value outside the set. Thread-safe.
const char* to_string(error_kind kind) noexcept;

/// Kind, text and an optional platform code; nothing else, in particular no retry hint (O-2, O-3).
class error {
public:
  /// A platform code names its category, for example "caf.sec" or "errno" (D-14).
  struct platform_code {
    std::string category;
    int value = 0;
    friend bool operator==(const platform_code&, const platform_code&) = default;
  };

  error(error_kind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  error(error_kind kind, std::string message, platform_code code)
    : kind_(kind), message_(std::move(message)), code_(std::move(code)) {}

  error_kind kind() const noexcept { return kind_; }
  const std::string& message() const noexcept { return message_; }
  const std::optional<platform_code>& code() const noexcept { return code_; }

private:
  error_kind kind_;
  std::string message_;
  std::optional<platform_code> code_;
};

/// "deadline_exceeded: request to spot \"cart-17\" ...".
std::string to_string(const error& what);

/// Thrown by awaiting or `sync_wait` when an operation ended in an error kind (O-13).
class operation_failed : public std::runtime_error {
public:
  explicit operation_failed(error what);
  error_kind kind() const noexcept { return error_.kind(); }
  const error& details() const noexcept { return error_; }

private:
  error error_;
};

/// Thrown by awaiting or `sync_wait` when the caller's stop token ended the operation; not an error kind.
class operation_cancelled : public std::exception {
public:
  const char* what() const noexcept override { return "operation cancelled by its stop token"; }
};

/// Thrown by registration, `host::from_file` and `host::start()`; carries every mistake found, is never sent (O-4, C-34).
class configuration_error : public std::runtime_error {
public:
  explicit configuration_error(std::vector<std::string> mistakes,
                               error_kind kind = error_kind::invalid_configuration);
  explicit configuration_error(std::string mistake, error_kind kind = error_kind::invalid_configuration);
  /// `invalid_configuration`, except `already_exists` for an identity conflict (C-54).
  error_kind kind() const noexcept { return kind_; }
  const std::vector<std::string>& mistakes() const noexcept { return mistakes_; }

private:
  std::vector<std::string> mistakes_;
  error_kind kind_;
};

/// Marks the third end of an operation besides value and error: its stop token was used.
struct cancelled_t {};
inline constexpr cancelled_t cancelled{};

namespace detail {
[[noreturn]] void throw_operation_failed(const error& what);
[[noreturn]] void throw_operation_cancelled();
[[noreturn]] void throw_bad_result_access(const char* what);
} // namespace detail

/// Value, error or cancelled; what `as_result` and `.then` deliver. Never throws unless `value()` is asked for one it
/// does not hold.
template <class T>
class [[nodiscard]] result {
public:
  using value_type = T;

  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(zlink::error what) : state_(std::in_place_index<1>, std::move(what)) {}
  result(cancelled_t) : state_(std::in_place_index<2>) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  /// True if the caller's stop token ended the operation; then there is neither value nor error.
  bool is_cancelled() const noexcept { return state_.index() == 2; }

  /// Throws `operation_failed` or `operation_cancelled` if there is no value.
  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::move(std::get<0>(state_)); }

  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::move(std::get<0>(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  /// The error; throws `std::logic_error` if there is none.
  const zlink::error& error() const {
    if (state_.index() != 1)
      detail::throw_bad_result_access("result::error() on a result without error");
    return std::get<1>(state_);
  }

private:
  void check() const {
    if (state_.index() == 1)
      detail::throw_operation_failed(std::get<1>(state_));
    if (state_.index() == 2)
      detail::throw_operation_cancelled();
  }
  std::variant<T, zlink::error, cancelled_t> state_;
};

template <>
class [[nodiscard]] result<void> {
public:
  using value_type = void;

  result() = default;
  result(zlink::error what) : error_(std::move(what)) {}
  result(cancelled_t) : cancelled_(true) {}

  bool has_value() const noexcept { return !error_ && !cancelled_; }
  explicit operator bool() const noexcept { return has_value(); }
  bool is_cancelled() const noexcept { return cancelled_; }
  void value() const {
    if (error_)
      detail::throw_operation_failed(*error_);
    if (cancelled_)
      detail::throw_operation_cancelled();
  }
  const zlink::error& error() const {
    if (!error_)
      detail::throw_bad_result_access("result::error() on a result without error");
    return *error_;
  }

private:
  std::optional<zlink::error> error_;
  bool cancelled_ = false;
};

} // namespace zlink
