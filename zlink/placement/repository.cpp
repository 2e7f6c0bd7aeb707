#include "zlink/placement/repository.hpp"

#include "zlink/placement/digest.hpp"
#include "zlink/placement/pause.hpp"
#include "zlink/placement/payload_root.hpp"
#include "zlink/placement/transition_batcher.hpp"

namespace zlink::placement {

namespace {

/// The batcher wants its answers in the unit, never from inside the call.
class posting_store final : public location_store {
public:
  posting_store(detail::infrastructure& unit, std::shared_ptr<location_store> store)
    : unit_(unit), store_(std::move(store)) {}

  void read(std::string key, store_completion<store_read_result> done) override {
    store_->read(std::move(key), posted<store_read_result>(std::move(done)));
  }
  void write(store_batch batch, store_completion<store_write_result> done) override {
    store_->write(std::move(batch), posted<store_write_result>(std::move(done)));
  }
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            store_completion<store_scan_result> done) override {
    store_->scan(std::move(prefix), std::move(cursor), limit, posted<store_scan_result>(std::move(done)));
  }
  bool process_local() const noexcept override { return store_->process_local(); }

private:
  template <class T>
  store_completion<T> posted(store_completion<T> done) {
    return [unit = unit_.unit(), done = std::move(done)](store_outcome<T> answer) mutable {
      unit->post([done = std::move(done), answer = std::move(answer)]() mutable { done(std::move(answer)); });
    };
  }

  detail::infrastructure& unit_;
  std::shared_ptr<location_store> store_;
};

constexpr std::chrono::milliseconds stall_pause{200};

} // namespace

repository::repository(detail::infrastructure& unit, std::shared_ptr<location_store> location,
                       std::shared_ptr<relocation_store> relocation)
  : unit_(unit), location_(std::move(location)), relocation_(std::move(relocation)),
    batcher_(std::make_unique<transition_batcher>(std::make_shared<posting_store>(unit, location_),
                                                  [this] { on_stall(); })),
    alive_(std::make_shared<const bool>(true)) {}

repository::~repository() = default;

void repository::on_stall() {
  unit_.post_after(stall_pause, [this, alive = std::weak_ptr<const bool>{alive_}] {
    if (alive.lock())
      batcher_->resume();
  });
}

task<store_outcome<store_write_result>> repository::write(store_batch batch) {
  return task_of<store_outcome<store_write_result>>(
    unit_, [&](auto done) { location_->write(std::move(batch), std::move(done)); });
}

task<store_outcome<store_scan_result>> repository::scan(std::string prefix, std::string cursor, std::size_t limit) {
  return task_of<store_outcome<store_scan_result>>(
    unit_, [&](auto done) { location_->scan(std::move(prefix), std::move(cursor), limit, std::move(done)); });
}

task<fragment_result> repository::apply(fragment step) {
  return task_of<fragment_result>(unit_, [&](auto done) {
    batcher_->add(std::move(step), std::move(done));
    batcher_->flush();
  });
}

task<std::optional<fragment_result>> repository::apply_if(decision decided) {
  auto* step = std::get_if<fragment>(&decided);
  if (step == nullptr)
    co_return std::nullopt;
  auto applying = apply(std::move(*step));
  co_return co_await std::move(applying);
}

task<std::optional<new_generations>> repository::issue_generations() {
  constexpr int attempts = 64; // Conflicts with other hosts, answers that got lost
  for (int i = 0; i < attempts; ++i) {
    auto reading_objects = read<counter_record>(counter_key(sequence::object));
    const auto objects = co_await std::move(reading_objects);
    auto reading_authorities = read<counter_record>(counter_key(sequence::authority));
    const auto authorities = co_await std::move(reading_authorities);
    if (seen_in(objects) == nullptr || seen_in(authorities) == nullptr)
      co_return std::nullopt;
    auto object = advance_counter(sequence::object, *seen_in(objects), 1, process_local());
    auto authority = advance_counter(sequence::authority, *seen_in(authorities), 1, process_local());
    if (!object || !authority)
      co_return std::nullopt;
    const new_generations numbers{detail::object_generation{object->first}, detail::authority_generation{authority->first}};
    store_batch batch;
    for (auto* step : {&*object, &*authority}) {
      batch.conditions.push_back(std::move(step->condition));
      batch.mutations.push_back(std::move(step->mutation));
    }
    auto writing = write(std::move(batch));
    const auto written = co_await std::move(writing);
    if (written && written->applied)
      co_return numbers;
    auto pausing = pause(unit_, std::chrono::milliseconds{1}); // if the answer got lost, nobody has the numbers
    co_await std::move(pausing);
  }
  co_return std::nullopt;
}

