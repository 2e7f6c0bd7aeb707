// The provider conformance suite, part 1: reading and writing of a Location Store.
#include "tests/core/store/store_under_test.hpp"

#include <set>
#include <stdexcept>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

TEST_CASE("S-8 S-25 a key is missing until it is put, and reading issues nothing") {
  for_each_provider([](store_under_test& s) {
    const auto before = read(*s.location, "row");
    CHECK(!before.found);
    const auto first = put_one(*s.location, "other", "x");
    for (int i = 0; i < 1000; ++i)
      CHECK(!read(*s.location, "row").found);
    const auto page = scan(*s.location, "", "", 10);
    REQUIRE(page.items.size() == 1);
    CHECK(page.items[0].value.version == first);
    const auto version = put_one(*s.location, "row", "content");
    const auto after = read(*s.location, "row");
    REQUIRE(after.found);
    CHECK(after.found->bytes == "content");
    CHECK(after.found->version == version);
    CHECK(!after.found->expires_at);
    CHECK(after.now >= before.now);
  });
}

TEST_CASE("S-8 S-15 S-24 an expired value reads as missing by the provider clock, one without expiry stays") {
  for_each_provider([](store_under_test& s) {
    store_batch batch;
    batch.mutations.push_back(puts("lease", "token", 10s));
    batch.mutations.push_back(puts("row", "stays"));
    const auto written = write(*s.location, std::move(batch));
    const auto seen = read(*s.location, "lease");
    REQUIRE(seen.found);
    REQUIRE(seen.found->expires_at);
    CHECK(*seen.found->expires_at == written.now + 10s);
    s.shift_host_wall_clock(1h);
    CHECK(read(*s.location, "lease").found);
    s.shift_host_wall_clock(-2h);
    CHECK(read(*s.location, "lease").found);
    s.advance(9s);
    CHECK(read(*s.location, "lease").found);
    s.advance(1s);
    const auto gone = read(*s.location, "lease");
    CHECK(!gone.found);
    CHECK(gone.now >= written.now + 10s);
    s.advance(100s);
    CHECK(read(*s.location, "row").found);
  });
}

TEST_CASE("S-8 a very long retention does not wrap around") {
  for_each_provider([](store_under_test& s) {
    write(*s.location, {{}, {puts("k", "v", std::chrono::milliseconds::max())}});
    put(*s.relocation, "ref", "v", std::chrono::milliseconds::max());
    s.advance(24h);
    REQUIRE(read(*s.location, "k").found);
    CHECK(read(*s.location, "k").found->expires_at);
    CHECK(read_blob(*s.relocation, "ref"));
  });
}

TEST_CASE("S-9 S-17 keys, values and versions at and beyond their bounds") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    const std::string longest_key(1024, 'k');
    const std::string largest(1024 * 1024, 'v');
    put_one(store, longest_key, largest);
    CHECK(read(store, longest_key).found->bytes == largest);
    put_one(store, "k", "");
    CHECK(read(store, "k").found->bytes.empty());
    CHECK(!read(store, "K").found);
    put_one(store, std::string{"a\0b", 3}, "nul");
    CHECK(!read(store, "a").found);
    CHECK(read(store, std::string{"a\0b", 3}).found->bytes == "nul");
    put_one(store, "\xc3\xbc\xf0\x9f\x98\x80", "not ascii");
    CHECK(read(store, "\xc3\xbc\xf0\x9f\x98\x80").found);

    const auto nothing = [](auto) { FAIL("called although the arguments are wrong"); };
    for (const auto& bad : {std::string{}, std::string(1025, 'k'), std::string{"plainly \xff"}}) {
      CHECK_THROWS_AS(store.read(bad, nothing), std::invalid_argument);
      CHECK_THROWS_AS(store.write({{is_missing(bad)}, {}}, nothing), std::invalid_argument);
      CHECK_THROWS_AS(store.write({{}, {puts(bad, "v")}}, nothing), std::invalid_argument);
    }
    CHECK_THROWS_AS(store.write({{}, {puts("k", largest + 'v')}}, nothing), std::invalid_argument);
    CHECK_THROWS_AS(store.write({{has_value("k", largest + 'v')}, {}}, nothing), std::invalid_argument);
    CHECK_THROWS_AS(store.write({{has_version("k", "")}, {}}, nothing), std::invalid_argument);
    CHECK_THROWS_AS(store.write({{has_version("k", std::string(4097, '1'))}, {}}, nothing), std::invalid_argument);
    CHECK(!write(store, {{has_version("k", std::string(4096, '1'))}, {}}).applied);
    CHECK_THROWS_AS(store.write({{}, {puts("k", "v", 0ms)}}, nothing), std::invalid_argument);
    CHECK_THROWS_AS(store.write({{}, {{"k", std::nullopt, 5s}}}, nothing), std::invalid_argument);
    CHECK(read(store, "k").found->bytes.empty());
  });
}

