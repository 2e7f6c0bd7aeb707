// What URLs and options say, and what is told of bad ones.
#include "adapters/location/redis_address.hpp"
#include "zlink/error.hpp"
#include "zlink/redis_store.hpp"

#include <doctest/doctest.h>

using namespace zlink;
using namespace zlink::adapters;
using namespace std::chrono_literals;

TEST_CASE("S-136 O-152 a URL says where the server is and how to be let in") {
  const auto plain = parse_redis_url("redis://db.example");
  CHECK(plain.host == "db.example");
  CHECK(plain.port == 6379);
  CHECK(!plain.tls);
  CHECK(plain.password.empty());
  CHECK(plain.database == 0);
  const auto full = parse_redis_url("rediss://us%40er:p%3A%2Fw@db:1%40x@[::1]:6380/12?ca=/etc/ca.pem&cert=/c&key=/k");
  CHECK(full.user == "us@er");
  CHECK(full.password == "p:/w@db:1@x");
  CHECK(full.host == "::1");
  CHECK(full.port == 6380);
  CHECK(full.database == 12);
  CHECK(full.tls);
  CHECK(full.tls_ca == "/etc/ca.pem");
  CHECK(full.tls_cert == "/c");
  CHECK(full.tls_key == "/k");
  CHECK(full.shown() == "rediss://[::1]:6380/12");
  const auto local = parse_redis_url("unix://:secret@/run/redis/s?db=3");
  CHECK(local.host.empty());
  CHECK(local.socket_path == "/run/redis/s");
  CHECK(local.user.empty());
  CHECK(local.password == "secret");
  CHECK(local.database == 3);
  CHECK(local.shown().find("secret") == std::string::npos);
}

TEST_CASE("O-152 a URL that is wrong is a configuration error that shows nothing of user and password") {
  for (const char* url :
       {"", "http://me:hidden@h", "redis://", "redis://me:hidden@", "redis://me:hidden@h:0",
        "redis://me:hidden@h:70000", "redis://me:hidden@h:1x", "redis://me:hidden@h/x", "redis://me:hidden@h/65536",
        "redis://me:hid%zzden@h", "redis://hidden@h", "redis://me:@h", "redis://me:hidden@[::1",
        "redis://me:hidden@[::1]x", "unix://me:hidden@s", "redis://me:hidden@h?ca=/x", "rediss://me:hidden@h?cert=/x",
        "rediss://h?hidden=1", "redis://me:hidden@h/-1"}) {
    CAPTURE(url);
    bool refused = false;
    try {
      parse_redis_url(url);
    } catch (const configuration_error& wrong) {
      refused = true;
      CHECK(std::string{wrong.what()}.find("hid") == std::string::npos);
    }
    CHECK(refused);
  }
}

TEST_CASE("S-160 options that can never work are told before anything happens, all at once") {
  redis_options bad;
  bad.url = "redis://h:x";
  bad.key_prefix = "a{b}";
  bad.operation_timeout = 0ms;
  bad.max_in_flight = 0;
  bad.acknowledging_replicas = 17;
  try {
    make_redis_location_store(bad);
    FAIL("taken");
  } catch (const configuration_error& wrong) {
    CHECK(wrong.mistakes().size() == 5);
  }
  CHECK_THROWS_AS(make_redis_relocation_store(bad), configuration_error);
  for (const auto& prefix :
       {std::string{}, std::string{"a b"}, std::string{"a\n"}, std::string{"\xff"}, std::string(257, 'p')}) {
    redis_options one;
    one.url = "redis://localhost";
    one.key_prefix = prefix;
    CHECK_THROWS_AS(make_redis_location_store(one), configuration_error);
  }
  redis_options tls;
  tls.url = "rediss://localhost?ca=/nowhere/ca.pem";
  tls.key_prefix = "p";
  CHECK_THROWS_WITH_AS(make_redis_location_store(tls), doctest::Contains("/nowhere/ca.pem"), configuration_error);
}