// -- payloads ------------------------------------------------------------------------------------------------------------

namespace {

constexpr int invisible_limit = 4;                        // reads of a blob that is said to be missing (S-129)
constexpr std::chrono::milliseconds payload_pause{20};

} // namespace

/// Until it is known to be there with these bytes and most of its retention, or known not to be (S-126, S-127).
task<bool> repository::store_blob(std::string reference, std::string bytes, std::chrono::milliseconds retention,
                                  steady_time until) {
  for (;;) {
    auto putting = task_of<store_outcome<blob_put_result>>(
      unit_, [&](auto done) { relocation_->put(reference, bytes, retention, std::move(done)); });
    const auto put = co_await std::move(putting);
    if (put && *put == blob_put_result::conflict)
      co_return false;
    if (put) {
      auto reading = read_blob(reference);
      const auto seen = co_await std::move(reading);
      if (seen)
        co_return seen->has_value() && (**seen).bytes == bytes && (**seen).expires_at - (**seen).now >= retention / 2;
    } else if (put.failure().what == store_failure_class::not_applied) {
      co_return false;
    }
    if (unit_.time().now() >= until)
      co_return false;
    auto pausing = pause(unit_, payload_pause); // an answer got lost: the same bytes under the same reference again
    co_await std::move(pausing);
  }
}

task<store_outcome<std::optional<blob_value>>> repository::read_blob(std::string reference) {
  return task_of<store_outcome<std::optional<blob_value>>>(
    unit_, [&](auto done) { relocation_->read_blob(std::move(reference), std::move(done)); });
}

task<bool> repository::store_payload(recovery_root what, std::string bytes, std::chrono::milliseconds retention,
                                     steady_time until) {
  payload_root root;
  root.size = what.size;
  root.digest = what.digest;
  if (bytes.size() <= relocation_store::chunk_bytes) {
    root.whole = std::move(bytes);
  } else {
    root.chunks = cut_payload(what.reference, bytes);
    for (const auto& chunk : root.chunks) {
      auto storing = store_blob(chunk.reference, bytes.substr(chunk.offset, chunk.size), retention, until);
      if (!co_await std::move(storing))
        co_return false; // without a root nobody finds the chunks; they expire
    }
  }
  auto storing = store_blob(what.reference, encode(root), retention, until);
  co_return co_await std::move(storing);
}

task<payload_outcome> repository::read_part(std::string reference) {
  for (int i = 0;; ++i) {
    auto reading = read_blob(reference);
    const auto seen = co_await std::move(reading);
    if (seen && seen->has_value())
      co_return (**seen).bytes;
    if (i + 1 == invisible_limit)
      co_return seen ? payload_fault::lost : payload_fault::unavailable;
    auto pausing = pause(unit_, payload_pause);
    co_await std::move(pausing);
  }
}

task<payload_outcome> repository::read_payload(recovery_root what) {
  auto reading = read_part(what.reference);
  auto stored = co_await std::move(reading);
  if (std::holds_alternative<payload_fault>(stored))
    co_return stored;
  auto root = decode_payload_root(std::get<std::string>(stored));
  if (!root || root->size != what.size || root->digest != what.digest)
    co_return payload_fault::lost;
  auto whole = std::move(root->whole);
  for (const auto& chunk : root->chunks) {
    auto reading_chunk = read_part(chunk.reference);
    const auto part = co_await std::move(reading_chunk);
    if (const auto* fault = std::get_if<payload_fault>(&part))
      co_return *fault;
    const auto& bytes = std::get<std::string>(part);
    if (bytes.size() != chunk.size || sha256(bytes) != chunk.digest)
      co_return payload_fault::lost;
    whole += bytes;
  }
  if (whole.size() != what.size || sha256(whole) != what.digest)
    co_return payload_fault::lost;
  co_return whole;
}

void repository::forget_payload(const recovery_root& what) {
  const auto erase = [this](std::string reference) {
    relocation_->erase(std::move(reference), [](store_outcome<std::monostate>) {});
  };
  for (const auto& reference : chunk_references(what.reference, what.size))
    erase(reference);
  erase(what.reference);
}

} // namespace zlink::placement