TEST_CASE("S-10 each condition holds when it should and only then") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    const auto version = put_one(store, "there", "bytes");
    const auto holds = [&](store_condition condition) { return write(store, {{std::move(condition)}, {}}).applied; };
    CHECK(holds(is_missing("absent")));
    CHECK(!holds(is_missing("there")));
    CHECK(holds(has_version("there", version)));
    CHECK(!holds(has_version("there", version + "0")));
    CHECK(!holds(has_version("absent", version)));
    CHECK(holds(has_value("there", "bytes")));
    CHECK(!holds(has_value("there", "byte")));
    CHECK(!holds(has_value("absent", "")));
    write(store, {{}, {puts("brief", "bytes", 1s)}});
    const auto brief = read(store, "brief").found->version;
    s.advance(1s);
    CHECK(holds(is_missing("brief")));
    CHECK(!holds(has_version("brief", brief)));
    CHECK(!holds(has_value("brief", "bytes")));
    CHECK(write(store, {}).applied);
  });
}

TEST_CASE("S-10 S-17 one false condition changes nothing and tells nothing") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    const auto kept = put_one(store, "kept", "old");
    const auto victim = put_one(store, "victim", "old");
    store_batch batch;
    batch.conditions = {has_version("kept", kept), is_missing("absent"), has_value("victim", "other")};
    batch.mutations = {puts("kept", "new"), deletes("victim"), puts("fresh", "new")};
    const auto result = write(store, std::move(batch));
    CHECK(!result.applied);
    CHECK(result.versions.empty());
    CHECK(read(store, "kept").found->version == kept);
    CHECK(read(store, "kept").found->bytes == "old");
    CHECK(read(store, "victim").found->version == victim);
    CHECK(!read(store, "fresh").found);
  });
}

TEST_CASE("S-10 conditions are judged before the first mutation") {
  for_each_provider([](store_under_test& s) {
    store_batch batch;
    batch.conditions = {is_missing("a"), is_missing("b")};
    batch.mutations = {puts("a", "1"), puts("b", "2")};
    CHECK(write(*s.location, batch).applied);
    CHECK(!write(*s.location, batch).applied);
  });
}

TEST_CASE("S-11 2,048 different keys are accepted, 2,049 and doubled keys are not") {
  for_each_provider([](store_under_test& s) {
    store_batch batch;
    for (int i = 0; i < 2048; ++i)
      batch.mutations.push_back(puts("key" + std::to_string(i), "v"));
    for (int i = 0; i < 2048; ++i)
      batch.conditions.push_back(is_missing("key" + std::to_string(i)));
    CHECK(write(*s.location, batch).versions.size() == 2048);
    const auto nothing = [](auto) { FAIL("called although the batch is wrong"); };
    batch.conditions.back().key = "one more";
    CHECK_THROWS_AS(s.location->write(batch, nothing), std::invalid_argument);
    CHECK_THROWS_AS(s.location->write({{is_missing("k"), has_value("k", "v")}, {}}, nothing), std::invalid_argument);
    CHECK_THROWS_AS(s.location->write({{}, {puts("k", "v"), deletes("k")}}, nothing), std::invalid_argument);
  });
}

