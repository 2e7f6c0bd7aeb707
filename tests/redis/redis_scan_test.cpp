// Scans of many keys: one point in time, in pages that the server answers quickly, while others write.
#include "adapters/location/redis_location_scripts.hpp"
#include "tests/core/store/store_under_test.hpp"
#include "tests/redis/redis_client.hpp"
#include "tests/redis/redis_server.hpp"
#include "zlink/clock.hpp"

#include <algorithm>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

std::string numbered(int i) {
  auto digits = std::to_string(i);
  return std::string("row/").append(6 - digits.size(), '0').append(digits);
}

/// Rows `from` to `to`, in batches, many at once.
void fill(location_store& store, int from, int to, const std::string& bytes) {
  write_log log;
  for (int i = from; i < to; i += 500) {
    store_batch batch;
    for (int n = i; n < std::min(i + 500, to); ++n)
      batch.mutations.push_back(puts(numbered(n), bytes));
    log.start(store, std::to_string(i), std::move(batch));
  }
  log.await();
  REQUIRE(log.count(write_log::end::applied) == log.ends().size());
}

} // namespace

TEST_CASE("S-135 S-14 100,000 keys: every page is of one point in time and keeps the server busy only briefly") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  constexpr int count = 100'000;
  fill(*store, 0, count, "before");
  const system_clock time;
  steady_duration slowest{};
  int seen = 0;
  int wrong = 0;
  std::string last;
  store_scan_result page;
  int pages = 0;
  do {
    const auto began = time.now();
    page = scan(*store, "row/", page.next, 1000);
    slowest = std::max(slowest, time.now() - began);
    REQUIRE(!page.expired);
    for (const auto& item : page.items) {
      wrong += item.key <= last || item.value.bytes != "before";
      last = item.key;
      ++seen;
    }
    if (++pages % 10 == 0) { // changes before and behind the place where the scan stands
      fill(*store, pages * 700, pages * 700 + 500, "after");
      write(*store, {{}, {deletes(numbered(count - pages)), deletes(numbered(pages)), puts("row/9999990", "new")}});
    }
  } while (!page.next.empty());
  CHECK(seen == count);
  CHECK(wrong == 0);
  MESSAGE("slowest page: ", std::chrono::duration_cast<std::chrono::microseconds>(slowest).count(), " us");
  CHECK(slowest < 1s);
}

TEST_CASE("S-135 a page over many keys that its snapshot does not see ends early instead of keeping the server busy") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  fill(*store, 0, 3, "before");
  fill(*store, 90'000, 90'003, "before");
  auto page = scan(*store, "row/", "", 2);
  fill(*store, 1000, 11'000, "after");
  std::vector<std::string> keys;
  int pages = 0;
  for (; !page.next.empty(); ++pages) {
    page = scan(*store, "row/", page.next, 2);
    REQUIRE(!page.expired);
    for (const auto& item : page.items)
      keys.push_back(item.key);
  }
  CHECK(pages > 30);
  CHECK(keys == std::vector<std::string>{numbered(2), numbered(90'000), numbered(90'001), numbered(90'002)});
}

TEST_CASE("S-14 a snapshot that nobody reads on, or for too long, is dropped, so that writers stop paying for it") {
  const auto server = redis_server::with_manual_clock();
  const auto store = make_redis_location_store(server->options("mesh"));
  fill(*store, 0, 10, "before");
  const auto first = scan(*store, "", "", 1);
  server->advance(60s);
  put_one(*store, numbered(5), "after");
  auto page = scan(*store, "", first.next, 1);
  CHECK(!page.expired);
  server->advance(61s);
  CHECK(scan(*store, "", page.next, 1).expired);
  put_one(*store, numbered(6), "after");
  CHECK(server->command({"KEYS", "*s:*"}).empty());
  page = scan(*store, "", "", 1);
  for (int i = 0; i < 8 && !page.expired; ++i) {
    server->advance(50s);
    page = scan(*store, "", page.next, 1);
  }
  CHECK(page.expired);
}

TEST_CASE("S-14 a snapshot that would retain too much is dropped") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  for (int i = 0; i < 80; ++i)
    put_one(*store, numbered(i), std::string(1024 * 1024, '1'));
  const auto first = scan(*store, "", "", 1);
  for (int i = 0; i < 80; ++i)
    write(*store, {{}, {deletes(numbered(i))}});
  CHECK(scan(*store, "", first.next, 1).expired);
  CHECK(server.command({"KEYS", "*"}).find("s:") == std::string::npos);
}

TEST_CASE("S-135 of more scans at once than there is room for the oldest are Expired") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  fill(*store, 0, 5, "v");
  std::vector<std::string> cursors;
  for (int i = 0; i < 20; ++i)
    cursors.push_back(scan(*store, "", "", 1).next);
  for (int i = 0; i < 20; ++i)
    CHECK(scan(*store, "", cursors[i], 1).expired == (i < 4));
}

TEST_CASE("S-133 what expired leaves the server while the store is used") {
  const auto server = redis_server::with_manual_clock();
  const auto store = make_redis_location_store(server->options("mesh"));
  for (int i = 0; i < 100; ++i)
    write(*store, {{}, {puts(numbered(i), "v", 5s)}});
  put_one(*store, numbered(3), "stays");
  write(*store, {{}, {deletes(numbered(4)), puts(numbered(5), "v", 1h)}});
  server->advance(5s);
  for (int i = 0; i < 30; ++i)
    put_one(*store, "other", "v");
  CHECK(server->command({"ZCARD", "{mesh}:i"}) == "3");
  CHECK(server->command({"ZCARD", "{mesh}:x"}) == "1");
  CHECK(read(*store, numbered(3)).found);
  CHECK(read(*store, numbered(5)).found);
  CHECK(server->command({"EXISTS", "{mesh}:v:" + numbered(7)}) == "0");
}
