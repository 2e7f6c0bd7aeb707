// Being let in: passwords, users, databases, roles, prefixes, binary keys; and a host that is told at its start.
#include "adapters/location/redis_login.hpp"
#include "tests/redis/redis_client.hpp"
#include "tests/redis/redis_server.hpp"

#include <mutex>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

/// Notices of a store. Thread-safe.
class notices {
public:
  std::function<void(const std::string&)> sink() {
    return [this](const std::string& text) {
      const std::lock_guard guard{mutex_};
      all_ += text + "\n";
    };
  }
  bool has(const std::string& what) {
    const std::lock_guard guard{mutex_};
    return all_.find(what) != std::string::npos;
  }

private:
  std::mutex mutex_;
  std::string all_;
};

/// How a first write ends with this URL.
store_outcome<store_write_result> write_with(const redis_server& server, std::string url, notices* into = nullptr) {
  auto options = server.options("mesh");
  options.url = std::move(url);
  if (into != nullptr)
    options.on_notice = into->sink();
  const auto store = make_redis_location_store(options);
  return try_put(*store, "k", "v");
}

void check_refused(const store_outcome<store_write_result>& outcome, const std::string& text) {
  REQUIRE(!outcome);
  CHECK(outcome.failure().what == store_failure_class::not_applied);
  CHECK(outcome.failure().misconfigured);
  CHECK_MESSAGE(outcome.failure().text.find(text) != std::string::npos, outcome.failure().text);
}

} // namespace

TEST_CASE("S-139 O-152 a password: right, wrong, missing; shown to nobody") {
  redis_server server{{"requirepass sesame"}};
  server.set_admin_password("sesame");
  const auto at = "@" + server.socket_path();
  CHECK(write_with(server, "unix://:sesame" + at));
  CHECK(write_with(server, "unix://default:sesame" + at));
  notices told;
  const auto wrong = write_with(server, "unix://:open%20barley" + at, &told);
  check_refused(wrong, "refuses the user or the password");
  CHECK(wrong.failure().text.find("barley") == std::string::npos);
  CHECK(told.has("refuses the user or the password"));
  CHECK(!told.has("barley"));
  check_refused(write_with(server, server.url()), "demands a password");
}

TEST_CASE("O-152 a user of its own with the rights that docs/operations/redis.md names") {
  redis_server server;
  server.command({"ACL",     "SETUSER",     "zlink",       "on",    ">pass word", "~{mesh}:*",  "-@all",
                  "+@read",  "+@write",     "+@scripting", "+time", "+info",      "+role",      "+wait",
                  "+select", "+config|get", "-@dangerous", "+info", "+role",      "+config|get"});
  const auto url = "unix://zlink:pass%20word@" + server.socket_path();
  CHECK(write_with(server, url));
  auto options = server.options("other");
  options.url = url;
  const auto foreign = make_redis_location_store(options);
  const auto outcome = try_put(*foreign, "k", "v");
  REQUIRE(!outcome);
  CHECK(outcome.failure().text.find("lacks a right") != std::string::npos);
}

TEST_CASE("S-139 a database is chosen on every connection, and one that does not exist is told") {
  redis_server server;
  auto options = server.options("mesh");
  options.url += "?db=5";
  const auto store = make_redis_location_store(options);
  put_one(*store, "k", "v");
  server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  until("the store has a new connection", [&] { return static_cast<bool>(try_put(*store, "k", "w")); });
  CHECK(server.command({"INFO", "keyspace"}).find("db5:") != std::string::npos);
  CHECK(server.command({"INFO", "keyspace"}).find("db0:") == std::string::npos);
  check_refused(write_with(server, server.url() + "?db=99"), "no database 99");
}

TEST_CASE("S-134 a replica is not asked") {
  redis_server replica;
  CHECK(write_with(replica, replica.url()));
  const auto store = make_redis_location_store(replica.options("mesh"));
  put_one(*store, "k", "v");
  replica.command({"REPLICAOF", "127.0.0.1", std::to_string(free_port())});
  check_refused(write_with(replica, replica.url()), "is a replica");
  until("the store that was connected notices", [&] { return !try_read(*store, "k"); });
  CHECK(!try_put(*store, "k", "w"));
  replica.command({"REPLICAOF", "NO", "ONE"});
  until("it is a primary again", [&] { return static_cast<bool>(try_put(*store, "k", "x")); });
}

