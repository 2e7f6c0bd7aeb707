// Stores that fail on request: decorators around any provider that hold, refuse, spoil or forget operations and keep a log
// of them. Deterministic; one thread only.
#pragma once

#include "zlink/location_store.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zlink::testing {

enum class store_operation : std::uint8_t { read, write, scan, put, read_blob, renew, erase };

/// One call as a rule sees it.
struct store_call {
  store_operation what = store_operation::read;
  std::string key;                    ///< read key, scan prefix, blob reference; of a write the first mutated key
  const store_batch* batch = nullptr; ///< of a write; valid while the rule runs

  /// True if the call names a key that begins so.
  bool touches(std::string_view prefix) const {
    if (!batch)
      return key.starts_with(prefix);
    for (const auto& mutation : batch->mutations)
      if (mutation.key.starts_with(prefix))
        return true;
    for (const auto& condition : batch->conditions)
      if (condition.key.starts_with(prefix))
        return true;
    return false;
  }
};

enum class store_fault : std::uint8_t {
  none,
  hold_call,  ///< nothing happens before `release`
  hold_reply, ///< it happens now, the answer comes with `release`
  conflict,   ///< Conflict of a write or put, Expired of a scan; nothing happens
  refuse,     ///< fails as certainly not applied; nothing happens
  vanish,     ///< fails as unclear; nothing happens
  lose_reply, ///< fails as unclear; it happens
  late,       ///< fails as unclear; it happens with `release`
};

/// What shall go wrong, and what was asked. Shared by the decorators of both stores.
class store_faults {
public:
  using rule = unique_function<store_fault(const store_call&)>;

  /// Asked about every call for which no `once` waits. An empty rule lets everything pass.
  void set_rule(rule decide) { rule_ = std::move(decide); }
  /// The next call of this kind that touches this prefix. Several wait in order.
  void once(store_operation what, std::string prefix, store_fault fault) {
    script_.push_back({what, std::move(prefix), fault});
  }
  /// No `once` waits for its call any more.
  void clear_script() noexcept { script_.clear(); }
  /// True if every `once` has met its call.
  bool script_done() const noexcept { return script_.empty(); }

  std::size_t held() const noexcept { return held_.size(); }
  /// Lets the call or answer go on that is held longest.
  void release() {
    auto go_on = std::move(held_.at(0));
    held_.pop_front();
    go_on();
  }
  /// Lets everything go on that is held now.
  void release_all() {
    for (auto n = held_.size(); n > 0; --n)
      release();
  }

  std::size_t count(store_operation what) const noexcept { return counts_[static_cast<std::size_t>(what)]; }
  struct logged_call {
    store_operation what;
    std::string key;
  };
  const std::vector<logged_call>& log() const noexcept { return log_; }
  void clear_log() {
    log_.clear();
    counts_ = {};
  }

private:
  friend class faulty_location_store;
  friend class faulty_relocation_store;
  struct scripted {
    store_operation what;
    std::string prefix;
    store_fault fault;
  };

  store_fault decide(const store_call& call) {
    ++counts_[static_cast<std::size_t>(call.what)];
    log_.push_back({call.what, call.key});
    for (auto i = script_.begin(); i != script_.end(); ++i)
      if (i->what == call.what && call.touches(i->prefix)) {
        const auto fault = i->fault;
        script_.erase(i);
        return fault;
      }
    return rule_ ? rule_(call) : store_fault::none;
  }

  /// `run(done)` starts the operation on the real store; `spoil(done)` answers Conflict.
  template <class T, class Run, class Spoil>
  void pass(const store_call& call, Run run, Spoil spoil, store_completion<T> done);

  rule rule_;
  std::deque<scripted> script_;
  std::deque<unique_function<void()>> held_;
  std::vector<logged_call> log_;
  std::array<std::size_t, 7> counts_{};
};

class faulty_location_store final : public location_store {
public:
  faulty_location_store(std::shared_ptr<location_store> real, std::shared_ptr<store_faults> faults)
    : real_(std::move(real)), faults_(std::move(faults)) {}

  void read(std::string key, store_completion<store_read_result> done) override;
  void write(store_batch batch, store_completion<store_write_result> done) override;
  void scan(std::string prefix, std::string cursor, std::size_t limit,
            store_completion<store_scan_result> done) override;
  bool process_local() const noexcept override { return real_->process_local(); }

private:
  std::shared_ptr<location_store> real_;
  std::shared_ptr<store_faults> faults_;
};

class faulty_relocation_store final : public relocation_store {
public:
  faulty_relocation_store(std::shared_ptr<relocation_store> real, std::shared_ptr<store_faults> faults)
    : real_(std::move(real)), faults_(std::move(faults)) {}

  void put(std::string reference, store_bytes bytes, std::chrono::milliseconds retention,
           store_completion<blob_put_result> done) override;
  void read_blob(std::string reference, store_completion<std::optional<blob_value>> done) override;
  void renew(std::string reference, std::chrono::milliseconds retention, store_completion<bool> done) override;
  void erase(std::string reference, store_completion<std::monostate> done) override;

private:
  std::shared_ptr<relocation_store> real_;
  std::shared_ptr<store_faults> faults_;
};

} // namespace zlink::testing
