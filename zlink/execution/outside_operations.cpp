#include "zlink/execution/outside_operations.hpp"

#include "zlink/execution/operation_limit.hpp"

namespace zlink::detail {

std::uint64_t outside_operations::add(counted_ptr<operation_base> operation, steady_time due) {
  std::lock_guard guard{mutex_};
  if (due < watched_)
    watch(due);
  return table_.add(std::move(operation), nullptr, due);
}

void outside_operations::watch(steady_time due) {
  watched_ = due;
  domain_.infra->post([this, due] { domain_.infra->schedule(watch_, due); });
}

counted_ptr<operation_base> outside_operations::take(std::uint64_t id) noexcept {
  std::lock_guard guard{mutex_};
  return table_.take(id).operation;
}

void outside_operations::release(operation_base& operation) noexcept {
  if (auto* limit = operation.end_slot())
    limit->leave();
  operation.unwatch();
}

void outside_operations::receive_reply(record* reply) noexcept {
  if (auto operation = take(reply->reply.id)) {
    release(*operation);
    operation->accept(*reply);
  } else {
    domain_.counters.drop(drop_reason::late_reply);
  }
  free_record(reply);
}

void outside_operations::cancel(std::uint64_t id) noexcept {
  if (auto operation = take(id)) {
    if (auto* limit = operation->end_slot())
      limit->leave();
    operation->cancel();
  }
}

void outside_operations::sweep() noexcept {
  std::vector<counted_ptr<operation_base>> late;
  {
    std::lock_guard guard{mutex_};
    const auto now = domain_.time->now();
    for (auto id : table_.select([now](auto*, steady_time due) { return due <= now; }))
      late.push_back(table_.take(id).operation);
    watched_ = steady_time::max();
    const auto next = table_.earliest_due();
    if (next != steady_time::max())
      watch(next);
  }
  for (auto& operation : late) {
    release(*operation);
    operation->fail(operation->timeout_error());
  }
}

void outside_operations::fail_all(const error& why) noexcept {
  std::vector<counted_ptr<operation_base>> all;
  {
    std::lock_guard guard{mutex_};
    for (auto id : table_.select([](auto*, steady_time) { return true; }))
      all.push_back(table_.take(id).operation);
  }
  for (auto& operation : all) {
    release(*operation);
    operation->fail(why);
  }
}

std::size_t outside_operations::size() const noexcept {
  std::lock_guard guard{mutex_};
  return table_.size();
}

} // namespace zlink::detail
