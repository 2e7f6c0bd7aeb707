#include "zlink/placement/probe.hpp"

#include "zlink/placement/store_calls.hpp"

namespace zlink::placement {

namespace {

constexpr std::chrono::minutes left_behind{1}; // for a key whose deletion does not arrive

store_batch batch_of(store_condition condition, store_mutation mutation) {
  store_batch batch;
  batch.conditions.push_back(std::move(condition));
  batch.mutations.push_back(std::move(mutation));
  return batch;
}

/// The steps, each with what it must show.
class probe {
public:
  probe(detail::infrastructure& unit, std::shared_ptr<location_store> store, random_source& random, steady_time until)
    : calls_(unit, store), store_(std::move(store)), key_(probe_key(random.next_id())), until_(until) {}

  task<probe_result> run() {
    auto putting = write({store_condition::test::missing, key_, {}}, "first");
    const auto put = co_await std::move(putting);
    if (!put)
      co_return unanswered(put.failure());
    if (!put->applied || put->versions.size() != 1 || put->versions.front().empty())
      co_return wrong("a batch whose condition holds was not applied, or gave no version");
    version_ = put->versions.front();
    began_ = put->now;
    auto again = write({store_condition::test::missing, key_, {}}, "second");
    const auto refused = co_await std::move(again);
    if (!refused)
      co_return unanswered(refused.failure());
    if (refused->applied)
      co_return wrong("a batch whose condition is false was applied");
    auto reading = read();
    const auto seen = co_await std::move(reading);
    if (!seen)
      co_return unanswered(seen.failure());
    if (!seen->found || seen->found->bytes != "first" || seen->found->version != version_)
      co_return wrong("a value does not read as it was written");
    if (!seen->found->expires_at || *seen->found->expires_at <= seen->now || seen->now < began_)
      co_return wrong("a retention gave no expiry, or the clock goes backwards");
    auto deleting = write({store_condition::test::version, key_, version_}, std::nullopt);
    const auto deleted = co_await std::move(deleting);
    if (!deleted)
      co_return unanswered(deleted.failure());
    if (!deleted->applied)
      co_return wrong("a batch that names the current version was not applied");
    co_return probe_result{probe_outcome::good, {}};
  }

private:
  static std::string probe_key(const detail::unique_id& id) { return "probe/" + detail::format_uuid_v4(id); }
  static probe_result wrong(const char* what) {
    return {probe_outcome::wrong, std::string{"the Location Store is not usable: "} + what};
  }
  /// A store that refuses us for a wrong setting is not waited for (O-152).
  static probe_result unanswered(const store_failure& why) {
    return why.misconfigured ? wrong(why.text.c_str()) : probe_result{};
  }
  task<store_outcome<store_write_result>> write(store_condition condition, std::optional<std::string> put) {
    store_mutation mutation{key_, std::move(put), std::nullopt};
    if (mutation.put)
      mutation.retention = left_behind;
    return calls_.write(batch_of(std::move(condition), std::move(mutation)), until_);
  }
  task<store_outcome<store_read_result>> read() {
    auto reading = calls_.within<store_outcome<store_read_result>>(
      until_, [this](auto done) { store_->read(key_, std::move(done)); });
    auto answer = co_await std::move(reading);
    if (!answer)
      co_return store_failure{store_failure_class::unclear, "the store did not answer in time"};
    co_return std::move(*answer);
  }

  store_calls calls_;
  std::shared_ptr<location_store> store_;
  const std::string key_;
  const steady_time until_;
  std::string version_;
  store_time began_{};
};

} // namespace

task<probe_result> probe_store(detail::infrastructure& unit, std::shared_ptr<location_store> store,
                               random_source& random, steady_time until) {
  probe steps{unit, std::move(store), random, until};
  auto running = steps.run();
  co_return co_await std::move(running);
}

} // namespace zlink::placement
