// The embedded provider: registered for the conformance suite, and what is its own.
#include "adapters/location/embedded_store.hpp"
#include "tests/core/store/manual_clock.hpp"
#include "tests/core/store/store_under_test.hpp"

#include <stdexcept>

using namespace zlink;
using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

store_under_test make_embedded() {
  const auto time = std::make_shared<manual_clock>();
  const embedded_store stores{time};
  store_under_test made;
  made.location = stores.location();
  made.relocation = stores.relocation();
  made.advance = [time](std::chrono::milliseconds by) { time->advance(by); };
  made.shift_host_wall_clock = [time](std::chrono::seconds by) { time->shift_wall(by); };
  made.lose_snapshots = [location = made.location] { crowd_out_snapshots(*location, adapters::embedded_snapshots::live_limit); };
  return made;
}

const provider_registration registered{"embedded", make_embedded};

} // namespace

TEST_CASE("S-148 the embedded store says that only this process sees it") {
  CHECK(make_embedded().location->process_local());
}

TEST_CASE("S-147 a copy of an embedded store is the same data, another one is not") {
  const embedded_store first;
  const auto copy = first;
  const embedded_store second;
  put_one(*first.location(), "k", "v");
  CHECK(read(*copy.location(), "k").found);
  CHECK(!read(*second.location(), "k").found);
  CHECK_THROWS_AS(embedded_store{nullptr}, std::invalid_argument);
}

TEST_CASE("S-149 a completion may use the store again") {
  const auto s = make_embedded();
  bool inner = false;
  s.location->write({{}, {puts("k", "v")}}, [&](auto) {
    s.location->read("k", [&](auto outcome) { inner = outcome && outcome->found.has_value(); });
    s.location->scan("k", "", 1, [&](auto outcome) { inner = inner && outcome->items.size() == 1; });
  });
  CHECK(inner);
  bool blob = false;
  s.relocation->put("ref", "v", 1h, [&](auto) {
    s.relocation->read_blob("ref", [&](auto outcome) { blob = outcome && outcome->has_value(); });
  });
  CHECK(blob);
}

TEST_CASE("S-14 a cursor of another embedded store is Expired") {
  const auto one = make_embedded();
  const auto two = make_embedded();
  for (const auto* s : {&one, &two})
    for (const char* key : {"a", "b", "c"})
      put_one(*s->location, key, "v");
  const auto first = scan(*one.location, "", "", 1);
  const auto second = scan(*two.location, "", "", 1);
  CHECK(scan(*two.location, "", first.next, 1).expired);
  CHECK(scan(*two.location, "", second.next, 1).items.at(0).key == "b");
}

TEST_CASE("S-14 a snapshot that nobody reads on is dropped, so that writers stop paying for it") {
  const auto s = make_embedded();
  for (const char* key : {"a", "b", "c"})
    put_one(*s.location, key, "v");
  const auto first = scan(*s.location, "", "", 1);
  s.advance(adapters::embedded_snapshots::idle_limit);
  put_one(*s.location, "b", "w");
  CHECK(!scan(*s.location, "", first.next, 1).expired);
  s.advance(adapters::embedded_snapshots::idle_limit + 1s);
  put_one(*s.location, "b", "x");
  CHECK(scan(*s.location, "", first.next, 1).expired);
}

TEST_CASE("S-14 a snapshot that would retain too much is dropped") {
  const auto s = make_embedded();
  constexpr int count = 80;
  for (int i = 0; i < count; ++i)
    put_one(*s.location, "k" + std::to_string(i), std::string(1024 * 1024, '1'));
  const auto first = scan(*s.location, "", "", 1);
  for (int i = 0; i < count; ++i)
    write(*s.location, {{}, {deletes("k" + std::to_string(i))}});
  CHECK(scan(*s.location, "", first.next, 1).expired);
}

TEST_CASE("S-8 S-120 what expired leaves memory while the store is used") {
  const auto time = std::make_shared<manual_clock>();
  adapters::embedded_location_store location{time};
  adapters::embedded_relocation_store relocation{time};
  for (int i = 0; i < 1000; ++i) {
    write(location, {{}, {puts("terminal" + std::to_string(i), "v", 5min)}});
    put(relocation, "blob" + std::to_string(i), "v", 5min);
  }
  CHECK(location.size() == 1000);
  time->advance(5min);
  for (int i = 0; i < 250; ++i) {
    put_one(location, "k", "v");
    put(relocation, "one", "v", 1h);
  }
  CHECK(location.size() == 1);
  CHECK(relocation.size() == 1);
}

TEST_CASE("S-14 S-149 many keys grow and shrink and stay in order") {
  const auto s = make_embedded();
  constexpr int count = 20'000;
  for (int i = 0; i < count; ++i)
    put_one(*s.location, "k" + std::to_string(i * 7919 % count), "v");
  for (int i = 0; i < count; i += 2)
    write(*s.location, {{}, {deletes("k" + std::to_string(i))}});
  std::string last;
  int seen = 0;
  for (auto page = scan(*s.location, "k", "", 1000);; page = scan(*s.location, "k", page.next, 1000)) {
    for (const auto& item : page.items) {
      CHECK(last < item.key);
      last = item.key;
      ++seen;
    }
    if (page.next.empty())
      break;
  }
  CHECK(seen == count / 2);
  for (int i = 0; i < count; ++i)
    CHECK(read(*s.location, "k" + std::to_string(i)).found.has_value() == (i % 2 == 1));
}
