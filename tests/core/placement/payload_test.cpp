// Payloads in the Relocation Store: one piece or chunks, all of it or nothing.
#include "tests/core/placement/keeper_host.hpp"
#include "zlink/placement/digest.hpp"
#include "zlink/placement/payload_root.hpp"

using namespace zlink;
using namespace zlink::placement;
using namespace zlink::placement::test;

namespace {

constexpr auto day = std::chrono::hours{24};
constexpr auto chunk = relocation_store::chunk_bytes;

struct payloads {
  shared_world w;
  std::shared_ptr<store_faults> faults = std::make_shared<store_faults>();
  std::shared_ptr<relocation_store> real = embedded_store{w.time}.relocation();
  detail::infrastructure infra{w.executor.make_serial("host", w.time), w.time};
  repository records{infra, w.data, std::make_shared<faulty_relocation_store>(real, faults)};

  /// Runs it to its end.
  template <class Make>
  auto run(Make make) {
    using value = typename std::invoke_result_t<Make>::value_type;
    std::optional<value> end;
    infra.post([&] { detail::start_coroutine(make(), [&](result<value> outcome) { end = std::move(*outcome); }); });
    REQUIRE(w.executor.run_until([&] { return end.has_value(); }, 60s));
    return std::move(*end);
  }
  static recovery_root root_of(std::string reference, const std::string& bytes) {
    return {std::move(reference), sha256(bytes), bytes.size(), 0};
  }
  bool store(const recovery_root& what, const std::string& bytes, steady_duration time = 5s) {
    return run([&] { return records.store_payload(what, bytes, day, w.now() + time); });
  }
  payload_outcome load(const recovery_root& what) {
    return run([&] { return records.read_payload(what); });
  }
  bool lost(const recovery_root& what) {
    const auto outcome = load(what);
    const auto* fault = std::get_if<payload_fault>(&outcome);
    return fault && *fault == payload_fault::lost;
  }
  std::size_t puts() const { return faults->count(store_operation::put); }
};

std::string content(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; i += 4096)
    bytes[i] = static_cast<char>(i / 4096 * 7 + 1);
  return bytes;
}

/// Puts other bytes under a reference, as damage would.
void replace(relocation_store& store, const std::string& reference, std::string bytes) {
  erase(store, reference);
  put(store, reference, std::move(bytes), day);
}

} // namespace

TEST_CASE("S-122 S-123 64 MiB are one blob, one byte more is two chunks with a root that is written last") {
  payloads p;
  const auto fits = content(chunk);
  const auto small = p.root_of("small", fits);
  REQUIRE(p.store(small, fits));
  CHECK(p.puts() == 1);
  CHECK(std::get<std::string>(p.load(small)) == fits);
  p.faults->clear_log();
  const auto more = content(chunk + 1);
  const auto large = p.root_of("large", more);
  REQUIRE(p.store(large, more));
  CHECK(p.puts() == 3);
  std::vector<std::string> order;
  for (const auto& call : p.faults->log())
    if (call.what == store_operation::put)
      order.push_back(call.key);
  CHECK(order == std::vector<std::string>{"large/0", "large/1", "large"});
  CHECK(read_blob(*p.real, "large/0")->bytes.size() == chunk);
  CHECK(read_blob(*p.real, "large/1")->bytes.size() == 1);
  const auto root = decode_payload_root(read_blob(*p.real, "large")->bytes);
  REQUIRE(root);
  CHECK(root->size == chunk + 1);
  CHECK(root->digest == sha256(more));
  CHECK(root->chunks.size() == 2);
  CHECK(root->chunks[1].digest == sha256(more.substr(chunk)));
  CHECK(std::get<std::string>(p.load(large)) == more);
  p.records.forget_payload(large);
  for (const char* reference : {"large", "large/0", "large/1"})
    CHECK_FALSE(read_blob(*p.real, reference));
}

TEST_CASE("S-123 a chunk that cannot be stored leaves no root") {
  const auto bytes = content(chunk + 1);
  for (const char* failing : {"big/0", "big/1"}) {
    payloads p;
    p.faults->set_rule([&](const store_call& call) {
      return call.what == store_operation::put && call.key == failing ? store_fault::refuse : store_fault::none;
    });
    const auto what = p.root_of("big", bytes);
    CHECK_FALSE(p.store(what, bytes));
    CHECK_FALSE(read_blob(*p.real, "big"));
    CHECK(p.lost(what));
  }
}

TEST_CASE("S-124 one wrong byte, chunk or index and nothing of the payload is given out") {
  const auto bytes = content(chunk + 100);
  payloads p;
  const auto what = p.root_of("big", bytes);
  REQUIRE(p.store(what, bytes));
  const auto good = read_blob(*p.real, "big/1")->bytes;
  auto bad = good;
  bad[50] ^= 1;
  replace(*p.real, "big/1", bad);
  CHECK(p.lost(what));
  replace(*p.real, "big/1", good.substr(1));
  CHECK(p.lost(what));
  erase(*p.real, "big/1");
  CHECK(p.lost(what));
  replace(*p.real, "big/1", good);
  CHECK(std::get<std::string>(p.load(what)) == bytes);
  auto other = what;
  other.digest[3] ^= 1;
  CHECK(p.lost(other));
  other = what;
  --other.size;
  CHECK(p.lost(other));
  auto index = read_blob(*p.real, "big")->bytes;
  index[1] = 2; // another structure version
  replace(*p.real, "big", index);
  CHECK(p.lost(what));
  for (const std::string inside : {"a", "bc", ""}) { // a payload inside of its root
    const auto one = p.root_of("one" + inside, inside);
    REQUIRE(p.store(one, inside));
    auto stored = read_blob(*p.real, one.reference)->bytes;
    stored.back() ^= 1;
    replace(*p.real, one.reference, stored);
    CHECK(p.lost(one));
  }
}

