#include "zlink/placement/repository.hpp"

#include "zlink/placement/pause.hpp"

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
    batcher_(std::make_shared<posting_store>(unit, location_), [this] { on_stall(); }),
    alive_(std::make_shared<const bool>(true)) {}

repository::~repository() = default;

void repository::on_stall() {
  unit_.post_after(stall_pause, [this, alive = std::weak_ptr<const bool>{alive_}] {
    if (alive.lock())
      batcher_.resume();
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
    batcher_.add(std::move(step), std::move(done));
    batcher_.flush();
  });
}

task<bool> repository::fetch_block(sequence which) {
  auto reading = read<counter_record>(counter_key(which));
  auto outcome = co_await std::move(reading);
  const auto* seen = seen_in(outcome);
  if (seen == nullptr)
    co_return false;
  const auto advance
    = advance_counter(which, *seen, generation_block<detail::object_generation>::block_size, process_local());
  if (!advance) {
    which == sequence::object ? objects_.set_exhausted() : authorities_.set_exhausted();
    co_return false;
  }
  store_batch batch;
  batch.conditions.push_back(advance->condition);
  batch.mutations.push_back(advance->mutation);
  auto writing = write(std::move(batch));
  auto written = co_await std::move(writing);
  if (!written)
    co_return false; // applied or not, these numbers are given to nobody
  if (written->applied)
    which == sequence::object ? objects_.add(*advance) : authorities_.add(*advance);
  co_return true; // a Conflict is tried again by the caller
}

task<std::optional<new_generations>> repository::next_generations() {
  constexpr int attempts = 64; // Conflicts with other hosts
  constexpr int patience = 4;  // fetches in a row without an answer
  int unanswered = 0;
  for (int i = 0; i < attempts; ++i) {
    const bool objects_low = objects_.is_low();
    if (!fetching_ && (objects_low || authorities_.is_low())) {
      fetching_ = true;
      auto fetching = fetch_block(objects_low ? sequence::object : sequence::authority);
      const bool answered = co_await std::move(fetching);
      fetching_ = false;
      unanswered = answered ? 0 : unanswered + 1;
      for (auto& waiting : std::exchange(waiting_for_numbers_, {}))
        waiting->set(result<void>{});
      if (!answered && (objects_.left() == 0 || authorities_.left() == 0)) {
        if (unanswered == patience || objects_.exhausted() || authorities_.exhausted())
          co_return std::nullopt;
        auto pausing = pause(unit_, std::chrono::milliseconds{5}); // a lost answer costs a block, not the creation
        co_await std::move(pausing);
        continue;
      }
    }
    if (objects_.left() != 0 && authorities_.left() != 0)
      co_return new_generations{*objects_.take(), *authorities_.take()};
    if (objects_.exhausted() || authorities_.exhausted())
      co_return std::nullopt;
    if (fetching_) {
      auto turn = detail::new_counted<detail::operation<void>>();
      turn->dispatcher = unit_.unit();
      waiting_for_numbers_.push_back(turn);
      co_await task<void>{std::move(turn)};
    }
  }
  co_return std::nullopt;
}

task<bool> repository::store_payload(std::string reference, std::string bytes, std::chrono::milliseconds retention) {
  constexpr int attempts = 5; // of answers that got lost (S-127)
  for (int i = 0; i < attempts; ++i) {
    auto putting = task_of<store_outcome<blob_put_result>>(
      unit_, [&](auto done) { relocation_->put(reference, bytes, retention, std::move(done)); });
    const auto put = co_await std::move(putting);
    if (!put) {
      if (put.failure().what == store_failure_class::not_applied)
        co_return false;
      continue;
    }
    if (*put == blob_put_result::conflict)
      co_return false;
    auto reading = read_payload(reference);
    const auto seen = co_await std::move(reading);
    if (seen)
      co_return seen->has_value() && (**seen).bytes == bytes;
  }
  co_return false;
}

task<store_outcome<std::optional<blob_value>>> repository::read_payload(std::string reference) {
  return task_of<store_outcome<std::optional<blob_value>>>(
    unit_, [&](auto done) { relocation_->read_blob(std::move(reference), std::move(done)); });
}

void repository::forget_payload(std::string reference) {
  relocation_->erase(std::move(reference), [](store_outcome<std::monostate>) {});
}

} // namespace zlink::placement
