// The keeper of the host's lease: start, lost and late answers, renewals.
#include "tests/core/placement/keeper_host.hpp"

#include <algorithm>
#include <stdexcept>

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

using events = std::vector<std::string>;

/// The source of a host that draws an id which exists already.
class one_value final : public random_source {
public:
  explicit one_value(std::uint64_t value) : value_(value) {}
  std::uint64_t next() override { return value_; }

private:
  std::uint64_t value_;
};

std::uint64_t next_lease_number(shared_world& w) {
  return w.see<counter_record>(counter_key(sequence::lease)).record.value_or(counter_record{1}).next;
}

} // namespace

// -- start -------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-34 a keeper is not made with settings that do not fit") {
  shared_world w;
  CHECK_THROWS_AS(keeper_host(w, {7s, 15s, 3s, 5s}), std::invalid_argument);
  CHECK_NOTHROW(keeper_host(w, {5s, 15s, 3s, 5s}));
}

TEST_CASE("S-35 S-36 a claim writes lease and counter in one batch, each host run its own token") {
  shared_world w;
  keeper_host a{w}, b{w};
  CHECK(!a.owner->held());
  CHECK(a.start() == ownership_start::held);
  CHECK(a.writes() == 1);
  CHECK(a.owner->held());
  const auto seen = w.see<lease_record>(a.lease());
  CHECK(seen.record == lease_record{a.token()});
  CHECK(seen.expires_at == seen.now + 15s);
  CHECK(next_lease_number(w) == a.token().lease.value + 1);
  CHECK(a.log == events{"deadline"});
  CHECK(b.start() == ownership_start::held);
  CHECK(b.token().owner != a.token().owner);
  CHECK(b.token().lease > a.token().lease);
}

TEST_CASE("S-36 an owner id that has a lease is a start error, and nothing is written") {
  shared_world w;
  one_value source{42};
  w.put(lease_key({42, 42}), encode(lease_record{{{42, 42}, detail::lease_generation{9}}}));
  keeper_host a{w};
  ownership second{a.infra, a.records, {}, source, {}};
  const auto end = a.run([&] { return second.start(); });
  CHECK(end.what == ownership_start::failed);
  CHECK(!end.mistake.empty());
  CHECK(a.writes() == 0);
  CHECK(!second.token());
}

TEST_CASE("S-36 S-30 an exhausted counter is a start error and stays as it is") {
  shared_world w;
  w.put(counter_key(sequence::lease), encode(counter_record{generation_limit}));
  keeper_host a{w};
  CHECK(a.start() == ownership_start::failed);
  CHECK(a.writes() == 0);
  CHECK(next_lease_number(w) == generation_limit);
}

TEST_CASE("S-21 an epoch or counter record of another structure version is a start error, and nothing is written") {
  for (const auto& key : {epoch_key(), counter_key(sequence::lease)}) {
    shared_world w;
    auto bytes = key == epoch_key() ? encode(epoch_record{{1, 2}}) : encode(counter_record{5});
    bytes[1] = static_cast<char>(record_version + 1);
    w.put(key, bytes);
    keeper_host a{w};
    CHECK(a.start() == ownership_start::failed);
    CHECK(a.writes() == 0);
  }
}

TEST_CASE("S-36 hosts that start together all get their lease, although they contend for the counter") {
  shared_world w;
  std::vector<std::unique_ptr<keeper_host>> hosts;
  std::vector<std::optional<result<ownership_start_result>>> ends(12);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    hosts.push_back(std::make_unique<keeper_host>(w));
    auto& host = *hosts.back();
    host.begin([&host] { return host.owner->start(); }, ends[i]);
  }
  w.executor.run_for(3s);
  std::vector<detail::lease_generation> numbers;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    REQUIRE(ends[i]);
    CHECK((*ends[i])->what == ownership_start::held);
    numbers.push_back(hosts[i]->token().lease);
  }
  std::sort(numbers.begin(), numbers.end());
  CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
}

TEST_CASE("S-43 a start without store ends blocked after the renew timeout and is retried every interval") {
  shared_world w;
  keeper_host a{w};
  a.lose_store();
  const auto began = w.now();
  CHECK(a.start() == ownership_start::blocked);
  CHECK(w.now() - began == 3s);
  CHECK(!a.owner->held());
  CHECK(!a.owner->token());
  CHECK(a.log.empty());
  w.executor.run_for(4s); // 7 s: in the middle of the second attempt
  a.recover();
  w.executor.run_for(200ms);
  CHECK(a.log == events{"regained", "deadline"});
  CHECK(a.owner->held());
  w.executor.run_for(60s);
  CHECK(a.log.size() > 10); // it goes on renewing
  CHECK(std::count(a.log.begin(), a.log.end(), "regained") == 1);
}

