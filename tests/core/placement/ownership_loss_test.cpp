// The keeper of the host's lease: its loss, another data set, its end.
#include "tests/core/placement/keeper_host.hpp"

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

using events = std::vector<std::string>;

/// Emptied 1 s before the next renewal of one host, and 4 s before that of the other.
struct emptied_store {
  shared_world w;
  keeper_host early{w};
  keeper_host late{w};

  emptied_store() {
    early.started();
    w.executor.run_for(3s);
    late.started();
    w.executor.run_for(1s);
    w.wipe();
  }
};

} // namespace

// -- lost and regained -----------------------------------------------------------------------------------------------------------

TEST_CASE("S-44 S-39 a host paused past its lease blocks, reports the loss, and gets a new generation") {
  shared_world w;
  keeper_host a{w};
  a.started();
  const auto token = a.token();
  w.time->advance(20s); // nothing ran meanwhile
  CHECK(!a.owner->held());
  a.log.clear();
  w.executor.run_for(100ms);
  CHECK(a.log == events{"blocked", "lost", "regained", "deadline"});
  CHECK(a.lost == token);
  CHECK(a.token().owner == token.owner);
  CHECK(a.token().lease > token.lease);
  CHECK(a.owner->held());
  CHECK(w.see<lease_record>(a.lease()).record == lease_record{a.token()});
}

