// What the provider conformance suite (*_conformance.cpp) needs from a provider. A test program runs the suite on every
// provider of which it links a `provider_registration`.
#pragma once

#include "zlink/location_store.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zlink::test {

/// A fresh, empty pair of stores with what a test may do to them.
struct store_under_test {
  std::shared_ptr<location_store> location;
  std::shared_ptr<relocation_store> relocation;
  /// Lets the provider's clock go on by at least this much.
  std::function<void(std::chrono::milliseconds)> advance;
  /// Moves the wall clock of this host, which the provider must not look at.
  std::function<void(std::chrono::seconds)> shift_host_wall_clock;
  /// Makes the provider lose every scan snapshot it keeps.
  std::function<void()> lose_snapshots;
};

struct provider {
  std::string name;
  std::function<store_under_test()> make;
};

inline std::vector<provider>& registered_providers() {
  static std::vector<provider> all;
  return all;
}

struct provider_registration {
  provider_registration(std::string name, std::function<store_under_test()> make) {
    registered_providers().push_back({std::move(name), std::move(make)});
  }
};

/// Runs `test` once on each provider, on new stores.
template <class Test>
void for_each_provider(Test test) {
  REQUIRE(!registered_providers().empty());
  for (const auto& one : registered_providers()) {
    INFO("provider " << one.name);
    auto stores = one.make();
    test(stores);
  }
}

// -- one operation, waited for --------------------------------------------------------------------------------------

template <class T, class Start>
store_outcome<T> outcome_of(Start start) {
  auto promise = std::make_shared<std::promise<store_outcome<T>>>();
  auto future = promise->get_future();
  start([promise](store_outcome<T> outcome) { promise->set_value(std::move(outcome)); });
  if (future.wait_for(std::chrono::seconds{30}) != std::future_status::ready)
    throw std::runtime_error{"the store did not answer"};
  return future.get();
}

/// The value; a failure fails the test.
template <class T>
T value_of(store_outcome<T> outcome) {
  if (!outcome)
    throw std::runtime_error{"store failure: " + outcome.failure().text};
  return std::move(*outcome);
}

inline store_read_result read(location_store& store, std::string key) {
  return value_of(outcome_of<store_read_result>([&](auto done) { store.read(std::move(key), std::move(done)); }));
}

inline store_write_result write(location_store& store, store_batch batch) {
  return value_of(outcome_of<store_write_result>([&](auto done) { store.write(std::move(batch), std::move(done)); }));
}

inline store_scan_result scan(location_store& store, std::string prefix, std::string cursor, std::size_t limit) {
  return value_of(outcome_of<store_scan_result>(
    [&](auto done) { store.scan(std::move(prefix), std::move(cursor), limit, std::move(done)); }));
}

inline blob_put_result put(relocation_store& store, std::string reference, store_bytes bytes,
                           std::chrono::milliseconds retention) {
  return value_of(outcome_of<blob_put_result>(
    [&](auto done) { store.put(std::move(reference), std::move(bytes), retention, std::move(done)); }));
}

inline std::optional<blob_value> read_blob(relocation_store& store, std::string reference) {
  return value_of(
    outcome_of<std::optional<blob_value>>([&](auto done) { store.read_blob(std::move(reference), std::move(done)); }));
}

inline bool renew(relocation_store& store, std::string reference, std::chrono::milliseconds retention) {
  return value_of(outcome_of<bool>([&](auto done) { store.renew(std::move(reference), retention, std::move(done)); }));
}

inline void erase(relocation_store& store, std::string reference) {
  value_of(outcome_of<std::monostate>([&](auto done) { store.erase(std::move(reference), std::move(done)); }));
}

// -- parts of batches -----------------------------------------------------------------------------------------------

inline store_condition is_missing(std::string key) { return {store_condition::test::missing, std::move(key), {}}; }

inline store_condition has_version(std::string key, std::string version) {
  return {store_condition::test::version, std::move(key), std::move(version)};
}

inline store_condition has_value(std::string key, std::string bytes) {
  return {store_condition::test::value, std::move(key), std::move(bytes)};
}

inline store_mutation puts(std::string key, std::string bytes) {
  return {std::move(key), std::move(bytes), std::nullopt};
}

inline store_mutation puts(std::string key, std::string bytes, std::chrono::milliseconds retention) {
  return {std::move(key), std::move(bytes), retention};
}

inline store_mutation deletes(std::string key) { return {std::move(key), std::nullopt, std::nullopt}; }

/// Puts one value without condition; returns its version.
inline std::string put_one(location_store& store, std::string key, std::string bytes) {
  store_batch batch;
  batch.mutations.push_back(puts(std::move(key), std::move(bytes)));
  return write(store, std::move(batch)).versions.at(0);
}

/// Scans that push out every earlier snapshot of a store that keeps so many.
inline void crowd_out_snapshots(location_store& store, std::size_t kept) {
  for (const char* key : {"~1", "~2"})
    put_one(store, key, "v");
  for (std::size_t i = 0; i < kept; ++i)
    scan(store, "~", "", 1);
  write(store, {{}, {deletes("~1"), deletes("~2")}});
}

} // namespace zlink::test
