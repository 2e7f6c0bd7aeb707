// The provider conformance suite, part 3: a Relocation Store.
#include "tests/core/store/store_under_test.hpp"

#include <stdexcept>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

TEST_CASE("S-120 put stores once, says so the second time, and never replaces other bytes") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.relocation;
    CHECK(put(store, "ref", "bytes", 1h) == blob_put_result::stored);
    CHECK(put(store, "ref", "bytes", 1h) == blob_put_result::already_stored);
    CHECK(put(store, "ref", "other", 1h) == blob_put_result::conflict);
    CHECK(put(store, "ref", "", 1h) == blob_put_result::conflict);
    const auto found = read_blob(store, "ref");
    REQUIRE(found);
    CHECK(found->bytes == "bytes");
    CHECK(found->expires_at > found->now);
    CHECK(found->expires_at <= found->now + 1h);
    CHECK(put(store, "empty", "", 1h) == blob_put_result::stored);
    CHECK(read_blob(store, "empty")->bytes.empty());
  });
}

TEST_CASE("S-120 S-125 retention ends a blob by the provider clock, renew postpones it") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.relocation;
    put(store, "brief", "1", 10s);
    put(store, "renewed", "2", 10s);
    s.advance(6s);
    CHECK(renew(store, "renewed", 10s));
    s.shift_host_wall_clock(1h);
    s.advance(4s);
    CHECK(!read_blob(store, "brief"));
    CHECK(!renew(store, "brief", 10s));
    REQUIRE(read_blob(store, "renewed"));
    s.advance(6s);
    CHECK(!read_blob(store, "renewed"));
    CHECK(put(store, "brief", "another", 10s) == blob_put_result::stored);
  });
}

TEST_CASE("S-120 renew tells a missing blob; delete always succeeds") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.relocation;
    CHECK(!read_blob(store, "ref"));
    CHECK(!renew(store, "ref", 1h));
    erase(store, "ref");
    put(store, "ref", "bytes", 1h);
    erase(store, "ref");
    CHECK(!read_blob(store, "ref"));
    CHECK(!renew(store, "ref", 1h));
    erase(store, "ref");
    CHECK(put(store, "ref", "bytes", 1h) == blob_put_result::stored);
  });
}

TEST_CASE("S-120 S-121 S-17 references, sizes and retentions at and beyond their bounds") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.relocation;
    const std::string longest(4096, 'r');
    CHECK(put(store, longest, "v", 1ms) == blob_put_result::stored);
    CHECK(put(store, std::string{"r\0s", 3}, "v", 1h) == blob_put_result::stored);
    CHECK(!read_blob(store, "r"));
    const auto nothing = [](auto) { FAIL("called although the arguments are wrong"); };
    for (const auto& bad : {std::string{}, longest + 'r', std::string{"\xff"}}) {
      CHECK_THROWS_AS(store.put(bad, "v", 1h, nothing), std::invalid_argument);
      CHECK_THROWS_AS(store.read_blob(bad, nothing), std::invalid_argument);
      CHECK_THROWS_AS(store.renew(bad, 1h, nothing), std::invalid_argument);
      CHECK_THROWS_AS(store.erase(bad, nothing), std::invalid_argument);
    }
    CHECK_THROWS_AS(store.put("ref", "v", 0ms, nothing), std::invalid_argument);
    CHECK_THROWS_AS(store.renew("ref", 0ms, nothing), std::invalid_argument);
  });
}

TEST_CASE("S-120 a chunk of 64 MiB with its envelope fits") {
  for_each_provider([](store_under_test& s) {
    auto& store = *s.relocation;
    const store_bytes largest(relocation_store::blob_bytes, 'v');
    CHECK(largest.size() > 64 * 1024 * 1024);
    CHECK(put(store, "ref", largest, 1h) == blob_put_result::stored);
    CHECK(read_blob(store, "ref")->bytes.size() == largest.size());
    CHECK_THROWS_AS(store.put("more", largest + 'v', 1h, [](auto) {}), std::invalid_argument);
  });
}

TEST_CASE("S-16 a blob that was read stays what it was") {
  for_each_provider([](store_under_test& s) {
    put(*s.relocation, "ref", std::string(100'000, '1'), 1h);
    const auto held = read_blob(*s.relocation, "ref");
    erase(*s.relocation, "ref");
    put(*s.relocation, "ref", std::string(100'000, '2'), 1h);
    CHECK(held->bytes == std::string(100'000, '1'));
  });
}
