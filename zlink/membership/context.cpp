#include "zlink/actor_context.hpp"

#include "zlink/actor.hpp"
#include "zlink/host/host_runtime.hpp"

namespace zlink {

task<void> actor::on_join_completed(const join_completion&) { return task<void>::done(); }

actor_context::actor_context(detail::counted_ptr<detail::actor_object> object) noexcept : object_(std::move(object)) {}
actor_context::actor_context(actor_context&&) noexcept = default;
actor_context& actor_context::operator=(actor_context&&) noexcept = default;
actor_context::~actor_context() = default;

std::string actor_context::actor_id() const { return object_->id(); }
std::uint64_t actor_context::object_generation() const noexcept { return object_->generation().value; }
const std::string& actor_context::mesh_name() const noexcept { return object_->home_node().mesh_name; }
const std::string& actor_context::node_rid() const noexcept { return object_->home_node().node_rid; }
std::string actor_context::spot_id() const { return object_->membership().spot_id; }
actor_ref actor_context::ref() const { return object_->ref_here(); }
spot_outbound actor_context::outbound() const noexcept { return spot_outbound{object_}; }
zlink::host& actor_context::host() const noexcept { return *object_->home_node().host->handle; }

join_call actor_context::make_join(std::optional<std::string> spot_id, message request) const {
  if (spot_id)
    detail::require_valid_id("spot id", *spot_id);
  auto made = std::make_unique<detail::join_request>();
  made->actor = object_;
  made->spot_id = std::move(spot_id);
  made->request = std::move(request);
  made->made_in = detail::current_scope();
  return join_call{std::move(made)};
}

join_call::join_call(std::unique_ptr<detail::join_request> request) noexcept : request_(std::move(request)) {}
join_call::join_call(join_call&&) noexcept = default;
join_call& join_call::operator=(join_call&&) noexcept = default;
join_call::~join_call() = default;

join_call& join_call::timeout(time_span limit) & {
  const auto checked = detail::check_timeout(limit);
  if (request_ == nullptr)
    throw operation_failed{error{error_kind::invalid_operation, "a Join that was moved from"}};
  request_->twice = request_->twice || request_->timeout;
  request_->timeout = checked;
  return *this;
}

void join_call::defer() {
  if (request_ == nullptr)
    throw operation_failed{error{error_kind::invalid_operation, "a Join that was moved from"}};
  request_->actor->home_node().host->actors.defer(*request_);
}

namespace detail {

task<void> leave_spot(spot_object& spot, actor& who, std::stop_token cancel) {
  return spot.home_node().host->actors.leave(spot, who.bound_object(), std::move(cancel));
}

task<void> destroy_in(spot_object& entry, actor& who, std::stop_token cancel) {
  return entry.home_node().host->actors.destroy_in(entry, who.bound_object(), std::move(cancel));
}

const spot_members& readable_members(spot_object& spot) {
  const auto* t = current_turn();
  const bool shared = spot.factory().kind == spot_kind::user && spot.factory().mode == execution_mode::spot_wide;
  if (t == nullptr || t->home != &spot.home() || !shared)
    throw operation_failed{error{error_kind::invalid_operation, "members() belongs inside a turn of a SpotWide Spot or of one of its members"}};
  return spot.members();
}

void register_actor_handler(spot_object& object, actor_handler_entry entry) { object.register_actor_handler(std::move(entry)); }

} // namespace detail
} // namespace zlink