TEST_CASE("S-11 a batch of 4 MiB is accepted, one byte more is not") {
  for_each_provider([](store_under_test& s) {
    store_batch batch;
    for (int i = 0; i < 4; ++i)
      batch.mutations.push_back(puts(std::string(1, static_cast<char>('a' + i)), std::string(1024 * 1024 - 1, 'v')));
    CHECK(write(*s.location, batch).applied);
    batch.mutations[0].put->push_back('v');
    const auto nothing = [](auto) { FAIL("called although the batch is too large"); };
    CHECK_THROWS_AS(s.location->write(batch, nothing), std::invalid_argument);
  });
}

TEST_CASE("S-12 every put has a new version, also after delete and after expiry") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    std::set<std::string> versions;
    for (int i = 0; i < 20; ++i) {
      const auto put = write(store, {{}, {puts("k", "same", 1s), puts("l" + std::to_string(i), "x")}});
      REQUIRE(put.versions.size() == 2);
      CHECK(put.versions[0] == read(store, "k").found->version);
      CHECK(!put.versions[0].empty());
      CHECK(put.versions[0].size() <= 4096);
      CHECK(versions.insert(put.versions[0]).second);
      if (i % 3 == 0) {
        const auto deleted = write(store, {{has_version("k", put.versions[0])}, {deletes("k")}});
        REQUIRE(deleted.applied);
        CHECK(deleted.versions == std::vector<std::string>{""});
        CHECK(!read(store, "k").found);
      } else if (i % 3 == 1) {
        s.advance(1s);
      }
    }
  });
}

TEST_CASE("S-12 a version seen before a delete is useless after the next put of the same bytes") {
  for_each_provider([](store_under_test& s) {
    const auto old = put_one(*s.location, "row", "same");
    write(*s.location, {{}, {deletes("row")}});
    put_one(*s.location, "row", "same");
    CHECK(!write(*s.location, {{has_version("row", old)}, {puts("row", "late")}}).applied);
    CHECK(read(*s.location, "row").found->bytes == "same");
  });
}

TEST_CASE("S-12 deleting what is not there is no error") {
  for_each_provider([](store_under_test& s) {
    const auto result = write(*s.location, {{}, {deletes("never"), puts("k", "v")}});
    CHECK(result.applied);
    CHECK(result.versions.at(0).empty());
    CHECK(!result.versions.at(1).empty());
  });
}

TEST_CASE("S-13 S-37 a renewal changes version and expiry, not what a value condition sees; expiry and takeover do") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.location;
    write(store, {{is_missing("lease")}, {puts("lease", "run 1", 15s)}});
    const auto claimed = *read(store, "lease").found;
    s.advance(5s);
    CHECK(write(store, {{has_version("lease", claimed.version)}, {puts("lease", "run 1", 15s)}}).applied);
    const auto renewed = *read(store, "lease").found;
    CHECK(renewed.version != claimed.version);
    CHECK(renewed.bytes == claimed.bytes);
    CHECK(*renewed.expires_at == *claimed.expires_at + 5s);
    CHECK(write(store, {{has_value("lease", "run 1")}, {puts("row", "1")}}).applied);
    s.advance(15s);
    CHECK(!write(store, {{has_value("lease", "run 1")}, {puts("row", "2")}}).applied);
    CHECK(write(store, {{is_missing("lease")}, {puts("lease", "run 2", 15s)}}).applied);
    CHECK(!write(store, {{has_value("lease", "run 1")}, {puts("row", "3")}}).applied);
    CHECK(read(store, "row").found->bytes == "1");
  });
}

TEST_CASE("S-8 S-10 a put without retention takes an earlier expiry away") {
  for_each_provider([](store_under_test& s) {
    write(*s.location, {{}, {puts("k", "brief", 1s)}});
    put_one(*s.location, "k", "lasting");
    s.advance(10s);
    REQUIRE(read(*s.location, "k").found);
    CHECK(!read(*s.location, "k").found->expires_at);
  });
}

TEST_CASE("S-16 a result stays what it was while the value changes") {
  for_each_provider([](store_under_test& s) {
    const std::string first(5000, '1');
    put_one(*s.location, "k", first);
    const auto held = read(*s.location, "k");
    const auto page = scan(*s.location, "", "", 10);
    put_one(*s.location, "k", std::string(5000, '2'));
    write(*s.location, {{}, {deletes("k")}});
    CHECK(held.found->bytes == first);
    CHECK(page.items.at(0).value.bytes == first);
  });
}
