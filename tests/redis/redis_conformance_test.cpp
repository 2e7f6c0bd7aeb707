// The Redis provider, registered for the conformance suite; and what it must show beyond it.
#include "tests/core/store/store_under_test.hpp"
#include "tests/redis/redis_server.hpp"

#include <atomic>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

/// One server for the whole suite; every test has prefixes of its own.
redis_server& shared_server() {
  static const auto server = redis_server::with_manual_clock();
  return *server;
}

store_under_test make_redis() {
  static std::atomic<int> made{0};
  const auto run = std::to_string(++made);
  auto& server = shared_server();
  store_under_test stores;
  stores.location = make_redis_location_store(server.options("suite:location:" + run));
  stores.relocation = make_redis_relocation_store(server.options("suite:relocation:" + run));
  stores.advance = [&server](std::chrono::milliseconds by) { server.advance(by); };
  stores.shift_host_wall_clock = [](std::chrono::seconds) {}; // only the server has one that could matter
  stores.lose_snapshots = [location = stores.location] { crowd_out_snapshots(*location, 16); };
  return stores;
}

const provider_registration registered{"redis", make_redis};

} // namespace

TEST_CASE("S-148 a Redis store says that other processes see it too") {
  CHECK(!make_redis().location->process_local());
}

TEST_CASE("S-133 a lease has a native expiry behind its own, a durable record has none") {
  auto s = make_redis();
  write(*s.location, {{}, {puts("lease", "v", 10s), puts("row", "v")}});
  const auto keys = shared_server().command({"KEYS", "*v:lease"});
  const auto prefix = keys.substr(0, keys.find("}:") + 2);
  const auto left = std::stoll(shared_server().command({"PTTL", prefix + "v:lease"}));
  CHECK(left > 10'000);
  CHECK(left < 1'000'000);
  CHECK(shared_server().command({"PTTL", prefix + "v:row"}) == "-1");
  s.advance(10s); // still there natively, and gone for everybody who asks through the store
  CHECK(shared_server().command({"EXISTS", prefix + "v:lease"}) == "1");
  CHECK(!read(*s.location, "lease").found);
  CHECK(scan(*s.location, "lease", "", 1).items.empty());
}

TEST_CASE("S-131 all keys of a store have one hash tag, and each begins with the prefix in braces") {
  auto s = make_redis();
  static int runs = 0;
  const auto prefix = "one:slot:" + std::to_string(++runs);
  const auto store = make_redis_location_store(shared_server().options(prefix));
  write(*store, {{}, {puts("a{b}", "v", 1h), puts("c", "v"), puts("d", "v")}});
  const auto first = scan(*store, "", "", 1);
  write(*store, {{}, {puts("c", "w")}});
  CHECK(!first.next.empty());
  const auto keys = shared_server().command({"KEYS", "{" + prefix + "}:*"});
  const auto all = shared_server().command({"KEYS", "*" + prefix + "*"});
  CHECK(keys.size() == all.size());
  CHECK(keys.size() > 100);
}

TEST_CASE("S-8 S-132 a wall clock of the server that is set back repeats no version") {
  auto s = make_redis();
  const auto first = put_one(*s.location, "k", "v");
  s.advance(-1h);
  const auto second = put_one(*s.location, "k", "v");
  s.advance(1h);
  const auto third = put_one(*s.location, "k", "v");
  CHECK(first != second);
  CHECK(second != third);
  CHECK(first != third);
}

TEST_CASE("S-145 renewing or putting the same bytes again shortens and lengthens nothing but what is asked") {
  auto s = make_redis();
  put(*s.relocation, "ref", "v", 10s);
  CHECK(put(*s.relocation, "ref", "v", 1h) == blob_put_result::already_stored);
  s.advance(9s);
  CHECK(read_blob(*s.relocation, "ref")->expires_at <= read_blob(*s.relocation, "ref")->now + 1s);
  s.advance(1s);
  CHECK(!read_blob(*s.relocation, "ref"));
}
