// The provider conformance suite, part 2: scanning a Location Store.
#include "tests/core/store/store_under_test.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

/// Keys in byte order for numbers in numeric order.
std::string numbered(std::string prefix, int i) {
  auto digits = std::to_string(i);
  return prefix.append(6 - digits.size(), '0').append(digits);
}

/// Every page after the first, appended; calls `between` before each. False if the snapshot was lost.
template <class Between>
bool read_rest(location_store& store, const std::string& prefix, std::size_t limit, store_scan_result page,
               std::vector<store_scan_item>& items, Between between) {
  for (;;) {
    if (page.expired)
      return false;
    CHECK(page.items.size() <= limit);
    items.insert(items.end(), page.items.begin(), page.items.end());
    if (page.next.empty())
      return true;
    CHECK(page.next.size() <= 4096);
    between();
    page = scan(store, prefix, page.next, limit);
  }
}

std::vector<store_scan_item> read_all(location_store& store, const std::string& prefix, std::size_t limit) {
  std::vector<store_scan_item> items;
  CHECK(read_rest(store, prefix, limit, scan(store, prefix, "", limit), items, [] {}));
  return items;
}

} // namespace

TEST_CASE("S-14 pages hold every key of the prefix once, in byte order, at any page size") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    store_batch batch;
    std::vector<std::string> expected;
    for (int i = 0; i < 1001; ++i) {
      batch.mutations.push_back(puts(numbered("row/", i), std::to_string(i)));
      expected.push_back(numbered("row/", i));
    }
    for (const char* other : {"ro", "row", "row.", "row0", "s", "\xc3\xbc"})
      batch.mutations.push_back(puts(other, "outside"));
    write(store, std::move(batch));
    for (const std::size_t limit : {std::size_t{7}, std::size_t{100}, std::size_t{1000}}) {
      const auto items = read_all(store, "row/", limit);
      REQUIRE(items.size() == expected.size());
      for (std::size_t i = 0; i < items.size(); ++i) {
        CHECK(items[i].key == expected[i]);
        CHECK(items[i].value.bytes == std::to_string(i));
      }
      CHECK(items[0].value.version == read(store, expected[0]).found->version);
    }
    CHECK(read_all(store, "", 1000).size() == 1007);
    CHECK(read_all(store, "row/000500", 10).size() == 1);
    CHECK(read_all(store, "nothing", 10).empty());
    const auto unsigned_order = read_all(store, "", 1000);
    CHECK(unsigned_order.back().key == "\xc3\xbc");
  });
}

TEST_CASE("S-14 later pages see the first page's point in time whatever changes between them") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    std::mt19937 random{20240607};
    std::map<std::string, std::pair<std::string, std::string>> model;
    for (int i = 0; i < 200; i += 2) {
      const auto key = numbered("k", i);
      const auto version = put_one(store, key, "before");
      model[key] = {"before", version};
    }
    std::vector<store_scan_item> items;
    const bool whole = read_rest(store, "k", 9, scan(store, "k", "", 9), items, [&] {
      for (int n = 0; n < 15; ++n) {
        const auto key = numbered("k", static_cast<int>(random() % 200));
        if (random() % 3 == 0)
          write(store, {{}, {deletes(key)}});
        else
          put_one(store, key, "after");
      }
    });
    CHECK(whole);
    REQUIRE(items.size() == model.size());
    auto expected = model.begin();
    for (const auto& item : items) {
      CHECK(item.key == expected->first);
      CHECK(item.value.bytes == expected->second.first);
      CHECK(item.value.version == expected->second.second);
      ++expected;
    }
    const auto now = read_all(store, "k", 1000);
    CHECK(std::any_of(now.begin(), now.end(), [](const auto& item) { return item.value.bytes == "after"; }));
  });
}

