// What happens when the server is killed, restarted, stopped, emptied, or forgets its scripts.
#include "tests/redis/redis_client.hpp"
#include "tests/redis/redis_server.hpp"
#include "zlink/clock.hpp"

#include <atomic>
#include <set>
#include <thread>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

using end = write_log::end;

namespace {

const std::vector<std::string> durable = {"appendonly yes", "appendfsync always"};

/// Every write that was answered is there, every write that was refused is not; unclear ones may be either.
void check_against_store(location_store& store, write_log& log) {
  for (const auto& [key, how] : log.ends()) {
    const bool there = read(store, key).found.has_value();
    CHECK((how == end::applied) <= there);
    CHECK((how == end::not_applied) <= !there);
    CHECK(how != end::conflict); // each key was put once
  }
  CHECK(log.doubled() == 0);
}

} // namespace

TEST_CASE("S-138 10,000 writes begun at once are all applied") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  write_log log;
  for (int i = 0; i < 10'000; ++i)
    log.put_new(*store, "key" + std::to_string(i));
  log.await();
  CHECK(log.count(end::applied) == 10'000);
}

TEST_CASE(
  "S-139 S-157 a server that is killed and restarted during writes: no acknowledged one is lost, none happens twice") {
  redis_server server{durable};
  auto options = server.options("mesh");
  options.max_in_flight = 64;
  const auto store = make_redis_location_store(options);
  write_log log;
  int next = 0;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 1000; ++i)
      log.put_new(*store, "key" + std::to_string(next++));
    log.await(700);
    server.kill();
    server.start();
  }
  log.await();
  CHECK(log.count(end::applied) > 3000);
  CHECK(log.count(end::unclear) <= 4 * 64);
  CHECK(log.count(end::not_applied) == 0); // what was never sent waited for the server
  check_against_store(*store, log);
}

TEST_CASE("S-139 connections that the server cuts under load: every answer stays true") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  write_log log;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 500; ++i)
      log.put_new(*store, "key" + std::to_string(round * 500 + i));
    server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  }
  log.await();
  CHECK(log.count(end::applied) > 0);
  check_against_store(*store, log);
}

TEST_CASE(
  "S-137 S-138 a stopped server: sent writes end unclear in time, later ones not applied, no caller is blocked") {
  redis_server server;
  auto options = server.options("mesh");
  options.operation_timeout = 300ms;
  options.max_in_flight = 10;
  const auto store = make_redis_location_store(options);
  put_one(*store, "before", "v");
  const system_clock time;
  server.pause();
  const auto began = time.now();
  write_log log;
  for (int i = 0; i < 50; ++i)
    log.put_new(*store, "key" + std::to_string(i));
  CHECK(time.now() - began < 200ms);
  log.await();
  CHECK(log.count(end::unclear) == 10);
  CHECK(log.count(end::not_applied) == 40);
  CHECK(time.now() - began >= 300ms);
  server.resume();
  until("the store answers again", [&] { return static_cast<bool>(try_read(*store, "before")); });
  CHECK(read(*store, "before").found);
  check_against_store(*store, log);
}

TEST_CASE("S-137 a stopped server that goes on before the timeout is no failure") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  put_one(*store, "before", "v");
  server.pause();
  write_log log;
  for (int i = 0; i < 100; ++i)
    log.put_new(*store, "key" + std::to_string(i));
  CHECK(log.count(end::applied) == 0);
  server.resume();
  log.await();
  CHECK(log.count(end::applied) == 100);
}

TEST_CASE("S-157 S-160 without a server a store is made at once, and what is asked of it is not applied") {
  redis_server server;
  server.kill();
  auto options = server.options("mesh");
  options.operation_timeout = 100ms;
  const auto store = make_redis_location_store(options);
  const auto outcome = try_put(*store, "k", "v");
  REQUIRE(!outcome);
  CHECK(outcome.failure().what == store_failure_class::not_applied);
  CHECK(!outcome.failure().misconfigured);
  CHECK(outcome.failure().text.find("unix://") != std::string::npos);
  server.start();
  until("the store finds its server", [&] { return static_cast<bool>(try_put(*store, "k", "v")); });
}

TEST_CASE("S-132 scripts that the server forgets under load are sent again") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  write_log log;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 200; ++i)
      log.put_new(*store, "key" + std::to_string(round * 200 + i));
    server.command({"SCRIPT", "FLUSH", "SYNC"});
  }
  log.await();
  CHECK(log.count(end::applied) == 4000);
}

TEST_CASE("S-12 S-132 versions do not repeat after FLUSHALL, and former ones fit nothing") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  std::set<std::string> versions;
  for (int round = 0; round < 20; ++round) {
    const auto version = put_one(*store, "row", "same");
    CHECK(versions.insert(version).second);
    server.command({"FLUSHALL"});
    CHECK(!read(*store, "row").found);
    put_one(*store, "row", "same");
    CHECK(!write(*store, {{has_version("row", version)}, {puts("row", "late")}}).applied);
  }
}

