// What an application derives its Actors from: something of its own that lives in a Spot at any time and may change it.
#pragma once

#include "zlink/actor_context.hpp"
#include "zlink/error.hpp"
#include "zlink/identity.hpp"
#include "zlink/message.hpp"
#include "zlink/task.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace zlink {

/// How a Join ended (J-110 to J-117).
enum class join_outcome : std::uint8_t { accepted = 0, rejected = 1, failed = 2 };
/// "accepted", "rejected", "failed".
const char* to_string(join_outcome outcome) noexcept;

/// What `on_join_completed` is told. After `accepted` owner and membership are committed (J-114).
struct join_completion {
  join_outcome outcome = join_outcome::accepted;
  /// The same in every attempt to tell, else unique: the key for what may be done once only (J-115).
  std::string operation_id = {};
  /// Where the Actor is now.
  actor_ref actor = {};
  /// What `on_actor_join` answered, if it did.
  std::optional<message> reply = {};
  /// Of a failed one.
  std::optional<zlink::error> error = {};
};

/// Belongs to the layer from its creation to its end; its handlers are member functions of the Spot that it belongs to.
class actor {
public:
  explicit actor(actor_context context) noexcept : context_(std::move(context)) {}
  actor(const actor&) = delete;
  actor& operator=(const actor&) = delete;
  virtual ~actor() = default;

  const actor_context& context() const noexcept { return context_; }

  /// Called once per activation, before anything else.
  virtual void configure() {}
  /// A Join has ended. Messages behind it run when this has (J-65, J-102); it is called again with the same operation id
  /// when it throws.
  virtual task<void> on_join_completed(const join_completion& join);

  // -- for the layer ---------------------------------------------------------------------------------------------------
  detail::actor_object& bound_object() const noexcept { return context_.object(); }

private:
  actor_context context_;
};

namespace detail {

/// Its instance, while it is Ready.
actor* application_of(const actor_object& object) noexcept;

} // namespace detail
} // namespace zlink