TEST_CASE("S-14 a batch is in a scan as a whole or not at all") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    for (int i = 0; i < 6; ++i)
      put_one(store, numbered("k", i), "1");
    const auto first = scan(store, "k", "", 2);
    store_batch batch;
    for (int i = 0; i < 6; ++i)
      batch.mutations.push_back(puts(numbered("k", i), "2"));
    write(store, std::move(batch));
    const auto second = scan(store, "k", "", 2);
    std::vector<store_scan_item> before, after;
    CHECK(read_rest(store, "k", 2, first, before, [] {}));
    CHECK(read_rest(store, "k", 2, second, after, [] {}));
    CHECK(std::all_of(before.begin(), before.end(), [](const auto& item) { return item.value.bytes == "1"; }));
    CHECK(std::all_of(after.begin(), after.end(), [](const auto& item) { return item.value.bytes == "2"; }));
    CHECK(before.size() == 6);
    CHECK(after.size() == 6);
  });
}

TEST_CASE("S-8 S-14 an expired value is not scanned, and what lives at the first page stays in its snapshot") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    write(store, {{}, {puts("a", "1"), puts("b", "2", 1s), puts("c", "3", 5s), puts("d", "4")}});
    s.advance(1s);
    const auto first = scan(store, "", "", 1);
    s.advance(10s);
    write(store, {{}, {puts("e", "5"), puts("c", "again")}});
    std::vector<store_scan_item> items;
    CHECK(read_rest(store, "", 1, first, items, [] {}));
    REQUIRE(items.size() == 3);
    CHECK(items[1].key == "c");
    CHECK(items[1].value.bytes == "3");
    CHECK(items[1].value.expires_at);
    CHECK(!items[2].value.expires_at);
  });
}

TEST_CASE("S-14 a page never holds more than 4 MiB") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    for (int i = 0; i < 9; ++i)
      put_one(store, numbered("big", i), std::string(1024 * 1024, 'v'));
    std::size_t total = 0;
    for (auto page = scan(store, "big", "", 1000);; page = scan(store, "big", page.next, 1000)) {
      std::size_t bytes = 0;
      for (const auto& item : page.items)
        bytes += item.key.size() + item.value.bytes.size() + item.value.version.size();
      CHECK(bytes <= 4 * 1024 * 1024);
      CHECK(!page.items.empty());
      total += page.items.size();
      if (page.next.empty())
        break;
    }
    CHECK(total == 9);
  });
}

TEST_CASE("S-14 S-17 a lost snapshot and a foreign or invalid cursor are Expired, not an error and not a page") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    for (int i = 0; i < 20; ++i)
      put_one(store, numbered("k", i), "v");
    const auto first = scan(store, "k", "", 5);
    REQUIRE(!first.next.empty());
    for (const auto& bad : {std::string{"x"}, std::string{"1:"}, std::string{"0:k"}, std::string(4096, '9')}) {
      const auto page = scan(store, "k", bad, 5);
      CHECK(page.expired);
      CHECK(page.items.empty());
      CHECK(page.next.empty());
    }
    CHECK(scan(store, "l", first.next, 5).expired);
    s.lose_snapshots();
    const auto lost = scan(store, "k", first.next, 5);
    CHECK(lost.expired);
    CHECK(lost.items.empty());
    CHECK(read_all(store, "k", 5).size() == 20);
  });
}

TEST_CASE("S-9 S-14 scan arguments at and beyond their bounds") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    const auto nothing = [](auto) { FAIL("called although the arguments are wrong"); };
    CHECK(scan(store, std::string(1024, 'p'), "", 1).items.empty());
    CHECK(scan(store, "", std::string(4096, 'c'), 1000).expired);
    CHECK_THROWS_AS(store.scan(std::string(1025, 'p'), "", 1, nothing), std::invalid_argument);
    CHECK_THROWS_AS(store.scan("", std::string(4097, 'c'), 1, nothing), std::invalid_argument);
    CHECK_THROWS_AS(store.scan("", "", 0, nothing), std::invalid_argument);
    CHECK_THROWS_AS(store.scan("", "", 1001, nothing), std::invalid_argument);
  });
}
