// Many operations at once on a Redis store, and how they ended.
#pragma once

#include "tests/core/store/store_under_test.hpp"

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace zlink::test {

/// How writes ended, by key. Thread-safe.
class write_log {
public:
  enum class end { applied, conflict, not_applied, unclear };

  /// Starts a write that puts `key` where it is missing.
  void put_new(location_store& store, const std::string& key) {
    start(store, key, {{is_missing(key)}, {puts(key, "v")}});
  }
  void start(location_store& store, const std::string& name, store_batch batch) {
    {
      const std::lock_guard guard{mutex_};
      ++open_;
    }
    store.write(std::move(batch), [this, name](store_outcome<store_write_result> outcome) {
      note(name, outcome ? outcome->applied ? end::applied : end::conflict
                 : outcome.failure().what == store_failure_class::unclear ? end::unclear
                                                                          : end::not_applied);
    });
  }
  /// Waits until at most `open` have not ended.
  void await(std::size_t open = 0) {
    std::unique_lock guard{mutex_};
    if (!changed_.wait_for(guard, std::chrono::seconds{30}, [&] { return open_ <= open; }))
      throw std::runtime_error{std::to_string(open_) + " writes have not ended"};
  }
  std::size_t count(end how) {
    const std::lock_guard guard{mutex_};
    std::size_t n = 0;
    for (const auto& [name, one] : ends_)
      n += one == how;
    return n;
  }
  std::map<std::string, end> ends() {
    const std::lock_guard guard{mutex_};
    return ends_;
  }
  /// Completions for one name: more than one is a mistake.
  std::size_t doubled() {
    const std::lock_guard guard{mutex_};
    return doubled_;
  }

private:
  void note(const std::string& name, end how) {
    const std::lock_guard guard{mutex_};
    doubled_ += !ends_.emplace(name, how).second;
    --open_;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, end> ends_;
  std::size_t open_ = 0;
  std::size_t doubled_ = 0;
};

inline store_outcome<store_read_result> try_read(location_store& store, std::string key) {
  return outcome_of<store_read_result>([&](auto done) { store.read(std::move(key), std::move(done)); });
}

inline store_outcome<store_write_result> try_put(location_store& store, std::string key, std::string bytes) {
  return outcome_of<store_write_result>([&](auto done) {
    store.write({{}, {puts(std::move(key), std::move(bytes))}}, std::move(done));
  });
}

} // namespace zlink::test
