// The asynchronous side of placement: reads, transitions, generation numbers and stored payloads of one host, as tasks of
// its infrastructure unit.
#pragma once

#include "zlink/execution/infrastructure.hpp"
#include "zlink/placement/awaited_answer.hpp"
#include "zlink/placement/generations.hpp"
#include "zlink/placement/record_codec.hpp"
#include "zlink/placement/record_keys.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/task.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace zlink::placement {

class transition_batcher;

/// A task that ends when `begin(done)` has called `done(value)`, on whatever thread; awaited in the unit.
template <class T, class Begin>
task<T> task_of(detail::infrastructure& unit, Begin begin) {
  auto ended = detail::new_counted<detail::operation<T>>();
  ended->dispatcher = unit.unit();
  begin(awaited_answer<T>{ended});
  return task<T>{std::move(ended)};
}

/// What a read gave: the record or its absence, a record that may not be used, or nothing known.
template <class Record>
using read_outcome = std::variant<observed<Record>, record_fault, store_failure>;

/// The seen record, or null.
template <class Record>
const observed<Record>* seen_in(const read_outcome<Record>& outcome) noexcept {
  return std::get_if<observed<Record>>(&outcome);
}

template <class Record>
read_outcome<Record> judge(store_outcome<store_read_result> answer) {
  if (!answer)
    return answer.failure();
  auto seen = observe<Record>(*answer);
  if (auto* fault = std::get_if<record_fault>(&seen))
    return *fault;
  return std::move(std::get<observed<Record>>(seen));
}

enum class payload_fault : std::uint8_t {
  unavailable, ///< the Relocation Store does not tell
  lost,        ///< a part is missing or not what was stored: the whole is `data_lost` (S-124, S-129)
};
using payload_outcome = std::variant<std::string, payload_fault>;

/// Every member is called inside the infrastructure unit.
class repository {
public:
  repository(detail::infrastructure& unit, std::shared_ptr<location_store> location,
             std::shared_ptr<relocation_store> relocation);
  ~repository();
  repository(const repository&) = delete;
  repository& operator=(const repository&) = delete;

  template <class Record>
  task<read_outcome<Record>> read(std::string key) {
    return task_of<read_outcome<Record>>(unit_, [&](auto done) {
      location_->read(std::move(key), [done = std::move(done)](store_outcome<store_read_result> answer) mutable {
        done(judge<Record>(std::move(answer)));
      });
    });
  }
  /// What stands under the address of a Spot or Actor. A row in an aggregate shows owner, node and authority as its
  /// aggregate says, under the row's own version (S-88).
  task<read_outcome<object_record>> read_object(std::string_view address) { return read_effective(address_key(address)); }
  /// The same by key.
  task<read_outcome<object_record>> read_effective(std::string key);
  /// A batch of its own, outside of the batcher (leases, descriptors).
  task<store_outcome<store_write_result>> write(store_batch batch);
  task<store_outcome<store_scan_result>> scan(std::string prefix, std::string cursor, std::size_t limit);
  /// A transition, together with others (D-19).
  task<fragment_result> apply(fragment step);
  /// The same if there is a step; else nothing has happened.
  task<std::optional<fragment_result>> apply_if(decision decided);
  /// Numbers for an incarnation that has no row (an Entry Spot's); nothing: a counter is exhausted or the store does not
  /// answer.
  task<std::optional<new_generations>> issue_generations();

  /// Stores `bytes` under a reference never used before, in chunks if it is long, and reads everything back; `what` gives
  /// reference, size and digest (C-94, S-122, S-123, S-126). False: not for certain, so no row may name it.
  task<bool> store_payload(recovery_root what, std::string bytes, std::chrono::milliseconds retention,
                           steady_time until);
  /// All of it, verified, or nothing of it (S-124).
  task<payload_outcome> read_payload(recovery_root what);
  /// Deletes, without waiting for the outcome: what stays behind expires (S-128).
  void forget_payload(const recovery_root& what);

  bool process_local() const noexcept { return location_->process_local(); }
  const std::shared_ptr<location_store>& location() const noexcept { return location_; }
  detail::infrastructure& unit() const noexcept { return unit_; }

private:
  void on_stall();
  task<bool> store_blob(std::string reference, std::string bytes, std::chrono::milliseconds retention,
                        steady_time until);
  task<store_outcome<std::optional<blob_value>>> read_blob(std::string reference);
  task<payload_outcome> read_part(std::string reference);

  detail::infrastructure& unit_;
  std::shared_ptr<location_store> location_;
  std::shared_ptr<relocation_store> relocation_;
  std::unique_ptr<transition_batcher> batcher_;
  std::shared_ptr<const bool> alive_;
};

} // namespace zlink::placement
