#include "zlink/execution/record.hpp"

#include "zlink/execution/job_permits.hpp"
#include "zlink/execution/place_pool.hpp"

#include <cassert>

namespace zlink::detail {

namespace {

using record_pool = place_pool<sizeof(record), alignof(record)>;

} // namespace

record* make_record(record_kind kind) {
  auto* r = ::new (record_pool::take()) record;
  r->kind = kind;
  return r;
}

void give_back_permit(record& r) noexcept {
  if (auto* permits = std::exchange(r.permit, nullptr))
    permits->release();
}

void free_record(record* r) noexcept {
  give_back_permit(*r);
  assert(r->reply.receiver == nullptr && "a request must be answered before it is freed");
  r->~record();
  record_pool::give(r);
}

std::int64_t live_records() noexcept { return record_pool::in_use(); }

void send_reply(record* r) noexcept {
  auto* receiver = std::exchange(r->reply.receiver, nullptr);
  if (receiver == nullptr) {
    free_record(r);
    return;
  }
  give_back_permit(*r);
  r->kind = record_kind::completion;
  r->target = nullptr;
  receiver->receive_reply(r);
  receiver->unref_receiver();
}

void refuse(record* r, error what) noexcept {
  r->body.reset();
  r->body.emplace<error>(std::move(what));
  send_reply(r);
}

} // namespace zlink::detail
