// Errors as values, `result<T>` and the exceptions of the awaitable surface.
#include "zlink/error.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using zlink::error;
using zlink::error_kind;
using zlink::result;

TEST_CASE("O-1 the thirteen kinds, their numbers and names") {
  const std::pair<error_kind, const char*> table[] = {
    {error_kind::not_found, "not_found"},
    {error_kind::already_exists, "already_exists"},
    {error_kind::type_mismatch, "type_mismatch"},
    {error_kind::not_configured, "not_configured"},
    {error_kind::rejected, "rejected"},
    {error_kind::unavailable, "unavailable"},
    {error_kind::deadline_exceeded, "deadline_exceeded"},
    {error_kind::shutting_down, "shutting_down"},
    {error_kind::protocol_error, "protocol_error"},
    {error_kind::invalid_operation, "invalid_operation"},
    {error_kind::data_lost, "data_lost"},
    {error_kind::internal_failure, "internal_failure"},
    {error_kind::invalid_configuration, "invalid_configuration"},
  };
  int number = 0;
  for (const auto& [kind, name] : table) {
    CHECK(static_cast<int>(kind) == number++);
    CHECK(zlink::to_string(kind) == std::string{name});
  }
  CHECK(number == 13);
  CHECK(zlink::to_string(static_cast<error_kind>(13)) == std::string{"unknown"}); // there is no fourteenth
}

TEST_CASE("O-2 an error holds kind, text and an optional platform code") {
  const error plain{error_kind::unavailable, "node is gone"};
  CHECK(plain.kind() == error_kind::unavailable);
  CHECK(plain.message() == "node is gone");
  CHECK(plain.code() == std::nullopt);
  CHECK(zlink::to_string(plain) == "unavailable: node is gone");
  const error coded{error_kind::internal_failure, "", {"errno", 5}};
  CHECK(coded.code()->category == "errno");
  CHECK(coded.code()->value == 5);
  CHECK(zlink::to_string(coded) == "internal_failure [errno 5]");
}

template <class T>
concept hints_at_retry = requires(const T& x) { x.retriable(); } || requires(const T& x) { x.retry_after(); }
                         || requires(const T& x) { x.is_retryable(); } || requires(const T& x) { x.retryable(); };
static_assert(!hints_at_retry<error> && !hints_at_retry<result<int>> && !hints_at_retry<result<void>>
              && !hints_at_retry<zlink::operation_failed> && !hints_at_retry<zlink::configuration_error>);

TEST_CASE("O-3 no error, result or exception carries anything beside what O-2 lists") {
  // Any further member would show in the size.
  struct listed {
    error_kind kind;
    std::string message;
    std::optional<error::platform_code> code;
  };
  CHECK(sizeof(error) == sizeof(listed));
  struct code {
    std::string category;
    int value;
  };
  CHECK(sizeof(error::platform_code) == sizeof(code));
}

// The values and exceptions that O-13 and X-145 name; that each operation ends in them is tested with the operations.
TEST_CASE("the same failure as exception and as result") {
  const error what{error_kind::deadline_exceeded, "no reply in 30 s"};
  const result<int> failed = what;
  CHECK_FALSE(failed);
  CHECK_FALSE(failed.is_cancelled());
  CHECK(failed.error().kind() == error_kind::deadline_exceeded);
  try {
    static_cast<void>(failed.value());
    FAIL("value() of a failure must throw");
  } catch (const zlink::operation_failed& thrown) {
    CHECK(thrown.kind() == error_kind::deadline_exceeded);
    CHECK(thrown.details().message() == "no reply in 30 s");
    CHECK(thrown.what() == std::string{"deadline_exceeded: no reply in 30 s"});
  }
  const result<void> nothing = what;
  CHECK_FALSE(nothing);
  CHECK_THROWS_AS(nothing.value(), zlink::operation_failed);
  CHECK(nothing.error().kind() == error_kind::deadline_exceeded);
}

TEST_CASE("cancellation is neither value nor error kind") {
  const result<int> ended = zlink::cancelled;
  CHECK_FALSE(ended);
  CHECK(ended.is_cancelled());
  CHECK_THROWS_AS(static_cast<void>(ended.value()), zlink::operation_cancelled);
  CHECK_THROWS_AS(static_cast<void>(ended.error()), std::logic_error);
  const result<void> nothing = zlink::cancelled;
  CHECK(nothing.is_cancelled());
  CHECK_FALSE(nothing);
  CHECK_THROWS_AS(nothing.value(), zlink::operation_cancelled);
  CHECK_THROWS_AS(static_cast<void>(nothing.error()), std::logic_error);
  static_assert(!std::is_base_of_v<zlink::operation_failed, zlink::operation_cancelled>);
}

TEST_CASE("a result with a value gives it, and no error") {
  result<std::string> text = std::string{"ok"};
  CHECK(text);
  CHECK(*text == "ok");
  CHECK(text->size() == 2);
  CHECK_THROWS_AS(static_cast<void>(text.error()), std::logic_error);
  const std::string moved = std::move(text).value();
  CHECK(moved == "ok");
  result<std::unique_ptr<int>> owner = std::make_unique<int>(5);
  CHECK(*std::move(owner).value() == 5);
  result<void> done;
  CHECK(done);
  CHECK_NOTHROW(done.value());
  CHECK_THROWS_AS(static_cast<void>(done.error()), std::logic_error);
}

TEST_CASE("a configuration error carries every mistake found and is no operation's failure") {
  const zlink::configuration_error both{std::vector<std::string>{"first", "second"}};
  CHECK(both.what() == std::string{"first\nsecond"});
  CHECK(both.mistakes().size() == 2);
  CHECK(both.kind() == error_kind::invalid_configuration);
  const zlink::configuration_error conflict{"taken", error_kind::already_exists}; // C-54
  CHECK(conflict.kind() == error_kind::already_exists);
  CHECK(conflict.mistakes() == std::vector<std::string>{"taken"});
  static_assert(!std::is_base_of_v<zlink::operation_failed, zlink::configuration_error>);
}

} // namespace
