#include "relocation/temporary_queue.hpp"

#include "relocation/checksum.hpp"
#include "zlink/messaging/submission.hpp"

namespace zlink::detail {

class temporary_queue::part_detour final : public detour {
public:
  part_detour(counted_ptr<temporary_queue> owner, std::uint32_t part) : owner_(std::move(owner)), part_(part) {}
  answer take(record* r, const passage& how) noexcept override { return owner_->take(part_, r, how); }
  void forward(submission) override {} // it sends nothing on

private:
  counted_ptr<temporary_queue> owner_;
  std::uint32_t part_;
};

namespace {

/// It never ran. It belongs to a batch, which the source has until all is settled: whoever waits is served, or told, by it
/// (L-161, L-163).
void drop(staged_record& one) noexcept {
  refuse(std::exchange(one.r, nullptr), {error_kind::unavailable, "it was to move to this node, and did not"});
}

} // namespace

temporary_queue::temporary_queue(std::vector<object_generation> parts) {
  for (const auto generation : parts)
    parts_.push_back({generation, false, {}, {}});
}

temporary_queue::~temporary_queue() {
  for (auto& part : parts_)
    for (auto* all : {&part.relayed, &part.rest})
      for (auto& one : *all)
        drop(one);
}

counted_ptr<detour> temporary_queue::part(std::uint32_t index) {
  return counted_ptr<detour>::adopt(new part_detour{counted_ptr<temporary_queue>::share(this), index});
}

detour::answer temporary_queue::take(std::uint32_t part, record* r, const passage& how) noexcept {
  std::lock_guard guard{mutex_};
  auto& to = parts_[part];
  if (to.ended || (how.known && how.known != to.generation))
    return detour::answer::pass; // of another incarnation (L-102)
  r->permit = nullptr; // the caller gives it back (L-112)
  to.rest.push_back({r, {}});
  return detour::answer::taken;
}

bool temporary_queue::relay(std::uint32_t part, std::uint32_t batch, byte_view frame, staged_record& what) {
  std::lock_guard guard{mutex_};
  if (batch > relayed_.batch)
    relayed_ = {batch, 0, 0};
  if (batch == relayed_.batch) { // else from the buffers of a link that was lost
    relayed_.sum = crc32c(relayed_.sum, frame);
    ++relayed_.records;
  }
  if (++came_[batch] <= longest_) {
    what.reply = {};
    free_record(std::exchange(what.r, nullptr));
    return true;
  }
  ++longest_;
  if (parts_[part].ended)
    return false;
  parts_[part].relayed.push_back(std::exchange(what, {}));
  return true;
}

bool temporary_queue::append(std::uint32_t part, staged_record& what) {
  std::lock_guard guard{mutex_};
  if (parts_[part].ended)
    return false;
  parts_[part].rest.push_back(std::exchange(what, {}));
  return true;
}

temporary_queue::relayed temporary_queue::before_cutover() const {
  std::lock_guard guard{mutex_};
  return relayed_;
}

std::vector<staged_record> temporary_queue::take_part(std::uint32_t part) {
  std::lock_guard guard{mutex_};
  return take(parts_[part]);
}

std::vector<staged_record> temporary_queue::end_part(std::uint32_t part) {
  std::lock_guard guard{mutex_};
  parts_[part].ended = true;
  return take(parts_[part]);
}

std::vector<staged_record> temporary_queue::take(waiting& from) {
  auto all = std::exchange(from.relayed, {});
  all.insert(all.end(), std::make_move_iterator(from.rest.begin()), std::make_move_iterator(from.rest.end()));
  from.rest.clear();
  return all;
}

void temporary_queue::discard(mesh_links& links) {
  std::vector<staged_record> batch;
  std::vector<staged_record> rest;
  {
    std::lock_guard guard{mutex_};
    for (auto& part : parts_) {
      part.ended = true;
      batch.insert(batch.end(), part.relayed.begin(), part.relayed.end());
      rest.insert(rest.end(), part.rest.begin(), part.rest.end());
      part.relayed.clear();
      part.rest.clear();
    }
  }
  for (auto& one : batch) // outside of the lock
    drop(one);
  for (auto& one : rest) // nobody else knows of it any more
    refuse(with_route(std::exchange(one, {}), links), {error_kind::unavailable, "it was to move to this node, and did not"});
}

} // namespace zlink::detail