TEST_CASE("S-126 S-127 what is not read back as it was written, or for long enough, counts as not stored") {
  for (const auto fault : {store_fault::lose_reply, store_fault::vanish}) {
    payloads p;
    p.faults->once(store_operation::put, "x", fault);
    const auto what = p.root_of("x", "bytes");
    CHECK(p.store(what, "bytes")); // put again, with the same reference and bytes
    CHECK(p.puts() == 2);
    CHECK(std::get<std::string>(p.load(what)) == "bytes");
  }
  payloads p;
  put(*p.real, "taken", "other bytes", day);
  CHECK_FALSE(p.store(p.root_of("taken", "bytes"), "bytes")); // needs another reference
  CHECK(read_blob(*p.real, "taken")->bytes == "other bytes");
  const auto brief = p.root_of("brief", "bytes");
  payload_root stored;
  stored.size = brief.size;
  stored.digest = brief.digest;
  stored.whole = "bytes";
  put(*p.real, "brief", encode(stored), 10min); // there already, and gone before it may be needed
  CHECK_FALSE(p.store(brief, "bytes"));
  p.faults->set_rule([](const store_call&) { return store_fault::vanish; });
  const auto began = p.w.now();
  CHECK_FALSE(p.store(p.root_of("y", "bytes"), "bytes", 3s)); // as long as the operation lasts
  CHECK(p.w.now() - began >= 3s);
  CHECK(p.puts() > 10);
}

TEST_CASE("S-129 a payload that is invisible for a moment is read again; a store that fails is no loss") {
  payloads p;
  const auto what = p.root_of("x", "bytes");
  REQUIRE(p.store(what, "bytes"));
  const auto stored = read_blob(*p.real, "x")->bytes;
  erase(*p.real, "x");
  std::optional<payload_outcome> end;
  p.infra.post([&] {
    detail::start_coroutine(p.records.read_payload(what), [&](result<payload_outcome> outcome) { end = std::move(*outcome); });
  });
  p.w.executor.run_for(30ms);
  CHECK_FALSE(end);
  put(*p.real, "x", stored, day);
  REQUIRE(p.w.executor.run_until([&] { return end.has_value(); }, 10s));
  CHECK(std::get<std::string>(*end) == "bytes");
  p.faults->set_rule([](const store_call&) { return store_fault::vanish; });
  CHECK(std::get<payload_fault>(p.load(what)) == payload_fault::unavailable);
  p.faults->set_rule({});
  CHECK(std::get<std::string>(p.load(what)) == "bytes");
}

TEST_CASE("S-128 chunks whose root never came expire by themselves") {
  payloads p;
  const auto bytes = content(chunk + 1);
  p.faults->set_rule([](const store_call& call) {
    return call.what == store_operation::put && call.key == "big" ? store_fault::refuse : store_fault::none;
  });
  CHECK_FALSE(p.store(p.root_of("big", bytes), bytes));
  CHECK(read_blob(*p.real, "big/0"));
  p.w.time->advance(day);
  CHECK_FALSE(read_blob(*p.real, "big/0"));
  CHECK_FALSE(read_blob(*p.real, "big/1"));
}

TEST_CASE("S-18 a call that was cancelled before it began reaches no store; one that lost its answer is known by reading") {
  shared_world w;
  keeper_host h{w};
  store_calls stopped{h.infra, h.store};
  stopped.stop();
  h.faults->clear_log();
  store_batch batch;
  batch.mutations.push_back(puts("k", "v"));
  const auto refused = h.run([&] { return stopped.write(batch, w.now() + 5s); });
  CHECK_FALSE(refused);
  CHECK(refused.failure().what == store_failure_class::unclear);
  CHECK(h.faults->count(store_operation::write) == 0);
  CHECK_FALSE(zlink::test::read(*w.data, "k").found);
  store_calls calls{h.infra, h.store};
  h.faults->once(store_operation::write, "k", store_fault::lose_reply);
  const auto lost = h.run([&] { return calls.write(batch, w.now() + 5s); });
  CHECK_FALSE(lost);
  CHECK(lost.failure().what == store_failure_class::unclear); // neither success nor Conflict
  CHECK(zlink::test::read(*w.data, "k").found->bytes == "v");
  h.faults->once(store_operation::write, "k", store_fault::hold_reply); // the caller gives up while it is under way
  const auto late = h.run([&] { return calls.write(batch, w.now() + 1s); });
  CHECK_FALSE(late);
  CHECK(late.failure().what == store_failure_class::unclear);
}
