// What a store author implements: three operations of the Location Store and four of the Relocation Store (S-7, S-120).
// All meaning (rows, leases, capacity) lives above, in zlink/placement. Includes nothing of CAF.
#pragma once

#include "zlink/unique_function.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace zlink {

/// The provider's own clock, microseconds since its epoch. Never compared with a host's clock (S-15).
struct store_time_tag {};
using store_time = std::chrono::time_point<store_time_tag, std::chrono::microseconds>;

/// Bytes of a stored value.
using store_bytes = std::string;

/// Why a provider could not say what happened (S-157). Range violations are not failures: they throw
/// `std::invalid_argument` from the call, before any I/O.
enum class store_failure_class : std::uint8_t {
  not_applied, ///< certainly without effect: refused before it was sent, or cancelled before start
  unclear,     ///< may or may not have happened; only reading again can tell (S-18, S-156)
};

struct store_failure {
  store_failure_class what = store_failure_class::unclear;
  std::string text; ///< for logs; no key, command or value in it (S-17)
  /// The store answered and will refuse us until a setting changes, like a wrong password: an error at start (O-152).
  bool misconfigured = false;
};

/// A provider's answer: a value, or the failure to know it.
template <class T>
class store_outcome {
public:
  store_outcome(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  store_outcome(store_failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}
  explicit operator bool() const noexcept { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const store_failure& failure() const { return std::get<1>(state_); }

private:
  std::variant<T, store_failure> state_;
};

/// Called exactly once, from any thread, possibly before the call has returned; the layer's completions only enqueue.
template <class T>
using store_completion = unique_function<void(store_outcome<T>)>;

// -- Location Store -------------------------------------------------------------------------------------------------

/// One observed value. An expired one is never seen: it reads as missing by the provider's clock (S-8).
struct store_value {
  store_bytes bytes;
  std::string version;                  ///< opaque, 1..4096 bytes, never used twice for one key (S-9, S-12)
  std::optional<store_time> expires_at; ///< absent: stays until deleted
};

struct store_read_result {
  std::optional<store_value> found; ///< absent: Missing
  store_time now{};
};

struct store_condition {
  enum class test : std::uint8_t {
    missing, ///< the key is absent or expired
    version, ///< the current version equals `operand`
    value,   ///< the current bytes equal `operand`, whatever the version (S-13)
  };
  test what = test::missing;
  std::string key;
  std::string operand;
};

struct store_mutation {
  std::string key;
  std::optional<store_bytes> put;                     ///< absent: delete
  std::optional<std::chrono::milliseconds> retention; ///< only with put; > 0
};

/// All conditions are judged first; only if all hold all mutations happen, as one commit (S-10).
struct store_batch {
  std::vector<store_condition> conditions;
  std::vector<store_mutation> mutations;
};

struct store_write_result {
  bool applied = false;              ///< false: Conflict, nothing changed, no hint which condition
  std::vector<std::string> versions; ///< if applied: one per mutation in order, empty string for a delete
  store_time now{};
};

struct store_scan_item {
  std::string key;
  store_value value;
};

struct store_scan_result {
  bool expired = false; ///< the snapshot is gone or the cursor foreign: start over (S-14)
  std::vector<store_scan_item> items;
  std::string next; ///< cursor of the next page; empty: that was the last
  store_time now{};
};

/// Bounds every provider checks before any I/O, throwing `std::invalid_argument` (S-9, S-11, S-14).
struct store_bounds {
  static constexpr std::size_t key_bytes = 1024;
  static constexpr std::size_t value_bytes = 1024 * 1024;
  static constexpr std::size_t version_bytes = 4096;
  static constexpr std::size_t cursor_bytes = 4096;
  static constexpr std::size_t prefix_bytes = 1024;
  static constexpr std::size_t batch_keys = 2048;
  static constexpr std::size_t batch_bytes = 4 * 1024 * 1024;
  static constexpr std::size_t page_items = 1000;
  static constexpr std::size_t page_items_default = 100;
  static constexpr std::size_t page_bytes = 4 * 1024 * 1024;
};

/// What counts against `batch_bytes` and `page_bytes`: the bytes of key, operand, value and version.
std::size_t encoded_size(const store_condition& condition) noexcept;
std::size_t encoded_size(const store_mutation& mutation) noexcept;
std::size_t encoded_size(const store_scan_item& item) noexcept;

/// Throw `std::invalid_argument` when out of bounds; for providers to call first.
void check_store_key(const std::string& key);
void check_store_batch(const store_batch& batch);
void check_store_scan(const std::string& prefix, const std::string& cursor, std::size_t limit);

/// The provider interface of the Location Store. Thread-safe. Operations are linearizable.
class location_store {
public:
  virtual ~location_store() = default;
  virtual void read(std::string key, store_completion<store_read_result> done) = 0;
  virtual void write(store_batch batch, store_completion<store_write_result> done) = 0;
  /// `cursor` empty: first page, fixes the snapshot. Items come in key byte order.
  virtual void scan(std::string prefix, std::string cursor, std::size_t limit,
                    store_completion<store_scan_result> done) = 0;
  /// True for a store that only this process can see; then every mesh node must live in this process (S-148).
  virtual bool process_local() const noexcept = 0;
};

// -- Relocation Store -----------------------------------------------------------------------------------------------

enum class blob_put_result : std::uint8_t { stored, already_stored, conflict };

struct blob_value {
  store_bytes bytes;
  store_time expires_at{};
  store_time now{};
};

/// The provider interface of the Relocation Store: immutable payloads under references that the layer issues.
/// Thread-safe.
class relocation_store {
public:
  virtual ~relocation_store() = default;
  /// `already_stored`: same bytes under this reference; `conflict`: other bytes (S-120). `retention` > 0.
  virtual void put(std::string reference, store_bytes bytes, std::chrono::milliseconds retention,
                   store_completion<blob_put_result> done) = 0;
  virtual void read_blob(std::string reference, store_completion<std::optional<blob_value>> done) = 0;
  /// False: there is no such blob.
  virtual void renew(std::string reference, std::chrono::milliseconds retention, store_completion<bool> done) = 0;
  /// Succeeds whether or not there was such a blob.
  virtual void erase(std::string reference, store_completion<std::monostate> done) = 0;
  static constexpr std::size_t chunk_bytes = 64 * 1024 * 1024;       ///< largest application chunk (S-122)
  static constexpr std::size_t blob_bytes = chunk_bytes + 64 * 1024; ///< a chunk with the layer's envelope
  static constexpr std::size_t reference_bytes = 4096;               ///< 1..4096 bytes of UTF-8 (S-121)
};

/// Throw `std::invalid_argument` when out of bounds; for providers to call first.
void check_blob_reference(const std::string& reference);
void check_blob_retention(std::chrono::milliseconds retention);
void check_blob_put(const std::string& reference, const store_bytes& bytes, std::chrono::milliseconds retention);

// -- the embedded provider ------------------------------------------------------------------------------------------

class clock;

/// Both stores in the memory of this process (S-147). Hosts that shall meet share one by `host.use_store(store)`. A
/// copy is another handle to the same data. Thread-safe.
class embedded_store {
public:
  /// Its clock is the system's; tests give another.
  embedded_store();
  explicit embedded_store(std::shared_ptr<const clock> time);
  std::shared_ptr<location_store> location() const noexcept { return location_; }
  std::shared_ptr<relocation_store> relocation() const noexcept { return relocation_; }

private:
  std::shared_ptr<location_store> location_;
  std::shared_ptr<relocation_store> relocation_;
};

} // namespace zlink