TEST_CASE("S-12 S-132 versions do not repeat after a restart from data of long ago") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  put_one(*store, "row", "first");
  server.command({"SAVE"});
  std::set<std::string> versions{read(*store, "row").found->version};
  for (int i = 0; i < 100; ++i)
    versions.insert(put_one(*store, "row", "lost" + std::to_string(i)));
  server.kill();
  server.start();
  until("the store answers again", [&] { return static_cast<bool>(try_read(*store, "row")); });
  REQUIRE(read(*store, "row").found);
  CHECK(read(*store, "row").found->bytes == "first");
  CHECK(versions.insert(put_one(*store, "row", "anew")).second);
}

TEST_CASE("S-14 S-142 a scan that began before FLUSHALL is Expired") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  for (const char* key : {"a", "b", "c"})
    put_one(*store, key, "v");
  const auto first = scan(*store, "", "", 1);
  server.command({"FLUSHALL"});
  put_one(*store, "b", "w");
  CHECK(scan(*store, "", first.next, 1).expired);
}

TEST_CASE("S-141 a restart with data keeps values and leases, and those that ended meanwhile read as missing") {
  redis_server server{durable};
  const auto store = make_redis_location_store(server.options("mesh"));
  write(*store, {{}, {puts("row", "v"), puts("lease", "v", 1h), puts("brief", "v", 50ms)}});
  const auto version = read(*store, "row").found->version;
  server.kill();
  server.start();
  until("the brief one has ended", [&] {
    const auto seen = try_read(*store, "brief");
    return seen && !seen->found;
  });
  CHECK(read(*store, "row").found->version == version);
  CHECK(read(*store, "lease").found->expires_at);
}

TEST_CASE("S-10 S-131 two stores on one server that race for the same keys: exactly one wins each") {
  redis_server server;
  const auto one = make_redis_location_store(server.options("mesh"));
  const auto two = make_redis_location_store(server.options("mesh"));
  write_log first;
  write_log second;
  for (int i = 0; i < 2000; ++i) {
    first.put_new(*one, "key" + std::to_string(i));
    second.put_new(*two, "key" + std::to_string(i));
  }
  first.await();
  second.await();
  const auto others = second.ends();
  for (const auto& [key, how] : first.ends())
    CHECK((how == end::applied) != (others.at(key) == end::applied));
}

TEST_CASE("S-119 S-18 a store that is destroyed ends what is outstanding, each once") {
  redis_server server;
  auto options = server.options("mesh");
  options.max_in_flight = 10;
  auto store = make_redis_location_store(options);
  put_one(*store, "before", "v");
  server.pause();
  write_log log;
  for (int i = 0; i < 1000; ++i)
    log.put_new(*store, "key" + std::to_string(i));
  until("some were sent", [&] { return log.count(end::applied) == 0; });
  store.reset();
  log.await();
  CHECK(log.count(end::unclear) <= 10);
  CHECK(log.count(end::unclear) + log.count(end::not_applied) == 1000);
  CHECK(log.doubled() == 0);
  server.resume();
}

TEST_CASE("S-119 a completion may destroy the store") {
  redis_server server;
  auto store = make_redis_location_store(server.options("mesh"));
  std::promise<bool> applied;
  auto held = store;
  store->write({{}, {puts("k", "v")}}, [&, held = std::move(held)](auto outcome) mutable {
    store.reset();
    held.reset();
    applied.set_value(static_cast<bool>(outcome));
  });
  CHECK(applied.get_future().get());
}

TEST_CASE("S-138 beyond 256 MiB outstanding a request is refused at once") {
  redis_server server;
  auto options = server.options("mesh");
  options.operation_timeout = 1min;
  const auto store = make_redis_relocation_store(options);
  server.pause();
  std::atomic<int> refused{0};
  std::atomic<int> ended{0};
  constexpr int count = 8;
  const std::string chunk(60 * 1024 * 1024, 'v');
  for (int i = 0; i < count; ++i)
    store->put("ref" + std::to_string(i), chunk, 1h, [&](store_outcome<blob_put_result> outcome) {
      refused += !outcome && outcome.failure().text.find("too many") != std::string::npos;
      ++ended;
    });
  CHECK(refused == 4);
  server.resume();
  until("the others end", [&] { return ended == count; });
}

TEST_CASE("S-149 a completion may use the store again, on the store's own thread") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  std::promise<std::thread::id> inner;
  std::thread::id outer;
  store->write({{}, {puts("k", "v")}}, [&](auto) {
    outer = std::this_thread::get_id();
    store->read("k", [&](auto) { inner.set_value(std::this_thread::get_id()); });
  });
  CHECK(inner.get_future().get() == outer);
  CHECK(outer != std::this_thread::get_id());
}
