#include "zlink/testing/store_faults.hpp"

#include <stdexcept>

namespace zlink::testing {

namespace {

template <class T>
void no_conflict(store_completion<T>) {
  throw std::logic_error{"a test asked for a Conflict of an operation that has none"};
}

std::string first_key(const store_batch& batch) {
  if (!batch.mutations.empty())
    return batch.mutations.front().key;
  return batch.conditions.empty() ? std::string{} : batch.conditions.front().key;
}

} // namespace

template <class T, class Run, class Spoil>
void store_faults::pass(const store_call& call, Run run, Spoil spoil, store_completion<T> done) {
  switch (decide(call)) {
    case store_fault::none: return run(std::move(done));
    case store_fault::conflict: return spoil(std::move(done));
    case store_fault::refuse: return done(store_failure{store_failure_class::not_applied, "refused by a test"});
    case store_fault::vanish: return done(store_failure{store_failure_class::unclear, "lost by a test"});
    case store_fault::hold_call:
      held_.push_back([run = std::move(run), done = std::move(done)]() mutable { run(std::move(done)); });
      return;
    case store_fault::hold_reply:
      run([this, done = std::move(done)](store_outcome<T> outcome) mutable {
        held_.push_back([done = std::move(done), outcome = std::move(outcome)]() mutable { done(std::move(outcome)); });
      });
      return;
    case store_fault::lose_reply:
      run([done = std::move(done)](store_outcome<T>) mutable {
        done(store_failure{store_failure_class::unclear, "answer lost by a test"});
      });
      return;
    case store_fault::late:
      held_.push_back([run = std::move(run)]() mutable { run([](store_outcome<T>) {}); });
      return done(store_failure{store_failure_class::unclear, "delayed by a test"});
  }
}

void faulty_location_store::read(std::string key, store_completion<store_read_result> done) {
  check_store_key(key);
  const store_call call{store_operation::read, key, nullptr};
  faults_->pass<store_read_result>(
    call, [real = real_, key](auto then) { real->read(key, std::move(then)); },
    [](auto then) { no_conflict(std::move(then)); }, std::move(done));
}

void faulty_location_store::write(store_batch batch, store_completion<store_write_result> done) {
  check_store_batch(batch);
  const auto shared = std::make_shared<store_batch>(std::move(batch));
  const store_call call{store_operation::write, first_key(*shared), shared.get()};
  faults_->pass<store_write_result>(
    call, [real = real_, shared](auto then) { real->write(std::move(*shared), std::move(then)); },
    [real = real_](store_completion<store_write_result> then) {
      real->read("now", [then = std::move(then)](store_outcome<store_read_result> seen) mutable {
        store_write_result conflict;
        if (seen)
          conflict.now = seen->now;
        then(std::move(conflict));
      });
    },
    std::move(done));
}

void faulty_location_store::scan(std::string prefix, std::string cursor, std::size_t limit,
                                 store_completion<store_scan_result> done) {
  check_store_scan(prefix, cursor, limit);
  const store_call call{store_operation::scan, prefix, nullptr};
  faults_->pass<store_scan_result>(
    call, [real = real_, prefix, cursor, limit](auto then) { real->scan(prefix, cursor, limit, std::move(then)); },
    [](store_completion<store_scan_result> then) {
      store_scan_result expired;
      expired.expired = true;
      then(std::move(expired));
    },
    std::move(done));
}

void faulty_relocation_store::put(std::string reference, store_bytes bytes, std::chrono::milliseconds retention,
                                  store_completion<blob_put_result> done) {
  check_blob_put(reference, bytes, retention);
  const store_call call{store_operation::put, reference, nullptr};
  const auto shared = std::make_shared<store_bytes>(std::move(bytes));
  faults_->pass<blob_put_result>(
    call,
    [real = real_, reference, shared, retention](auto then) {
      real->put(reference, std::move(*shared), retention, std::move(then));
    },
    [](store_completion<blob_put_result> then) { then(blob_put_result::conflict); }, std::move(done));
}

void faulty_relocation_store::read_blob(std::string reference, store_completion<std::optional<blob_value>> done) {
  check_blob_reference(reference);
  const store_call call{store_operation::read_blob, reference, nullptr};
  faults_->pass<std::optional<blob_value>>(
    call, [real = real_, reference](auto then) { real->read_blob(reference, std::move(then)); },
    [](auto then) { no_conflict(std::move(then)); }, std::move(done));
}

void faulty_relocation_store::renew(std::string reference, std::chrono::milliseconds retention,
                                    store_completion<bool> done) {
  check_blob_reference(reference);
  check_blob_retention(retention);
  const store_call call{store_operation::renew, reference, nullptr};
  faults_->pass<bool>(
    call, [real = real_, reference, retention](auto then) { real->renew(reference, retention, std::move(then)); },
    [](auto then) { no_conflict(std::move(then)); }, std::move(done));
}

void faulty_relocation_store::erase(std::string reference, store_completion<std::monostate> done) {
  check_blob_reference(reference);
  const store_call call{store_operation::erase, reference, nullptr};
  faults_->pass<std::monostate>(
    call, [real = real_, reference](auto then) { real->erase(reference, std::move(then)); },
    [](auto then) { no_conflict(std::move(then)); }, std::move(done));
}

} // namespace zlink::testing
