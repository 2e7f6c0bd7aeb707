#include "relocation/target_move.hpp"

#include "relocation/checksum.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"

namespace zlink::detail {

namespace {

/// What is claimed and not there yet takes no more memory than this (L-98).
constexpr std::uint64_t most_reserved = 256ULL << 20;

std::vector<object_generation> generations_of(const restore_request& request) {
  std::vector<object_generation> all;
  for (const auto& part : request.parts)
    all.push_back({part.generation});
  return all;
}

} // namespace

target_move::target_move(host_runtime& host, node_runtime& node, const std::string& source, unique_id move, restore_request request)
  : id(move), host_(host), node_(node), source_(source), request_(std::move(request)), arrived_(host.time->now()),
    valid_until_(arrived_ + std::clamp(std::chrono::milliseconds{request_.left_ms}, std::chrono::milliseconds{0}, defaults::longest_timeout)),
    queue_(new_counted<temporary_queue>(generations_of(request_))), wake_(*host.infra), members_(request_.parts.size()),
    record_(std::make_shared<target_record>(host, node, source_, move, request_)) {
  for (const auto& part : request_.parts)
    addresses_.push_back(part.actor ? actor_address(part.id) : part.id);
}

target_move::~target_move() = default;

// -- on the transport's thread ----------------------------------------------------------------------------------------

void target_move::register_queue() {
  for (std::uint32_t i = 0; i < addresses_.size(); ++i) {
    detours_.push_back(queue_->part(i));
    detours_[i]->note_former(host_.objects.divert(addresses_[i], detours_[i]));
    owned_since_.push_back(detours_[i]->owned_since());
  }
}

bool target_move::same(const restore_request& again) const noexcept {
  return again.attempt == request_.attempt && again.sum == request_.sum && again.total_bytes == request_.total_bytes;
}

/// One queue, one instance, and the same answer once more (L-108).
void target_move::repeated() {
  bool ready = false;
  {
    std::lock_guard guard{mutex_};
    ready = ready_sent_;
  }
  if (ready)
    send(control_command::relay_ready, encode(ready_note{request_.attempt}));
}

void target_move::contradicted() {
  {
    std::lock_guard guard{mutex_};
    if (ready_sent_)
      throw decode_error{"a Restore request that contradicts an earlier one of the same move"};
    broken_ = true;
  }
  host_.infra->post([self = shared_from_this()] { self->wake_.wake(); });
}

void target_move::chunk(const chunk_view& part) {
  std::uint64_t size = 0;
  bool complete = false;
  {
    std::lock_guard guard{mutex_};
    if (part.ordinal != next_chunk_) {
      broken_ = broken_ || part.ordinal > next_chunk_; // an earlier one comes again after a repeated request
      complete = broken_;
    } else {
      if (next_chunk_++ == 0)
        payload_.reserve(std::min(request_.total_bytes, most_reserved));
      payload_.insert(payload_.end(), part.content.begin(), part.content.end());
      complete = payload_.size() >= request_.total_bytes || next_chunk_ == request_.chunks;
    }
    size = payload_.size();
  }
  send(control_command::chunks_taken, encode(chunks_taken{request_.attempt, size}));
  if (complete)
    host_.infra->post([self = shared_from_this()] { self->wake_.wake(); });
}

/// Before the cutover it belongs to a batch that counts as a whole; what comes later runs behind it, whenever that is (L-137,
/// L-139).
void target_move::relayed(const relayed_message& what) {
  if (what.part >= addresses_.size())
    throw decode_error{"a relayed message for a part that the unit does not have"};
  auto record = staged(what.frame, host_, host_.time->now());
  const bool taken = what.batch != 0 ? queue_->relay(what.part, what.batch, what.frame, record) : queue_->append(what.part, record);
  if (taken)
    return;
  const auto& part = request_.parts[what.part];
  host_.messages.deliver_followed(with_route(std::move(record), *node_.links), addresses_[what.part], node_, source_,
                                  {{part.generation}, {part.authority}, 1});
}

/// One that is late or comes twice is noted, and that is all (L-140).
void target_move::cutover(const cutover_mark& mark) {
  bool counts = false;
  {
    std::lock_guard guard{mutex_};
    counts = !decided_ && (!cutover_ || mark.batch > cutover_->batch);
    if (counts)
      cutover_ = mark;
  }
  host_.infra->post([self = shared_from_this(), counts] {
    if (counts)
      self->wake_.wake();
    else
      self->host_.trace_move(self->address(), self->request_.parts.front().generation, "late_cutover", self->node_);
  });
}

void target_move::abandoned() {
  {
    std::lock_guard guard{mutex_};
    abandoned_ = true;
  }
  host_.infra->post([self = shared_from_this()] { self->wake_.wake(); });
}

// -- in the unit ------------------------------------------------------------------------------------------------------

void target_move::send(control_command command, const bytes& body) {
  if (const auto link = node_.links->ready_link(source_))
    link->send_control(static_cast<std::uint16_t>(command), encode(control_envelope{id.high, id.low, body}));
}

void target_move::link_changed(const std::string& rid) {
  if (rid == source_)
    wake_.wake();
}

void target_move::give_up() {
  given_up_ = true;
  wake_.wake();
}

task<void> target_move::run() {
  host_.moving.step(move_step::restore_received, address());
  auto assembling = assemble();
  if (!co_await std::move(assembling)) {
    auto removing = remove_staging();
    co_await std::move(removing);
    co_return;
  }
  auto failed = check_payload();
  if (!failed) {
    auto preparing = prepare();
    failed = co_await std::move(preparing);
  }
  if (!failed && !answer_ready())
    failed = refusal{relocate_reason::relocation_failed, {error_kind::data_lost, "two contents came under one identity"}};
  if (failed) {
    auto removing = remove_staging();
    co_await std::move(removing);
    answer_refused(*failed); // nothing is left here, and nothing can commit (S-99)
    co_return;
  }
  auto waiting = wait_for_cutover();
  co_await std::move(waiting);
  take_events(true);
  auto committing = commit();
  if (!co_await std::move(committing)) {
    host_.trace_move(address(), request_.parts.front().generation, "location_update_failed", node_);
    auto removing = remove_staging();
    co_await std::move(removing);
    co_return;
  }
  host_.moving.step(move_step::committed, address());
  merge();
  host_.moving.step(move_step::merged, address());
  auto opening = open();
  co_await std::move(opening);
  host_.moving.step(move_step::opened, address());
  tell_sessions();
  members_.clear();
  content_ = {};
  host_.moving.step(move_step::sessions_told, address());
}

/// False: it is void: the source has given up, its link or its time is over.
task<bool> target_move::assemble() {
  for (;;) {
    {
      std::lock_guard guard{mutex_};
      if (abandoned_)
        co_return false;
      if (broken_ || payload_.size() >= request_.total_bytes || next_chunk_ == request_.chunks) {
        host_.moving.step(move_step::payload_complete, address());
        co_return true;
      }
    }
    if (given_up_ || host_.time->now() >= valid_until_ || !node_.links->ready_link(source_))
      co_return false;
    auto waiting = wake_.until(valid_until_);
    co_await std::move(waiting);
  }
}

target_move::failure target_move::check_payload() {
  std::lock_guard guard{mutex_};
  if (broken_ || payload_.size() != request_.total_bytes || crc32c(0, payload_) != request_.sum)
    return refusal{relocate_reason::relocation_failed, {error_kind::data_lost, "the payload is not what was announced"}};
  try {
    content_ = decode<carried_unit>(payload_);
    require_valid(content_, static_cast<unit_kind>(request_.kind));
  } catch (const decode_error& what) {
    return refusal{relocate_reason::relocation_failed, {error_kind::data_lost, what.what()}};
  }
  bytes{}.swap(payload_);
  if (content_.parts.size() != request_.parts.size())
    return refusal{relocate_reason::relocation_failed, {error_kind::data_lost, "the payload has other parts than announced"}};
  return std::nullopt;
}

/// False: there is something to refuse.
bool target_move::answer_ready() {
  {
    std::lock_guard guard{mutex_};
    if (broken_)
      return false;
    ready_sent_ = true;
  }
  host_.moving.step(move_step::relay_ready_sent, address());
  send(control_command::relay_ready, encode(ready_note{request_.attempt, host_.moving.crowd.crowded()}));
  return true;
}

void target_move::answer_refused(const refusal& why) {
  restore_refused answer;
  answer.attempt = request_.attempt;
  answer.reason = static_cast<std::uint8_t>(why.reason);
  answer.kind = static_cast<std::uint8_t>(why.why.kind());
  answer.text = why.why.message();
  send(control_command::restore_refused, encode(answer));
}

/// With the mark, or without it when the wait is over: the source may be gone (L-139, L-141).
task<void> target_move::wait_for_cutover() {
  const auto until = host_.time->now() + host_.options.relocation_cutover_wait;
  while (host_.time->now() < until && !given_up_) {
    {
      std::lock_guard guard{mutex_};
      if (abandoned_)
        co_return;
      if (cutover_) {
        const auto got = queue_->before_cutover();
        if (got.batch == cutover_->batch || cutover_->records == 0) {
          if (got.records != cutover_->records || got.sum != cutover_->sum)
            host_.trace_move(address(), request_.parts.front().generation, "cutover_mismatch", node_); // L-136
          decided_ = true;
          host_.moving.step(move_step::cutover_received, address());
          co_return;
        }
      }
    }
    auto waiting = wake_.until(until);
    co_await std::move(waiting);
  }
  {
    std::lock_guard guard{mutex_};
    decided_ = true;
  }
  host_.moving.step(move_step::cutover_fallback, address());
  host_.trace_move(address(), request_.parts.front().generation, "cutover_timeout", node_);
}

} // namespace zlink::detail
