// The provider conformance suite, part 4: several threads at once. Also run under the thread sanitizer.
#include "tests/core/store/store_under_test.hpp"

#include <atomic>
#include <set>
#include <thread>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

constexpr int rows = 8;

std::string row_key(int i) { return "row" + std::to_string(i); }

/// Puts the same number in every row, `rounds` times.
void write_rounds(location_store& store, int rounds) {
  for (int n = 1; n <= rounds; ++n) {
    store_batch batch;
    for (int i = 0; i < rows; ++i)
      batch.mutations.push_back(puts(row_key(i), std::to_string(n)));
    write(store, std::move(batch));
  }
}

} // namespace

TEST_CASE("S-10 S-14 S-149 no reader ever sees half of a batch") {
  for_each_provider([](store_under_test& s) {
    write_rounds(*s.location, 1);
    std::atomic<bool> done{false};
    std::atomic<int> torn{0}, pages{0};
    const auto scan_until_done = [&] {
      do {
        std::set<std::string> seen;
        auto page = scan(*s.location, "row", "", 3);
        for (;; page = scan(*s.location, "row", page.next, 3)) {
          for (const auto& item : page.items)
            seen.insert(item.value.bytes);
          if (page.expired || page.next.empty())
            break;
        }
        ++pages;
        torn += !page.expired && seen.size() != 1;
      } while (!done);
    };
    // Equal values in every row, judged by the store itself in one batch.
    const auto compare_until_done = [&] {
      while (!done) {
        const auto one = read(*s.location, row_key(0));
        store_batch equal;
        store_batch different;
        equal.conditions = {has_version(row_key(0), one.found->version),
                            has_value(row_key(rows - 1), one.found->bytes)};
        different.conditions = {has_version(row_key(0), one.found->version)};
        const bool same = write(*s.location, std::move(equal)).applied;
        torn += !same && write(*s.location, std::move(different)).applied;
      }
    };
    std::thread scanner{scan_until_done};
    std::thread comparer{compare_until_done};
    write_rounds(*s.location, 2000);
    done = true;
    scanner.join();
    comparer.join();
    CHECK(torn == 0);
    CHECK(pages > 0);
  });
}

TEST_CASE("S-10 S-12 S-149 concurrent conditional writes lose no update and repeat no version") {
  for_each_provider([](store_under_test& s) {
    constexpr int writers = 4;
    constexpr int increments = 300;
    put_one(*s.location, "counter", "0");
    std::set<std::string> versions[writers];
    std::atomic<int> doubled{0};
    const auto increment = [&](int which) {
      for (int n = 0; n < increments;) {
        const auto seen = read(*s.location, "counter");
        store_batch batch;
        batch.conditions = {has_version("counter", seen.found->version)};
        batch.mutations = {puts("counter", std::to_string(std::stoi(seen.found->bytes) + 1))};
        const auto result = write(*s.location, std::move(batch));
        if (!result.applied)
          continue;
        doubled += !versions[which].insert(result.versions[0]).second;
        ++n;
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < writers; ++i)
      threads.emplace_back(increment, i);
    for (auto& thread : threads)
      thread.join();
    CHECK(read(*s.location, "counter").found->bytes == std::to_string(writers * increments));
    for (int i = 1; i < writers; ++i)
      for (const auto& version : versions[i])
        doubled += !versions[0].insert(version).second;
    CHECK(doubled == 0);
  });
}

TEST_CASE("S-120 S-149 of several threads putting different bytes under one reference one wins") {
  for_each_provider([](store_under_test& s) {
    for (int round = 0; round < 50; ++round) {
      const auto reference = "ref" + std::to_string(round);
      std::atomic<int> stored{0}, refused{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
          const auto result = put(*s.relocation, reference, std::to_string(i), 1h);
          stored += result == blob_put_result::stored;
          refused += result == blob_put_result::conflict;
        });
      for (auto& thread : threads)
        thread.join();
      CHECK(stored == 1);
      CHECK(refused == 3);
    }
  });
}
