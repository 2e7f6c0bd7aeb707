#include "zlink/messaging/node_handlers.hpp"

namespace zlink::detail {

/// One dispatch: an object with a gate of its own that serves one record and goes.
class node_handlers::dispatch_object final : public execution_object {
public:
  dispatch_object(node_handlers& table, std::string mesh_name)
    : execution_object(table.domain_, new_counted<gate>(table.domain_), 0), table_(table),
      mesh_name_(std::move(mesh_name)) {
    watch_quiet(true);
  }
  std::string_view mesh_name() const noexcept override { return mesh_name_; }
  bool needs_lease() const noexcept override { return false; }
  std::optional<error_kind> yield_refused() const noexcept override { return error_kind::invalid_operation; }

  dispatched dispatch(record* r) override {
    table_.begun();
    auto* handler = table_.find(r->body, r->kind == record_kind::request);
    if (handler != nullptr)
      return {handler->invoke(*this, r)};
    domain().counters.drop(drop_reason::no_handler);
    const bool request = r->kind == record_kind::request;
    r->body.reset();
    if (request)
      r->body.emplace<error>(error_kind::not_found, "the node has no handler for this packet");
    return {};
  }
  void on_quiet() noexcept override {
    if (!std::exchange(over_, true))
      unref(); // the table's; the gate still holds one
  }

private:
  node_handlers& table_;
  std::string mesh_name_;
  bool over_ = false;
};

node_handlers::~node_handlers() {
  for (auto& [r, mesh] : waiting_)
    refuse(r, error{error_kind::shutting_down, "the host has ended"});
}

void node_handlers::add(function_handler handler) {
  for (const auto& e : entries_)
    if (e->packet_name == handler.packet_name && e->replies == handler.replies)
      throw configuration_error{std::string{"two node handlers for "} + (handler.replies ? "requests" : "sends")
                                + " of packet \"" + handler.packet_name + "\"; register one"};
  entries_.push_back(std::make_unique<function_handler>(std::move(handler)));
}

function_handler* node_handlers::find(payload& body, bool replies) noexcept {
  const auto* packet = body.packet();
  auto* encoded = body.get<encoded_value>();
  function_handler* replying = nullptr; // serves a send if nobody else does
  for (const auto& e : entries_) {
    if (packet != nullptr ? e->packet_name != packet->name
                          : encoded == nullptr || e->packet_name != encoded->packet_name)
      continue;
    if (e->replies == replies)
      return e.get();
    if (e->replies)
      replying = e.get();
  }
  return replying;
}

void node_handlers::accept(record* r, std::string_view mesh_name) {
  {
    std::lock_guard guard{mutex_};
    waiting_.emplace_back(r, std::string{mesh_name});
    if (std::exchange(starting_, true))
      return;
  }
  begun();
}

void node_handlers::begun() {
  std::pair<record*, std::string> next;
  {
    std::lock_guard guard{mutex_};
    if (waiting_.empty()) {
      starting_ = false;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  auto* object = new dispatch_object{*this, std::move(next.second)};
  object->submit_unchecked(next.first, true);
}

} // namespace zlink::detail