TEST_CASE("S-143 settings that put data at risk are told once") {
  redis_server server{{"maxmemory 100mb", "maxmemory-policy allkeys-lru"}};
  notices told;
  CHECK(write_with(server, server.url(), &told));
  CHECK(told.has("maxmemory-policy is allkeys-lru"));
  CHECK(told.has("keeps nothing on disk"));
  redis_server safe{{"maxmemory 100mb", "maxmemory-policy noeviction", "appendonly yes"}};
  notices none;
  CHECK(write_with(safe, safe.url(), &none));
  CHECK(!none.has("maxmemory"));
  CHECK(!none.has("disk"));
}

TEST_CASE("S-157 a server without memory refuses writes, which are not applied") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  put_one(*store, "k", "v");
  server.command({"CONFIG", "SET", "maxmemory", "1"});
  const auto outcome = try_put(*store, "k", "w");
  REQUIRE(!outcome);
  CHECK(outcome.failure().what == store_failure_class::not_applied);
  CHECK(outcome.failure().text.find("memory") != std::string::npos);
  CHECK(read(*store, "k").found->bytes == "v");
}

TEST_CASE("S-136 two deployments with prefixes of their own do not see each other") {
  redis_server server;
  const auto one = make_redis_location_store(server.options("plant"));
  const auto two = make_redis_location_store(server.options("plant:v"));
  const auto blobs_one = make_redis_relocation_store(server.options("plant"));
  const auto blobs_two = make_redis_relocation_store(server.options("plant:v"));
  put_one(*one, "k", "one");
  put_one(*two, "k", "two");
  put_one(*one, "only", "one");
  put(*blobs_one, "ref", "one", 1h);
  CHECK(read(*one, "k").found->bytes == "one");
  CHECK(read(*two, "k").found->bytes == "two");
  CHECK(!read(*two, "only").found);
  CHECK(scan(*one, "", "", 100).items.size() == 2);
  CHECK(scan(*two, "", "", 100).items.size() == 1);
  CHECK(!read_blob(*blobs_two, "ref"));
  const auto page = scan(*one, "", "", 1);
  CHECK(scan(*two, "", page.next, 1).expired);
}

TEST_CASE("S-9 S-22 keys and values hold any byte") {
  redis_server server;
  const auto store = make_redis_location_store(server.options("mesh"));
  std::string every_byte;
  for (int i = 0; i < 256; ++i)
    every_byte += static_cast<char>(i);
  const std::vector<std::string> keys = {
    std::string{"\0", 1}, std::string{"\0\0", 2}, "\r\n", "\r\n$1\r\n", " ", "%s{}*?[a]",
    "\xf0\x9f\x98\x80",   std::string{"a\0b", 3}};
  for (const auto& key : keys)
    put_one(*store, key, every_byte + key);
  for (const auto& key : keys)
    CHECK(read(*store, key).found->bytes == every_byte + key);
  CHECK(scan(*store, "", "", 100).items.size() == keys.size());
  CHECK(scan(*store, std::string{"\0", 1}, "", 100).items.size() == 2);
  CHECK(write(*store, {{has_value("\r\n", every_byte + "\r\n")}, {deletes("\r\n")}}).applied);
  CHECK(!read(*store, "\r\n").found);
}

TEST_CASE("S-139 old servers and what is no Redis server") {
  adapters::redis_login login{{}, {}};
  const auto answer = [](const std::string& wire) {
    adapters::redis_reader reader;
    reader.feed(wire.data(), wire.size());
    return reader.next();
  };
  const std::string old_server = "# Server\r\nredis_version:6.0.16\r\n";
  CHECK(!login.answered(*answer("*1\r\n$6\r\nmaster\r\n")));
  const auto trouble = login.answered(*answer("$" + std::to_string(old_server.size()) + "\r\n" + old_server + "\r\n"));
  REQUIRE(trouble);
  CHECK(trouble->misconfigured);
  CHECK(trouble->text.find("6.0.16") != std::string::npos);
}
