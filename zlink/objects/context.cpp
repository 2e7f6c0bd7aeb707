#include "zlink/context.hpp"

#include "zlink/caf/ask.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/object_timers.hpp"
#include "zlink/spot.hpp"

namespace zlink {

common_spot_context::common_spot_context(detail::counted_ptr<detail::spot_object> object) noexcept
  : object_(std::move(object)) {}
common_spot_context::common_spot_context(common_spot_context&&) noexcept = default;
common_spot_context& common_spot_context::operator=(common_spot_context&&) noexcept = default;
common_spot_context::~common_spot_context() = default;

const std::string& common_spot_context::mesh_name() const noexcept { return object_->home_node().mesh_name; }
const std::string& common_spot_context::spot_id() const noexcept { return object_->id(); }
std::uint64_t common_spot_context::object_generation() const noexcept { return object_->generation().value; }
const std::string& common_spot_context::node_rid() const noexcept { return object_->home_node().node_rid; }
spot_outbound common_spot_context::outbound() const noexcept { return spot_outbound{object_}; }
zlink::host& common_spot_context::host() const noexcept { return *object_->home_node().host->handle; }

namespace {

task<bool> close_own(detail::spot_object& object, std::stop_token cancel) {
  if (cancel.stop_requested())
    return detail::make_ready_task(result<bool>{cancelled});
  if (object.fenced())
    return object.is_moving() ? detail::make_ready_task(result<bool>{error{error_kind::unavailable, '"' + object.id() + "\" has moved to another node"}})
                              : detail::make_ready_task(result<bool>{false}); // L-198, L-204
  if (detail::readiness_signaled())
    return detail::make_ready_task(result<bool>{detail::readiness_error()});
  auto& host = *object.home_node().host;
  const auto* t = detail::current_turn();
  auto* asking = t != nullptr && &t->object->whole() == &object ? t->object : nullptr;
  if (asking == nullptr && t != nullptr)
    if (auto* who = dynamic_cast<detail::actor_object*>(t->object); who != nullptr && who->serving() == &object)
      asking = who; // a handler of the Spot as well: it is told at the seal, or that there are members (C-115, J-150)
  return host.closings.close(detail::counted_ptr<detail::spot_object>::share(&object),
                             spot_close_reason::explicit_close, host.time->now() + object.home_node().request_timeout,
                             asking);
}

} // namespace

task<bool> instance_spot_context::close(std::stop_token cancel) const { return close_own(*object_, std::move(cancel)); }
task<bool> spot_context::close(std::stop_token cancel) const { return close_own(*object_, std::move(cancel)); }

spot_relocation_ready_call::spot_relocation_ready_call(detail::counted_ptr<detail::spot_object> object) noexcept
  : object_(std::move(object)) {}
spot_relocation_ready_call::spot_relocation_ready_call(spot_relocation_ready_call&&) noexcept = default;
spot_relocation_ready_call& spot_relocation_ready_call::operator=(spot_relocation_ready_call&&) noexcept = default;
spot_relocation_ready_call::~spot_relocation_ready_call() = default;
void spot_relocation_ready_call::defer() { object_->signal_readiness(); }

spot_relocation_ready_call spot_context::relocation_ready() const noexcept { return spot_relocation_ready_call{object_}; }

const char* to_string(spot_close_reason reason) noexcept {
  switch (reason) {
    case spot_close_reason::explicit_close: return "explicit_close";
    case spot_close_reason::host_shutdown: return "host_shutdown";
    case spot_close_reason::relocation_out: return "relocation_out";
    case spot_close_reason::idle_evicted: return "idle_evicted";
  }
  return "unknown";
}

const char* to_string(spot_relocation_ready_outcome outcome) noexcept {
  switch (outcome) {
    case spot_relocation_ready_outcome::continued: return "continued";
    case spot_relocation_ready_outcome::relocated: return "relocated";
  }
  return "unknown";
}

namespace detail {

task<void> spot_application::on_closing(const spot_closing_context&, std::stop_token) { return task<void>::done(); }
caf::event_based_actor* spot_application::self() const { return bound_object().self(); }

task<spot_create_response> user_spot_application::on_create(const message&) {
  return make_ready_task(result<spot_create_response>{spot_create_response{}});
}

task<void> user_spot_application::on_relocation_ready_completed(const spot_relocation_ready_completion&) {
  return task<void>::done();
}

void start_ask(spot_object& object, const caf::actor& whom, caf::message question, time_span timeout,
               counted_ptr<operation_base> ended) {
  const auto checked = check_timeout(timeout);
  if (object.fenced())
    ended->fail({error_kind::unavailable, "the spot has closed"});
  else if (readiness_signaled())
    ended->fail(readiness_error());
  else
    start_ask(static_cast<execution_object&>(object), whom, std::move(question), checked, std::move(ended));
}

void register_handler(spot_object& object, handler_entry entry) { object.register_handler(std::move(entry)); }

void register_subscription(spot_object& object, event_entry entry) {
  require_valid_id("channel name", entry.channel);
  if (entry.topic.empty())
    throw std::invalid_argument{"an empty topic; a subscription names the topic it is for"};
  const auto* node = object.home_node().host->find_node(object.mesh_name());
  if (node->channels.find(entry.channel) == nullptr)
    throw operation_failed{error{error_kind::invalid_configuration,
                                 "a subscription to channel \"" + entry.channel + "\", in which this node does not take part; call "
                                   "add_channel_server(\"" + entry.channel + "\") on mesh \"" + node->mesh_name() + '"'}};
  object.register_subscription(std::move(entry));
}

namespace {

/// `may`: the turn under way may add timers to the object.
task<timer> add_timer(hosted_object& object, bool may, std::string name, time_span period, const timer_options& options,
                      tick_invoke invoke, const std::stop_token& cancel) {
  const auto whole = period.milliseconds();
  if (whole != period.nanoseconds())
    throw std::invalid_argument{"the period of timer \"" + name + "\" is no whole number of milliseconds"};
  require_valid_timer(name, whole, options);
  if (cancel.stop_requested())
    return make_ready_task(result<timer>{cancelled});
  if (object.application_word().has(admission_word::sealed_bit))
    return make_ready_task(result<timer>{error{error_kind::unavailable, described(object.address()) + " has ended, or is ending"}});
  if (!may)
    return make_ready_task(result<timer>{error{error_kind::invalid_operation, "timers are added inside a turn of " + described(object.address())}});
  if (readiness_signaled())
    return make_ready_task(result<timer>{readiness_error()});
  return make_ready_task(result<timer>{object.timers().add(std::move(name), whole, options, invoke)});
}

} // namespace

task<timer> start_timer(spot_object& object, std::string name, time_span period, timer_options options, tick_invoke invoke,
                        std::stop_token cancel) {
  const auto* t = current_turn();
  const bool own = t != nullptr && &t->object->whole() == &object;
  return add_timer(object, own, std::move(name), period, options, invoke, cancel);
}

task<timer> start_timer(actor_object& object, std::string name, time_span period, timer_options options, tick_invoke invoke,
                        std::stop_token cancel) {
  const auto* t = current_turn();
  const bool own = t != nullptr && (t->object == &object || object.may_be_handled_by(t->object->whole()));
  return add_timer(object, own, std::move(name), period, options, invoke, cancel);
}

} // namespace detail
} // namespace zlink
