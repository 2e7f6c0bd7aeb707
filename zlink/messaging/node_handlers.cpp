#include "zlink/messaging/node_handlers.hpp"

#include "zlink/messaging/filter_chain.hpp"
#include "zlink/objects/handler_invoke.hpp"

namespace zlink::detail {

/// Serves one message after the other, each in its own turn and with nothing of the one before. As many run as CAF
/// has workers, which is as much as can overlap; those whose handlers are suspended do not count.
class node_handlers::runner final : public execution_object {
public:
  explicit runner(node_handlers& table)
    : execution_object(table.domain_, new_counted<gate>(table.domain_), 0), table_(table) {}
  std::string_view mesh_name() const noexcept override { return table_.mesh_name_; }
  std::string_view surface() const noexcept override { return table_.surface_ == handler_surface::node ? "node" : "channel"; }
  bool needs_lease() const noexcept override { return false; }
  std::optional<error_kind> yield_refused() const noexcept override { return error_kind::invalid_operation; }

  /// Asks for a message when its gate runs. Any thread.
  void wake() { submit_unchecked(make_record(record_kind::pull), false); }
  record* pull() noexcept override { return suspended_ ? nullptr : table_.next_for(*this); }

  dispatched dispatch(record* r) override {
    const bool request = r->kind == record_kind::request;
    if (auto* handler = table_.find(r->body, request)) {
      auto* run = table_.run(*handler, *this, r);
      if (run != nullptr && run->now != handler_run::state::ended && run->now != handler_run::state::running) {
        suspended_ = true;
        table_.suspended();
      }
      return {run, nullptr};
    }
    note_no_handler(*this, *r);
    r->body.reset();
    if (request)
      r->body.emplace<error>(error_kind::not_found, std::string{"the "} + std::string{surface()} + " has no handler for this packet");
    return {};
  }
  void on_handler_ended(record&) noexcept override {
    if (!std::exchange(suspended_, false))
      return; // it asks for the next one itself
    table_.resumed();
    wake(); // behind the reply
  }
  void on_quiet() noexcept override {
    watch_quiet(false);
    table_.rest(*this);
  }

private:
  node_handlers& table_;
  bool suspended_ = false; ///< its handler is, and another runner may have its place
};

node_handlers::~node_handlers() {
  for (auto* r : waiting_)
    refuse(r, error{error_kind::shutting_down, "the host has ended"});
  for (auto* each : all_)
    each->unref();
}

void node_handlers::add(function_handler handler) {
  for (const auto& e : entries_)
    if (e->packet_name == handler.packet_name && e->replies == handler.replies)
      throw configuration_error{std::string{surface_ == handler_surface::node ? "two node handlers for " : "two channel handlers for "} + (handler.replies ? "requests" : "sends")
                                + " of packet \"" + handler.packet_name + "\"; register one"};
  entries_.push_back(std::make_unique<function_handler>(std::move(handler)));
}

function_handler* node_handlers::find(payload& body, bool replies) noexcept {
  const auto* encoded = body.get<encoded_value>();
  const auto* packet = encoded == nullptr ? body.packet() : nullptr;
  if (encoded == nullptr && packet == nullptr)
    return nullptr;
  const std::string_view name = encoded != nullptr ? encoded->packet_name() : packet->name;
  function_handler* replying = nullptr; // serves a send if nobody else does
  for (const auto& e : entries_) {
    if (e->packet_name != name)
      continue;
    if (e->replies == replies)
      return e.get();
    if (e->replies)
      replying = e.get();
  }
  return replying;
}

handler_run* node_handlers::run(function_handler& handler, execution_object& object, record* r) {
  if (filters_->empty())
    return handler.invoke(object, r);
  std::vector<std::unique_ptr<message_filter>> made;
  for (auto& make : *filters_)
    made.push_back(make());
  const bool request = r->kind == record_kind::request;
  const auto kind = surface_ == handler_surface::node
                      ? (request ? dispatch_kind::node_request : dispatch_kind::node_send)
                      : (request ? dispatch_kind::channel_request : dispatch_kind::channel_send);
  return start_run<payload>(r, [&](handler_run& run) {
    return filter_chain::run(std::make_unique<filter_chain>(std::move(made), handler, object, *r, run.context(), kind));
  });
}

void node_handlers::accept(record* r) {
  runner* woken = nullptr;
  {
    std::lock_guard guard{mutex_};
    waiting_.push_back(r);
    woken = choose_another();
  }
  if (woken != nullptr)
    woken->wake();
}

node_handlers::runner* node_handlers::choose_another() {
  if (waiting_.empty() || running_ >= domain_.workers)
    return nullptr;
  ++running_;
  if (resting_.empty())
    return all_.emplace_back(new runner{*this});
  auto* chosen = resting_.back();
  resting_.pop_back();
  return chosen;
}

record* node_handlers::next_for(runner& ready) {
  const bool quiet = ready.quiet();
  record* next = nullptr;
  runner* woken = nullptr;
  {
    std::lock_guard guard{mutex_};
    if (quiet && !waiting_.empty()) {
      next = waiting_.front();
      waiting_.pop_front();
    } else {
      --running_;
      if (quiet)
        resting_.push_back(&ready);
      else // what its handlers began and left behind ends in this runner's turns: no other message gets in between
        ready.watch_quiet(true);
    }
    woken = choose_another();
  }
  if (woken != nullptr)
    woken->wake();
  return next;
}

void node_handlers::suspended() {
  runner* woken = nullptr;
  {
    std::lock_guard guard{mutex_};
    --running_;
    woken = choose_another();
  }
  if (woken != nullptr)
    woken->wake();
}

void node_handlers::resumed() {
  std::lock_guard guard{mutex_};
  ++running_; // maybe more than there are workers, until one of them rests
}

void node_handlers::rest(runner& idle) {
  std::lock_guard guard{mutex_};
  resting_.push_back(&idle);
}

bool node_handlers::busy() const {
  std::lock_guard guard{mutex_};
  return !waiting_.empty() || resting_.size() != all_.size();
}

void node_handlers::cut_short(const error& why) {
  std::deque<record*> refused;
  std::vector<runner*> told;
  {
    std::lock_guard guard{mutex_};
    refused.swap(waiting_);
    told = all_;
  }
  for (auto* r : refused)
    refuse(r, why);
  for (auto* each : told)
    each->home().post([each = counted_ptr<runner>::share(each), why] { each->home().fail_operations(*each, why); });
}

} // namespace zlink::detail
