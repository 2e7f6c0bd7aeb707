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

using object_answer = unique_function<void(read_outcome<object_record>)>;

void read_row(std::shared_ptr<location_store> store, std::string key, std::string without_aggregate, object_answer done);

/// Who owns that row its aggregate says. A record that is there decides: no row leaves before it is final, so it says what
/// the row had when it was read. One that is gone decides nothing, if the row was not one that had left it (S-88).
void read_aggregate(std::shared_ptr<location_store> store, std::string key, observed_object row, object_answer done) {
  auto* from = store.get();
  const auto id = row_in(row)->aggregate;
  from->read(aggregate_key(id), [store = std::move(store), key = std::move(key), row = std::move(row),
                                 done = std::move(done), id](store_outcome<store_read_result> answer) mutable {
    auto outcome = judge<aggregate_record>(std::move(answer));
    if (const auto* failed = std::get_if<store_failure>(&outcome))
      return done(*failed);
    const auto* by = seen_in(outcome);
    if (by == nullptr || (by->record && by->record->id != id))
      return done(by == nullptr ? std::get<record_fault>(outcome) : record_fault::corrupt);
    if (!by->record) {
      auto version = std::move(row.version);
      return read_row(std::move(store), std::move(key), std::move(version), std::move(done));
    }
    take_effective(std::get<row_record>(*row.record), *by->record);
    done(std::move(row));
  });
}

/// `without_aggregate`: the version of the row whose aggregate was found to have no record.
void read_row(std::shared_ptr<location_store> store, std::string key, std::string without_aggregate, object_answer done) {
  auto* from = store.get();
  auto wanted = key;
  from->read(std::move(wanted), [store = std::move(store), key = std::move(key), done = std::move(done),
                                 without = std::move(without_aggregate)](store_outcome<store_read_result> answer) mutable {
    auto outcome = judge<object_record>(std::move(answer));
    auto* seen = std::get_if<observed_object>(&outcome);
    const auto* row = seen == nullptr ? nullptr : row_in(*seen);
    if (row == nullptr || !row->aggregate || seen->version == without)
      return done(std::move(outcome));
    read_aggregate(std::move(store), std::move(key), std::move(*seen), std::move(done));
  });
}

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

task<read_outcome<object_record>> repository::read_effective(std::string key) {
  return task_of<read_outcome<object_record>>(unit_, [&](auto done) {
    read_row(location_, std::move(key), {}, [done = std::move(done)](read_outcome<object_record> seen) mutable {
      done(std::move(seen));
    });
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
