// What becomes of requests when replies, refusals, deadlines and breaks come: no server needed.
#include "adapters/location/redis_pipeline.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace zlink;
using namespace zlink::adapters;
using namespace std::chrono_literals;

namespace {

const redis_script& script() {
  static const redis_script one{"return 1"};
  return one;
}

steady_time at(std::chrono::milliseconds when) { return steady_time{when}; }

redis_reply reply_of(const std::string& wire) {
  redis_reader reader;
  reader.feed(wire.data(), wire.size());
  return reader.next();
}

/// A pipeline, the bytes that went out, and how each request ended, by name.
struct rig {
  explicit rig(redis_pipeline::limits most = {}) : pipeline(most) {}

  void ask(std::string name, bool changes, std::chrono::milliseconds deadline = 1h) {
    redis_arguments arguments{"{p}:m"};
    arguments.add(name);
    pipeline.add({&script(), std::move(arguments), changes,
                  [this, name](redis_answer answer) {
                    ends.push_back(name
                                   + (answer                                                  ? " answered"
                                      : answer.failure().what == store_failure_class::unclear ? " unclear"
                                                                                              : " not applied"));
                  },
                  at(deadline)});
  }
  void send() {
    const auto before = out.size();
    pipeline.fill(out, out.size() + 100'000, out.size());
    sizes.push_back(out.size() - before);
  }
  using texts = std::vector<std::string>;

  redis_pipeline pipeline;
  std::string out;
  std::vector<std::size_t> sizes;
  texts ends;
};

using texts = rig::texts;

} // namespace

TEST_CASE("S-157 S-139 a broken connection: sent changes are unclear, everything else is sent again") {
  rig r;
  r.ask("one", true);
  r.ask("look", false);
  r.send();
  const auto whole = r.out.size();
  r.ask("two", true);
  r.ask("six", true);
  r.send();
  SUBCASE("not a byte of the second change went out") {
    r.pipeline.broken(whole, "gone");
    CHECK(r.ends == texts{"one unclear"});
  }
  SUBCASE("the second change went out but for its last byte") {
    r.pipeline.broken(whole + (r.out.size() - whole) / 2 - 1, "gone");
    CHECK(r.ends == texts{"one unclear"});
  }
  SUBCASE("all went out") {
    r.pipeline.broken(r.out.size(), "gone");
    CHECK(r.ends == texts{"one unclear", "two unclear", "six unclear"});
  }
  const auto lost = r.ends.size();
  r.send();
  for (std::size_t i = lost; i < 4; ++i)
    r.pipeline.answered(reply_of(":1\r\n"));
  CHECK(r.ends.size() == 4);
  CHECK(r.ends[lost] == "look answered");
  CHECK(r.pipeline.size() == 0);
  CHECK(r.pipeline.bytes() == 0);
}

TEST_CASE(
  "S-137 S-159 at its deadline a sent change is unclear, a waiting one not applied, and a late reply is dropped") {
  redis_pipeline::limits one_at_a_time;
  one_at_a_time.in_flight = 1;
  rig r{one_at_a_time};
  r.ask("sent", true, 10ms);
  r.ask("waits", true, 20ms);
  r.ask("later", true, 30ms);
  r.send();
  CHECK(r.pipeline.next_deadline() == at(10ms));
  r.pipeline.expire(at(9ms), "");
  CHECK(r.ends.empty());
  r.pipeline.expire(at(20ms), "");
  CHECK(r.ends == texts{"sent unclear", "waits not applied"});
  CHECK(r.pipeline.next_deadline() == at(30ms));
  r.send();
  CHECK(r.sizes.back() == 0); // the first still has its place
  r.pipeline.answered(reply_of(":1\r\n"));
  CHECK(r.ends.size() == 2);
  r.send();
  r.pipeline.answered(reply_of(":1\r\n"));
  CHECK(r.ends.back() == "later answered");
}

TEST_CASE("S-132 a script that is unknown is sent as a whole, once") {
  rig r;
  r.ask("one", true);
  r.ask("two", true);
  r.send();
  CHECK(r.out.find("return 1") == std::string::npos);
  r.pipeline.answered(reply_of("-NOSCRIPT No matching script.\r\n"));
  r.pipeline.answered(reply_of("-NOSCRIPT No matching script.\r\n"));
  CHECK(r.ends.empty());
  r.send();
  CHECK(r.out.find("$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n$5\r\n{p}:m\r\n$3\r\none\r\n") != std::string::npos);
  r.pipeline.answered(reply_of(":1\r\n"));
  r.pipeline.answered(reply_of("-NOSCRIPT No matching script.\r\n"));
  CHECK(r.ends == texts{"one answered", "two not applied"});
}

TEST_CASE("S-157 an array longer than any answer breaks the connection before memory is asked for") {
  for (const auto* wire : {"*2147483647\r\n", "*99999999999\r\n", "*65537\r\n"}) {
    redis_reader reader;
    reader.feed(wire, std::string_view{wire}.size());
    CHECK(reader.next() == nullptr);
    CHECK(reader.broken());
  }
  redis_reader reader;
  reader.feed("*65536\r\n:1\r\n", 12);
  CHECK(reader.next() == nullptr);
  CHECK_FALSE(reader.broken());
}

TEST_CASE("S-15 a time that no server can mean is nonsense") {
  for (const std::int64_t number : {std::int64_t{0}, std::int64_t{1'790'000'000'000'000}, latest_instant})
    CHECK(is_instant(number));
  for (const std::int64_t number : {std::int64_t{-1}, latest_instant + 1, std::numeric_limits<std::int64_t>::max()})
    CHECK_FALSE(is_instant(number));
  CHECK_FALSE(is_instant(*reply_of(":9223372036854775807\r\n")));
  CHECK_FALSE(is_instant(*reply_of("$1\r\n1\r\n")));
}

TEST_CASE("S-157 what an error reply means for a change") {
  const auto end_with = [](const std::string& error) {
    rig r;
    r.ask("change", true);
    r.send();
    const auto sequel = r.pipeline.answered(reply_of("-" + error + "\r\n"));
    return (r.ends.empty() ? std::string{"waits"} : r.ends[0])
           + (sequel == redis_pipeline::sequel::leave ? ", leave" : "");
  };
  CHECK(end_with("OOM command not allowed when used memory > 'maxmemory'.") == "change not applied");
  CHECK(end_with("MISCONF Redis is configured to save RDB snapshots") == "change not applied");
  CHECK(end_with("NOREPLICAS Not enough good replicas to write.") == "change not applied");
  CHECK(end_with("BUSY Redis is busy running a script.") == "change not applied");
  CHECK(end_with("CLUSTERDOWN The cluster is down") == "change not applied");
  CHECK(end_with("ERR Error running script (call to f_1): @user_script:12: -OOM command not allowed")
        == "change not applied");
  CHECK(end_with("ERR something nobody knows") == "change unclear");
  CHECK(end_with("WRONGTYPE Operation against a key holding the wrong kind of value") == "change unclear");
  CHECK(end_with("READONLY You can't write against a read only replica.") == "waits, leave");
  CHECK(end_with("LOADING Redis is loading the dataset in memory") == "waits, leave");
  CHECK(end_with("MOVED 3999 127.0.0.1:6381") == "waits, leave");
}

TEST_CASE("S-131 where the server of a cluster points to") {
  const auto there = parse_redirection("MOVED 3999 127.0.0.1:6381");
  REQUIRE(there);
  CHECK(there->host == "127.0.0.1");
  CHECK(there->port == 6381);
  CHECK(parse_redirection("MOVED 1 ::1:7000")->host == "::1");
  CHECK(parse_redirection("MOVED 1 :7000")->host.empty());
  CHECK(!parse_redirection("MOVED"));
  CHECK(!parse_redirection("MOVED 1 host:none"));
  CHECK(!parse_redirection("ERR MOVED 1 host:1"));
}

TEST_CASE("S-17 what is told of an error names no key") {
  for (const char* error :
       {"WRONGTYPE Operation on secret-key", "ERR Error running script: @user_script: 3: secret-key",
        "NOPERM this user has no permissions to access the 'secret-key' key"})
    CHECK(explain_refusal(error).find("secret-key") == std::string::npos);
}

TEST_CASE("S-138 no more than so many requests and bytes are under way, but one of any size always is") {
  redis_pipeline::limits few;
  few.in_flight = 3;
  few.in_flight_bytes = 100;
  rig r{few};
  for (int i = 0; i < 5; ++i)
    r.ask("n" + std::to_string(i), true);
  r.send();
  r.pipeline.answered(reply_of(":1\r\n"));
  r.pipeline.answered(reply_of(":1\r\n"));
  r.pipeline.answered(reply_of(":1\r\n"));
  CHECK(!r.pipeline.has_in_flight());
  CHECK(r.ends.size() == 3);
  r.send();
  r.ask(std::string(1000, 'x'), true);
  r.send();
  r.pipeline.answered(reply_of(":1\r\n"));
  r.pipeline.answered(reply_of(":1\r\n"));
  CHECK(!r.pipeline.has_in_flight());
  r.send();
  CHECK(r.pipeline.has_in_flight());
  r.pipeline.answered(reply_of(":1\r\n"));
  CHECK(r.pipeline.size() == 0);
}

TEST_CASE("S-143 a change that too few replicas acknowledge is unclear") {
  redis_pipeline::limits two;
  two.acknowledging_replicas = 2;
  rig r{two};
  r.ask("kept", true);
  r.ask("risky", true);
  r.ask("look", false);
  r.send();
  CHECK(r.out.find("WAIT") != std::string::npos);
  for (const char* wire : {":1\r\n", ":2\r\n", ":1\r\n", ":1\r\n", ":1\r\n"})
    r.pipeline.answered(reply_of(wire));
  CHECK(r.ends == texts{"kept answered", "risky unclear", "look answered"});
}

TEST_CASE("S-119 closing ends everything once") {
  rig r;
  r.ask("sent", true);
  r.ask("look", false);
  r.send();
  r.ask("waits", true);
  r.pipeline.close("closed");
  CHECK(r.ends == texts{"sent unclear", "look not applied", "waits not applied"});
  CHECK(r.pipeline.size() == 0);
  CHECK(r.pipeline.bytes() == 0);
}
