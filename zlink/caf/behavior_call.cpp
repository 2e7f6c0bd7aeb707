#include "zlink/caf/behavior_call.hpp"

#include "zlink/codec_error.hpp"
#include "zlink/execution/decoding.hpp"
#include "zlink/execution/execution_object.hpp"
#include "zlink/objects/handler_table.hpp"

#include <caf/detail/invoke_result_visitor.hpp>

namespace zlink::detail {

namespace {

enum class given : std::uint8_t { later, value, failure };

/// What a behaviour returned.
class outcome_visitor final : public caf::detail::invoke_result_visitor {
public:
  using invoke_result_visitor::operator();
  void operator()() override {} // promise, delegate or stream
  void operator()(caf::error& what) override {
    what_ = what ? given::failure : given::value;
    if (what)
      message_ = caf::make_message(std::move(what));
  }
  void operator()(caf::message& value) override {
    what_ = given::value;
    message_ = std::move(value);
  }
  void operator()(const caf::none_t&) override { what_ = given::value; }

  given what() const noexcept { return what_; }
  caf::message take() noexcept { return std::move(message_); }

private:
  given what_ = given::later;
  caf::message message_;
};

struct invocation {
  caf::behavior& behavior;
  outcome_visitor& visitor;
  caf::match_case::result matched = caf::match_case::no_match;
};

/// A body from another node becomes a value of its registered type, or the CAF message that it was (D-13).
void decode_by_name(record& r, const execution_object& object) {
  try {
    unpack_caf_message(r.body, object.domain().system);
  } catch (const decode_error& what) {
    throw undecodable_record{what.what()};
  }
  if (r.body.kind() != payload_kind::encoded)
    return;
  const auto* type = find_packet(r.body.get<encoded_value>()->packet_name());
  if (type != nullptr)
    decoded_body(r, object, *type);
}

void invoke(record& r, invocation& call) {
  auto& body = r.body;
  if (auto* message = body.get<caf::message>()) {
    call.matched = call.behavior(call.visitor, *message);
    return;
  }
  const auto* type = body.packet();
  const auto* caf_ops = type == nullptr ? nullptr : type->caf.load(std::memory_order_acquire);
  if (caf_ops == nullptr)
    return;
  void* address = body.kind() == payload_kind::dynamic ? body.get<dynamic_value>()->address() : body.address();
  packet_view view{*caf_ops, address};
  call.matched = call.behavior(call.visitor, view);
}

void store_outcome(record& r, outcome_visitor& visitor) {
  auto message = visitor.take();
  r.body.reset();
  if (!message.empty())
    r.body.emplace<caf::message>(std::move(message));
}

} // namespace

behavior_outcome behavior_call::run(caf::behavior& behavior) {
  if (record_.body.kind() == payload_kind::encoded)
    decode_by_name(record_, object_);
  outcome_visitor visitor;
  invocation call{behavior, visitor};
  const auto taken = [this] { return request_ && request_->taken(); };
  try {
    invoke(record_, call);
  } catch (...) {
    if (!taken())
      throw;
    // Whoever drops the promise answers; what the handler has registered goes with its exception (J-63).
    if (const auto& scope = current_turn()->scope)
      scope->end(nullptr, false);
    note_failure(object_, packet_name_of(record_.body), std::current_exception(), true);
    return behavior_outcome::parked;
  }
  if (taken())
    return behavior_outcome::parked;
  if (call.matched != caf::match_case::match)
    return behavior_outcome::no_match;
  if (visitor.what() == given::later) {
    record_.body.reset();
    if (record_.kind == record_kind::request)
      record_.body.emplace<error>(error_kind::internal_failure, "the behaviour returned a promise that nobody can answer");
    return behavior_outcome::done;
  }
  store_outcome(record_, visitor);
  return behavior_outcome::done;
}

} // namespace zlink::detail
