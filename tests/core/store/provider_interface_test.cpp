// What a provider has to be, with nothing of the runtime: three operations for the Location Store, four for the
// Relocation Store.
#include "zlink/location_store.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <type_traits>

namespace {

using namespace zlink;

/// The least that compiles.
class least_store final : public location_store {
public:
  void read(std::string key, store_completion<store_read_result> done) override {
    store_read_result seen;
    if (const auto found = values_.find(key); found != values_.end())
      seen.found = store_value{found->second, "1", std::nullopt};
    done(std::move(seen));
  }
  void write(store_batch batch, store_completion<store_write_result> done) override {
    store_write_result result;
    result.applied = true;
    for (auto& mutation : batch.mutations) {
      if (mutation.put)
        values_[mutation.key] = *mutation.put;
      else
        values_.erase(mutation.key);
      result.versions.push_back(mutation.put ? "1" : "");
    }
    done(std::move(result));
  }
  void scan(std::string, std::string, std::size_t, store_completion<store_scan_result> done) override {
    done(store_failure{store_failure_class::not_applied, "no scans here"});
  }
  bool process_local() const noexcept override { return true; }

private:
  std::map<std::string, std::string> values_;
};

} // namespace

TEST_CASE("S-7 a provider needs three operations and a word about its reach, and nothing of the layer") {
  CHECK(std::is_abstract_v<location_store>);
  CHECK(std::is_abstract_v<relocation_store>);
  CHECK(std::is_final_v<least_store>);
  least_store provider;
  location_store& store = provider;
  store_batch batch;
  batch.mutations.push_back({"key", "value", std::nullopt});
  bool applied = false;
  store.write(std::move(batch), [&](auto outcome) { applied = outcome && outcome->applied; });
  CHECK(applied);
  std::string seen;
  store.read("key", [&](auto outcome) { seen = outcome->found->bytes; });
  CHECK(seen == "value");
  bool failed = false;
  store.scan("", "", 10, [&](auto outcome) { failed = !outcome; });
  CHECK(failed);
}
