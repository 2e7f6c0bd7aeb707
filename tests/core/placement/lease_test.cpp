// Lease settings, deadline and batches; generations.
#include "tests/core/placement/world.hpp"
#include "zlink/placement/generations.hpp"

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

constexpr store_time store_now{std::chrono::hours{1000}};
constexpr steady_time t0{std::chrono::hours{1}};

} // namespace

TEST_CASE("S-34 the defaults fit, and the relation and the signs are checked") {
  CHECK(!find_mistake({}));
  CHECK(find_mistake({7s, 15s, 3s, 5s}));
  CHECK(find_mistake({6'999ms, 15s, 3s, 5s}) == std::nullopt);
  CHECK(find_mistake({5s, 15s, 5s, 5s})); // 5 + 5 < 10 is false
  CHECK(!find_mistake({5s, 15s, 4'999ms, 5s}));
  CHECK(find_mistake({1s, 15s, 6s, 5s})); // the timeout counts when it is the longer one
  CHECK(find_mistake({0s, 15s, 3s, 5s}));
  CHECK(find_mistake({5s, 0s, 3s, 5s}));
  CHECK(find_mistake({5s, 15s, -1s, 5s}));
  CHECK(find_mistake({5s, 15s, 3s, 0s}));
  CHECK(find_mistake({std::chrono::milliseconds::max(), 15s, std::chrono::milliseconds::max(), 5s}));
}

TEST_CASE("S-38 the deadline counts from before the request, so a slow answer never moves it") {
  const auto expires = store_now + 15s;
  const auto quick = local_deadline(t0, t0 + 1ms, expires, store_now, 5s);
  const auto slow = local_deadline(t0, t0 + 4s, expires, store_now, 5s);
  REQUIRE(quick);
  CHECK(*quick == t0 + 10s);
  CHECK(slow == quick);
  CHECK(!local_deadline(t0, t0 + 10s, expires, store_now, 5s));
  CHECK(!local_deadline(t0, t0, store_now, store_now, 5s));
  CHECK(!local_deadline(t0, t0, store_now + 5s, store_now, 5s));
  CHECK(!local_deadline(t0, t0, store_now - 1h, store_now, 5s));
  CHECK(local_deadline(t0, t0, store_time::max(), store_time{}, 5s));
}

TEST_CASE("S-38 S-42 the host admits until its deadline, which only a later answer extends") {
  lease_deadline deadline{5s};
  CHECK(!deadline.admits(t0));
  CHECK(!deadline.value());
  CHECK(deadline.confirm(t0, t0 + 1s, store_now + 15s, store_now));
  CHECK(deadline.admits(t0 + 10s - 1ns));
  CHECK(!deadline.admits(t0 + 10s));
  CHECK(deadline.value() == t0 + 10s);
  CHECK(deadline.confirm(t0 + 5s, t0 + 6s, store_now + 20s, store_now + 5s));
  CHECK(deadline.value() == t0 + 15s);
  CHECK(!deadline.confirm(t0 + 4s, t0 + 7s, store_now + 15s, store_now + 1s));  // overtaken
  CHECK(!deadline.confirm(t0 + 6s, t0 + 30s, store_now + 21s, store_now + 6s)); // late
  CHECK(deadline.value() == t0 + 15s);
  deadline.lose();
  CHECK(!deadline.admits(t0 + 6s));
  CHECK(deadline.confirm(t0 + 6s, t0 + 7s, store_now + 15s, store_now));
  CHECK(deadline.admits(t0 + 8s));
}

TEST_CASE("S-36 S-31 a lease is claimed together with its number, and only while it is absent or expired") {
  world w;
  const auto owner = w.random.next_id();
  const auto counter = [&] { return w.see<counter_record>(counter_key(sequence::lease)); };
  const auto first = claim_lease(owner, counter(), 15s, true);
  REQUIRE(first);
  CHECK(first->token.lease.value == 1);
  CHECK(zlink::test::write(w.store(), first->batch).applied);
  CHECK(counter().record->next == 2);
  const auto second = claim_lease(owner, counter(), 15s, true);
  CHECK(!zlink::test::write(w.store(), second->batch).applied);
  CHECK(counter().record->next == 2);
  w.time->advance(15s);
  CHECK(zlink::test::write(w.store(), second->batch).applied);
  const auto seen = w.see<lease_record>(lease_key(owner));
  CHECK(seen.record->token == second->token);
  CHECK(seen.expires_at);
  const auto other_host = claim_lease(w.random.next_id(), observed<counter_record>{}, 15s, true);
  CHECK(!zlink::test::write(w.store(), other_host->batch).applied); // its counter was read before ours was written
}

TEST_CASE("S-37 renewing keeps bytes and generation, changes version and expiry, and fails for a lost lease") {
  world w;
  const auto claim = claim_lease(w.random.next_id(), {}, 15s, true);
  zlink::test::write(w.store(), claim->batch);
  const auto key = lease_key(claim->token.owner);
  const auto before = zlink::test::read(w.store(), key);
  w.time->advance(5s);
  CHECK(zlink::test::write(w.store(), renew_lease(claim->token, 15s)).applied);
  const auto after = zlink::test::read(w.store(), key);
  CHECK(after.found->bytes == before.found->bytes);
  CHECK(after.found->version != before.found->version);
  CHECK(*after.found->expires_at == *before.found->expires_at + 5s);
  w.time->advance(15s);
  CHECK(!zlink::test::write(w.store(), renew_lease(claim->token, 15s)).applied);
  const auto again = claim_lease(claim->token.owner, w.see<counter_record>(counter_key(sequence::lease)), 15s, true);
  CHECK(zlink::test::write(w.store(), again->batch).applied);
  CHECK(!zlink::test::write(w.store(), release_lease(claim->token)).applied);
  CHECK(zlink::test::write(w.store(), release_lease(again->token)).applied);
  CHECK(!zlink::test::read(w.store(), key).found);
}

TEST_CASE("S-51 S-52 a lease counts if owner, generation and expiry are right; without expiry it is corrupt") {
  world w;
  const owner_token token{w.random.next_id(), detail::lease_generation{4}};
  observed_lease seen;
  seen.now = store_now;
  CHECK(judge_lease(seen, token) == lease_health::over);
  seen.record = lease_record{token};
  seen.expires_at = store_now + 1us;
  CHECK(judge_lease(seen, token) == lease_health::live);
  CHECK(judge_lease(seen, {token.owner, detail::lease_generation{5}}) == lease_health::over);
  seen.now = store_now + 1us;
  CHECK(judge_lease(seen, token) == lease_health::over);
  seen.expires_at.reset();
  CHECK(judge_lease(seen, token) == lease_health::corrupt);
  CHECK(judge_lease(seen, {token.owner, detail::lease_generation{5}}) == lease_health::corrupt);
}

TEST_CASE("S-30 a counter ends at 2^63-1 for good and never gives that number out") {
  observed<counter_record> seen;
  seen.record = counter_record{generation_limit - 3};
  seen.version = "v";
  const auto last = advance_counter(sequence::object, seen, 1000, true);
  REQUIRE(last);
  CHECK(last->first == generation_limit - 3);
  CHECK(last->count == 3); // up to 2^63-2
  CHECK(last->mutation.put == encode(counter_record{generation_limit}));
  seen.record = counter_record{generation_limit};
  CHECK(!advance_counter(sequence::object, seen, 1, true));
}

TEST_CASE("S-32 a missing counter starts at 1 in this process, at the store's time elsewhere") {
  observed<counter_record> missing;
  missing.now = store_time{1'700'000'000'000'000us};
  CHECK(advance_counter(sequence::object, missing, 10, true)->first == 1);
  const auto networked = advance_counter(sequence::object, missing, 10, false);
  CHECK(networked->first == 1'700'000'000'000'000);
  CHECK(networked->condition.what == store_condition::test::missing);
  missing.now = {};
  CHECK(advance_counter(sequence::object, missing, 10, false)->first == 1);
}

TEST_CASE("S-29 generations of different sequences are different types") {
  CHECK(!std::is_convertible_v<detail::object_generation, detail::authority_generation>);
  CHECK(!std::is_convertible_v<detail::lease_generation, detail::object_generation>);
  CHECK(!std::is_convertible_v<detail::lifecycle_generation, detail::attempt_generation>);
  CHECK(!std::is_convertible_v<std::uint64_t, detail::object_generation>);
}
