#include "zlink/messaging/filter_chain.hpp"

#include "zlink/messaging/node_handlers.hpp"

namespace zlink {

const char* to_string(dispatch_kind kind) noexcept {
  switch (kind) {
    case dispatch_kind::node_send: return "node_send";
    case dispatch_kind::node_request: return "node_request";
    case dispatch_kind::channel_send: return "channel_send";
    case dispatch_kind::channel_request: return "channel_request";
  }
  return "unknown";
}

task<void> filter_next::operator()() {
  if (std::exchange(used_, true))
    return detail::make_ready_task(
      result<void>{error{error_kind::invalid_operation, "next was called before; a filter passes a message on once"}});
  return chain_->enter(place_ + 1);
}

namespace detail {

filter_chain::filter_chain(std::vector<std::unique_ptr<message_filter>> filters, function_handler& handler,
                           execution_object& object, record& served, const message_context& context,
                           dispatch_kind kind)
  : filters_(std::move(filters)), handler_(handler), object_(object), served_(served),
    context_(context, kind) {
  for (std::size_t place = 0; place < filters_.size(); ++place)
    nexts_.emplace_back(*this, place);
}

task<void> filter_chain::enter(std::size_t place) {
  return place == filters_.size() ? serve() : filters_[place]->apply(context_, nexts_[place]);
}

task<void> filter_chain::serve() {
  begun_ = true;
  handled_ = new_counted<operation<void>>();
  handled_->owner = &object_;
  handled_->use = turn_use::yield; // the handler's own turns come in between
  try {
    auto serving = handler_.serve(object_, &served_, context_.message());
    reply_ = co_await std::move(serving);
  } catch (...) {
    failure_ = std::current_exception();
  }
  handled_->set(result<void>{});
  if (failure_)
    std::rethrow_exception(failure_);
}

task<payload> filter_chain::run(std::unique_ptr<filter_chain> chain) {
  std::exception_ptr thrown;
  try {
    auto passing = chain->enter(0);
    co_await std::move(passing);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (chain->begun_) { // the dispatch ends with its handler
    auto serving = task<void>{chain->handled_};
    co_await std::move(serving);
  }
  if (chain->failure_)
    std::rethrow_exception(chain->failure_);
  if (!chain->begun_ && thrown)
    std::rethrow_exception(thrown);
  if (!chain->begun_ && chain->served_.kind == record_kind::request)
    chain->reply_.emplace<error>(error_kind::rejected, "a filter of the node did not let the request pass");
  co_return std::move(chain->reply_);
}

} // namespace detail
} // namespace zlink