TEST_CASE("S-44 a lease that is another's is lost, and what stands there is left alone") {
  shared_world w;
  keeper_host a{w};
  a.started();
  const lease_record other{{a.owner->owner(), detail::lease_generation{1'000}}};
  w.write({{}, {puts(a.lease(), encode(other), 60s)}});
  a.log.clear();
  w.executor.run_for(6s);
  CHECK(a.lost);
  CHECK(!a.owner->held());
  REQUIRE(a.log.size() == 3);
  CHECK(a.log[2].starts_with("failed: "));
  CHECK(w.see<lease_record>(a.lease()).record == other);
}

TEST_CASE("S-44 S-156 a lease that a re-read finds gone is lost, too") {
  shared_world w;
  keeper_host a{w};
  a.started();
  const auto token = a.token();
  w.write({{}, {deletes(a.lease())}});
  a.faults->once(store_operation::write, a.lease(), store_fault::vanish);
  w.executor.run_for(5'500ms);
  CHECK(a.lost == token);
  CHECK(a.owner->held());
  CHECK(a.token().lease > token.lease);
}

TEST_CASE("S-44 S-40 from the loss to the next claim there is no token and no admission") {
  shared_world w;
  keeper_host a{w};
  a.started();
  w.write({{}, {deletes(a.lease())}});
  bool seen_blocked = false;
  a.faults->set_rule([&](const store_call& call) {
    if (call.what == store_operation::read) {
      seen_blocked = !a.owner->token() && !a.owner->held() && !a.owner->deadline().admits(w.now());
      return store_fault::vanish;
    }
    return store_fault::none;
  });
  w.executor.run_for(6s);
  CHECK(seen_blocked);
  a.recover();
  w.executor.run_for(10s);
  CHECK(a.owner->held());
}

// -- epoch -----------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-142 the first host makes the epoch in its claim, others adopt it") {
  shared_world w;
  keeper_host a{w}, b{w};
  a.started();
  const auto epoch = w.see<epoch_record>(epoch_key());
  REQUIRE(epoch.record);
  CHECK(epoch.record->epoch);
  b.started();
  w.executor.run_for(30s);
  CHECK(w.see<epoch_record>(epoch_key()).version == epoch.version);
  CHECK(a.owner->held());
  CHECK(b.owner->held());
}

TEST_CASE("S-142 in an emptied store every host loses its lease, one makes a new epoch, all claim afresh") {
  shared_world w;
  keeper_host a{w}, b{w};
  a.started();
  b.started();
  const auto before = w.see<epoch_record>(epoch_key()).record;
  w.wipe();
  w.executor.run_for(21s);
  const auto after = w.see<epoch_record>(epoch_key()).record;
  REQUIRE(after);
  CHECK(after != before);
  for (auto* host : {&a, &b}) {
    CHECK(host->lost);
    CHECK(host->owner->held());
    CHECK(w.see<lease_record>(host->lease()).record == lease_record{host->token()});
  }
}

TEST_CASE("S-142 S-2 nobody claims anew in an emptied store while another host still admits work for what the former one said") {
  emptied_store at_work;
  auto& [w, early, late] = at_work;
  w.executor.run_for(2s);
  CHECK(early.lost);
  CHECK(late.owner->held()); // it renews later, and does not know yet
  for (auto end = w.now() + 13s; w.now() < end; w.executor.run_for(100ms))
    CHECK(!early.owner->held());
  CHECK(!late.owner->held());
  CHECK(!w.see<epoch_record>(epoch_key()).record);
  w.executor.run_for(6s);
  CHECK(early.owner->held());
  CHECK(late.owner->held());
}

TEST_CASE("S-142 S-2 a data set that came and went while a host waited had owners, too: it waits for them as well") {
  for (int gap = 1; gap <= 30; ++gap) {
    CAPTURE(gap);
    emptied_store at_work;
    // Not a structured binding: the lambda below may not capture one with every compiler.
    auto& w = at_work.w;
    auto& early = at_work.early;
    auto& late = at_work.late;
    w.executor.run_for(15s + gap * 200ms); // `early` claims within that time, `late` a little later
    const auto second = w.see<epoch_record>(epoch_key()).record;
    w.wipe();
    for (int i = 0; i < 200; ++i) {
      w.executor.run_for(100ms);
      const auto epoch = w.see<epoch_record>(epoch_key()).record;
      if (!epoch || epoch == second)
        continue;
      const auto admits_by_another = [&](keeper_host& one) {
        return one.owner->held() && !w.see<lease_record>(one.lease()).record;
      };
      CHECK_FALSE(admits_by_another(early));
      CHECK_FALSE(admits_by_another(late));
    }
    w.executor.run_for(20s);
    CHECK(early.owner->held());
    CHECK(late.owner->held());
  }
}

TEST_CASE("S-142 S-44 in the same data set a lost lease is claimed again at once") {
  shared_world w;
  keeper_host a{w};
  a.started();
  w.write({{}, {deletes(a.lease())}});
  w.executor.run_for(5'500ms);
  CHECK(a.lost);
  CHECK(a.owner->held());
}

TEST_CASE("S-142 a claim is not written into a data set that was replaced since its epoch was read") {
  shared_world w;
  keeper_host a{w};
  bool replaced = false;
  a.faults->set_rule([&](const store_call& call) {
    if (call.what == store_operation::write && !replaced) {
      replaced = true;
      w.put(epoch_key(), encode(epoch_record{{5, 5}}));
    }
    return store_fault::none;
  });
  a.started();
  CHECK(a.writes() == 2);
  w.executor.run_for(30s);
  CHECK(!a.lost);
}

TEST_CASE("S-142 another or no epoch means a lost lease even if the lease record is there") {
  for (const bool gone : {false, true}) {
    shared_world w;
    keeper_host a{w};
    a.started();
    if (gone)
      w.write({{}, {deletes(epoch_key())}});
    else
      w.put(epoch_key(), encode(epoch_record{{5, 5}}));
    w.executor.run_for(5s);
    CHECK(a.lost);
    CHECK(!a.owner->held());
  }
}

// -- the end ---------------------------------------------------------------------------------------------------------------------

TEST_CASE("S-117 S-118 release removes the lease at once and ends admission") {
  shared_world w;
  keeper_host a{w};
  a.started();
  CHECK(a.run([&] { return a.owner->release(w.now() + 5s); }));
  CHECK(!w.see<lease_record>(a.lease()).record);
  CHECK(!a.owner->held());
  CHECK(!a.owner->deadline().admits(w.now()));
  CHECK(a.log.back() == "blocked");
  const auto calls = a.faults->log().size();
  w.executor.run_for(60s);
  CHECK(a.faults->log().size() == calls);
}

TEST_CASE("S-117 S-156 release with a lost answer looks again, and touches no lease of another run") {
  shared_world w;
  keeper_host a{w};
  a.started();
  a.faults->once(store_operation::write, a.lease(), store_fault::lose_reply);
  CHECK(a.run([&] { return a.owner->release(w.now() + 5s); }));
  CHECK(!w.see<lease_record>(a.lease()).record);

  keeper_host b{w};
  b.started();
  const lease_record other{{b.owner->owner(), detail::lease_generation{1'000}}};
  w.write({{}, {puts(b.lease(), encode(other), 60s)}});
  CHECK(b.run([&] { return b.owner->release(w.now() + 5s); }));
  CHECK(w.see<lease_record>(b.lease()).record == other);
}

TEST_CASE("S-117 S-119 release ends in time without store, and the lease expires by itself") {
  shared_world w;
  keeper_host a{w};
  a.started();
  a.lose_store();
  const auto began = w.now();
  CHECK(!a.run([&] { return a.owner->release(w.now() + 2s); }));
  CHECK(w.now() - began == 2s);
  w.time->advance(15s);
  CHECK(!w.see<lease_record>(a.lease()).record);
}

TEST_CASE("S-43 a claim that got through while the start was cancelled is confirmed and released") {
  shared_world w;
  keeper_host a{w};
  a.faults->once(store_operation::write, a.lease(), store_fault::hold_reply);
  std::optional<result<ownership_start_result>> end;
  a.begin([&] { return a.owner->start(); }, end);
  w.executor.run();
  REQUIRE(w.see<lease_record>(a.lease()).record);
  CHECK(a.run([&] { return a.owner->release(w.now() + 5s); }));
  REQUIRE(end);
  CHECK((*end)->what == ownership_start::stopped);
  CHECK(!w.see<lease_record>(a.lease()).record);
}

TEST_CASE("S-119 stop waits for no answer, and nothing happens after it") {
  shared_world w;
  keeper_host a{w};
  a.started();
  a.faults->set_rule([](const store_call&) { return store_fault::hold_call; });
  w.executor.run_for(6s);
  CHECK(a.faults->held() == 1);
  const auto began = w.now();
  a.run([&] { return a.owner->stop(); });
  CHECK(w.now() == began);
  a.recover();
  a.log.clear();
  const auto calls = a.faults->log().size();
  a.faults->release_all();
  w.executor.run_for(60s);
  CHECK(a.log.empty());
  CHECK(a.faults->log().size() == calls);
}
