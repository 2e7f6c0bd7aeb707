// The fault injection that other tests rely on does what it says.
#include "tests/sim/faulty_store.hpp"

#include "tests/core/store/manual_clock.hpp"
#include "tests/core/store/store_under_test.hpp"

#include <string>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

struct fixture {
  embedded_store real{std::make_shared<manual_clock>()};
  std::shared_ptr<store_faults> faults = std::make_shared<store_faults>();
  faulty_location_store location{real.location(), faults};
  faulty_relocation_store relocation{real.relocation(), faults};

  /// How a put of "k" ended: "applied", "conflict", "not applied", "unclear", or "" while there is no answer.
  std::string put_k(std::shared_ptr<std::string> answer = std::make_shared<std::string>()) {
    location.write({{}, {puts("k", "v")}}, [answer](store_outcome<store_write_result> outcome) {
      if (outcome)
        *answer = outcome->applied ? "applied" : "conflict";
      else
        *answer = outcome.failure().what == store_failure_class::unclear ? "unclear" : "not applied";
    });
    return *answer;
  }
  bool has_k() { return test::read(*real.location(), "k").found.has_value(); }
};

} // namespace

TEST_CASE("faults that answer at once: with or without effect, certain or unclear") {
  struct row {
    store_fault fault;
    const char* answer;
    bool effect;
  };
  for (const auto& [fault, answer, effect] :
       {row{store_fault::none, "applied", true}, row{store_fault::conflict, "conflict", false},
        row{store_fault::refuse, "not applied", false}, row{store_fault::vanish, "unclear", false},
        row{store_fault::lose_reply, "unclear", true}}) {
    fixture f;
    f.faults->once(store_operation::write, "k", fault);
    CHECK(f.put_k() == answer);
    CHECK(f.has_k() == effect);
    CHECK(f.faults->script_done());
  }
}

TEST_CASE("held calls and answers wait for release, in order") {
  fixture f;
  const auto held_call = std::make_shared<std::string>();
  const auto held_reply = std::make_shared<std::string>();
  f.faults->once(store_operation::write, "k", store_fault::hold_call);
  CHECK(f.put_k(held_call).empty());
  CHECK(!f.has_k());
  f.faults->release();
  CHECK(*held_call == "applied");
  CHECK(f.has_k());

  test::write(*f.real.location(), {{}, {deletes("k")}});
  f.faults->once(store_operation::write, "k", store_fault::hold_reply);
  CHECK(f.put_k(held_reply).empty());
  CHECK(f.has_k());
  f.faults->release_all();
  CHECK(*held_reply == "applied");

  test::write(*f.real.location(), {{}, {deletes("k")}});
  f.faults->once(store_operation::write, "k", store_fault::late);
  CHECK(f.put_k() == "unclear");
  CHECK(!f.has_k());
  CHECK(f.faults->held() == 1);
  f.faults->release();
  CHECK(f.has_k());
}

TEST_CASE("rules see every call, a script comes first, the log counts") {
  fixture f;
  f.faults->set_rule([](const store_call& call) {
    return call.what == store_operation::read && call.touches("x") ? store_fault::vanish : store_fault::none;
  });
  bool failed = false;
  f.location.read("x1", [&](auto outcome) { failed = !outcome; });
  CHECK(failed);
  CHECK(f.put_k() == "applied");
  f.faults->once(store_operation::scan, "", store_fault::conflict);
  bool expired = false;
  f.location.scan("", "", 1, [&](auto outcome) { expired = outcome && outcome->expired; });
  CHECK(expired);
  CHECK(f.faults->count(store_operation::read) == 1);
  CHECK(f.faults->count(store_operation::write) == 1);
  REQUIRE(f.faults->log().size() == 3);
  CHECK(f.faults->log()[0].key == "x1");
  f.faults->clear_log();
  CHECK(f.faults->count(store_operation::write) == 0);
}

TEST_CASE("the relocation store fails in the same ways") {
  fixture f;
  f.faults->once(store_operation::put, "ref", store_fault::lose_reply);
  bool unclear = false;
  f.relocation.put("ref", "v", 1h, [&](auto outcome) { unclear = !outcome; });
  CHECK(unclear);
  CHECK(test::put(f.relocation, "ref", "v", 1h) == blob_put_result::already_stored);
  CHECK(test::renew(f.relocation, "ref", 1h));
  CHECK(test::read_blob(f.relocation, "ref")->bytes == "v");
  f.faults->once(store_operation::erase, "ref", store_fault::refuse);
  bool refused = false;
  f.relocation.erase("ref", [&](auto outcome) { refused = !outcome; });
  CHECK(refused);
  CHECK(test::read_blob(f.relocation, "ref"));
  CHECK(f.faults->count(store_operation::erase) == 1);
}

TEST_CASE("after a lost answer only a read shows the commit") {
  fixture f;
  f.faults->once(store_operation::write, "k", store_fault::lose_reply);
  CHECK(f.put_k() == "unclear");
  CHECK(test::read(f.location, "k").found);
  f.faults->once(store_operation::write, "j", store_fault::vanish);
  bool unclear = false;
  f.location.write({{}, {puts("j", "v")}},
                   [&](auto outcome) { unclear = !outcome && outcome.failure().what == store_failure_class::unclear; });
  CHECK(unclear);
  CHECK(!test::read(f.location, "j").found);
}