TEST_CASE("S-43 between two attempts a blocked host asks nothing; after the interval it does") {
  shared_world w;
  keeper_host a{w};
  a.lose_store();
  REQUIRE(a.start() == ownership_start::blocked);
  a.recover();
  a.faults->clear_log();
  w.executor.run_for(1'900ms); // 4.9 s after the first claim began
  CHECK(a.faults->log().empty());
  w.executor.run_for(200ms);
  CHECK(a.owner->held());
}

TEST_CASE("S-43 S-36 a conflict that is met only after a blocked start is reported, and the keeper ends") {
  shared_world w;
  keeper_host a{w};
  a.lose_store();
  REQUIRE(a.start() == ownership_start::blocked);
  a.recover();
  w.put(counter_key(sequence::lease), encode(counter_record{generation_limit}));
  w.executor.run_for(60s);
  REQUIRE(a.log.size() == 1);
  CHECK(a.log[0].starts_with("failed: "));
  CHECK(!a.owner->held());
}

// -- lost and late answers ------------------------------------------------------------------------------------------------------

TEST_CASE(
  "S-156 S-43 a claim whose answer is lost is found by reading, inside the renew timeout and without a second one") {
  shared_world w;
  keeper_host a{w};
  a.faults->once(store_operation::write, a.lease(), store_fault::lose_reply);
  const auto began = w.now();
  CHECK(a.start() == ownership_start::held);
  CHECK(w.now() - began < 3s);
  CHECK(a.writes() == 1);
  CHECK(next_lease_number(w) == a.token().lease.value + 1);
  CHECK(w.see<lease_record>(a.lease()).record == lease_record{a.token()});
}

TEST_CASE("S-156 a claim that vanished is sent again") {
  shared_world w;
  keeper_host a{w};
  a.faults->once(store_operation::write, a.lease(), store_fault::vanish);
  CHECK(a.start() == ownership_start::held);
  CHECK(a.writes() == 2);
}

TEST_CASE(
  "S-156 S-43 a claim that comes through after the start timed out is adopted, whatever number others took since") {
  shared_world w;
  keeper_host a{w};
  a.faults->once(store_operation::write, a.lease(), store_fault::hold_call);
  REQUIRE(a.start() == ownership_start::blocked);
  a.faults->release_all(); // applied now, nobody waits for the answer
  keeper_host b{w};
  b.started();
  w.executor.run_for(3s);
  CHECK(a.owner->held());
  CHECK(a.writes() == 1);
  CHECK(w.see<lease_record>(a.lease()).record == lease_record{a.token()});
  CHECK(a.token().lease < b.token().lease);
}

TEST_CASE("S-156 S-159 a claim that comes through after it was repeated changes nothing") {
  shared_world w;
  keeper_host a{w};
  a.faults->once(store_operation::write, a.lease(), store_fault::late);
  REQUIRE(a.start() == ownership_start::held);
  CHECK(a.writes() == 2);
  const auto before = w.see<lease_record>(a.lease());
  a.faults->release_all();
  w.executor.run();
  CHECK(w.see<lease_record>(a.lease()).version == before.version);
  CHECK(next_lease_number(w) == a.token().lease.value + 1);
  CHECK(a.log == events{"deadline"});
}

TEST_CASE("S-43 S-156 reads that fail during the claim are repeated inside the renew timeout") {
  for (const auto& key : {epoch_key(), counter_key(sequence::lease)}) {
    shared_world w;
    keeper_host a{w};
    a.faults->once(store_operation::read, key, store_fault::vanish);
    a.faults->once(store_operation::read, a.lease(), store_fault::refuse);
    CHECK(a.start() == ownership_start::held);
    CHECK(a.writes() == 1);
  }
}

TEST_CASE("S-156 S-45 a renewal whose answer is lost is found by reading and counts") {
  shared_world w;
  keeper_host a{w};
  a.started();
  const auto first = *a.deadline;
  a.faults->once(store_operation::write, a.lease(), store_fault::lose_reply);
  w.executor.run_for(6s);
  CHECK(a.faults->script_done());
  CHECK(a.writes() == 2);
  CHECK(*a.deadline > first);
  CHECK(*a.deadline <= w.now() + 10s);
}

TEST_CASE("S-156 a renewal that vanished is sent again inside its timeout") {
  shared_world w;
  keeper_host a{w};
  a.started();
  a.faults->once(store_operation::write, a.lease(), store_fault::vanish);
  w.executor.run_for(6s);
  CHECK(a.writes() == 3);
  const auto seen = w.see<lease_record>(a.lease());
  CHECK(*seen.expires_at > seen.now + 13s);
}

// -- renewing -------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-37 renewals start one interval after each other, with the same bytes under a new version") {
  shared_world w;
  keeper_host a{w};
  a.started();
  const auto before = w.see<lease_record>(a.lease());
  a.faults->clear_log();
  w.executor.run_for(4'999ms);
  CHECK(a.writes() == 0);
  w.executor.run_for(1ms);
  CHECK(a.writes() == 1);
  const auto after = w.see<lease_record>(a.lease());
  CHECK(after.version != before.version);
  CHECK(after.record == before.record);
  CHECK(*after.expires_at == *before.expires_at + 5s);
  w.executor.run_for(50s);
  CHECK(a.writes() == 11);
  CHECK(next_lease_number(w) == a.token().lease.value + 1);
}

TEST_CASE("S-37 a slow renewal does not shift the next one, one that outlasts the interval is followed at once") {
  shared_world w;
  keeper_host a{w, {1s, 15s, 3s, 5s}};
  a.started();
  a.faults->clear_log();
  a.faults->once(store_operation::write, a.lease(), store_fault::hold_call);
  w.executor.run_for(1'500ms); // begun at 1 s
  CHECK(a.writes() == 1);
  a.faults->release_all();
  w.executor.run_for(600ms); // the next one at 2 s
  CHECK(a.writes() == 2);
  a.faults->once(store_operation::write, a.lease(), store_fault::hold_call);
  w.executor.run_for(3'800ms); // 5.9 s: held from 3 s on
  CHECK(a.writes() == 3);
  w.executor.run_for(200ms); // given up at 6 s, the next one at once
  CHECK(a.writes() == 4);
}

TEST_CASE("S-38 an answer that takes long gives no later deadline than one that comes at once") {
  shared_world w;
  keeper_host quick{w}, slow{w};
  quick.started();
  slow.faults->once(store_operation::write, slow.lease(), store_fault::hold_reply);
  std::optional<result<ownership_start_result>> end;
  const auto sent = w.now();
  slow.begin([&] { return slow.owner->start(); }, end);
  w.executor.run_for(2s);
  slow.faults->release_all();
  w.executor.run();
  REQUIRE(end);
  CHECK(slow.owner->held());
  CHECK(*slow.deadline == sent + 10s);
  CHECK(*slow.deadline == *quick.deadline);
  CHECK(slow.owner->deadline().value() == slow.deadline);
}

TEST_CASE("S-38 S-159 an answer after the renew timeout gives no deadline and starts nothing") {
  shared_world w;
  keeper_host a{w};
  a.started();
  a.faults->set_rule([&](const store_call& call) {
    return call.what == store_operation::write ? store_fault::hold_reply : store_fault::none;
  });
  const auto before = *a.deadline;
  w.executor.run_for(9s); // held at 5 s, given up at 8 s
  const auto calls = a.faults->log().size();
  a.faults->release_all();
  w.executor.run();
  CHECK(*a.deadline == before);
  CHECK(a.faults->log().size() == calls);
  CHECK(a.log == events{"deadline"});
}

TEST_CASE("S-40 without renewal admission ends at the deadline, with the token still the same") {
  shared_world w;
  keeper_host a{w};
  a.started();
  const auto token = a.token();
  a.lose_store();
  w.executor.run_for(9'999ms);
  CHECK(a.owner->held());
  w.executor.run_for(1ms);
  CHECK(!a.owner->held());
  w.executor.run_for(3s); // 13 s: the lease runs until 15 s
  a.recover();
  w.executor.run_for(1'900ms);
  CHECK(!a.owner->held()); // the renewal of 10 s was given up at 13 s, the next is due at 15 s
  CHECK(a.token() == token);
}

TEST_CASE("S-45 the store answers again before the record expired: the same token goes on") {
  shared_world w;
  keeper_host a{w};
  a.started();
  const auto token = a.token();
  w.executor.run_for(1s);
  a.lose_store();
  w.executor.run_for(8s); // the renewal of 5 s fails until 8 s
  a.recover();
  w.executor.run_for(1'100ms); // that of 10 s comes through
  CHECK(a.owner->held());
  CHECK(a.token() == token);
  CHECK(!a.lost);
  CHECK(*a.deadline == w.now() - 100ms + 10s);
}

TEST_CASE("S-15 S-39 the wall clock of the host has no part in any of it") {
  shared_world w;
  keeper_host a{w};
  a.started();
  w.time->shift_wall(3600s);
  w.executor.run_for(20s);
  w.time->shift_wall(-7200s);
  w.executor.run_for(20s);
  CHECK(a.owner->held());
  CHECK(!a.lost);
}
