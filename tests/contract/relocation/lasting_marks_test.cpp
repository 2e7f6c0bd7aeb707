// What the store says of a move that has come to nothing goes again, however long the store was away: no object stays one that
// can neither move nor close nor be joined (06 section 14, 07 sections 10 and 17).
#include "tests/contract/relocation/room_scene.hpp"
#include "tests/contract/relocation/tampered_wire.hpp"

namespace relocation_test {
namespace {

using zlink::placement::actor_key;
using zlink::placement::spot_key;
using zlink::testing::store_call;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

/// What the host writes about that key comes through only when the test says so, and the host does not hear of it: everything, or
/// only what names a move.
void delay_writes(mesh& net, std::size_t host, std::string key, bool only_marks) {
  net.faults(host).set_rule([key = std::move(key), only_marks](const store_call& call) {
    if (call.what != store_operation::write || !call.touches(key))
      return store_fault::none;
    const auto names_a_move = [&key](const zlink::store_mutation& mutation) {
      if (mutation.key != key || !mutation.put)
        return false;
      const auto record = zlink::placement::decode<zlink::placement::object_record>(*mutation.put);
      const auto* object = std::get_if<zlink::placement::object_record>(&record);
      const auto* row = object == nullptr ? nullptr : std::get_if<zlink::placement::row_record>(object);
      return row != nullptr && row->move.has_value();
    };
    return !only_marks || std::ranges::any_of(call.batch->mutations, names_a_move) ? store_fault::late : store_fault::none;
  });
}
void let_through(mesh& net, std::size_t host) {
  CHECK(net.faults(host).held() > 0);
  net.faults(host).set_rule({});
  net.faults(host).release_all();
  net.advance(3s);
}

/// From its own handler, as Instance Spots do.
void close_itself(mesh& net, stage& on, const std::string& id) {
  bool closed = false;
  on.acts = [&closed](const zlink::instance_spot_context& context, const std::string& word) -> zlink::task<void> {
    if (word == "closing")
      co_return;
    auto ending = context.close();
    closed = co_await std::move(ending);
  };
  static_cast<void>(net.run(zlink::as_result(bid(net.host(0), id, "close"))));
  net.run_until_idle();
  on.acts = nullptr;
  CHECK(closed);
  CHECK(!row_of(net, id));
}

/// Right behind a renewal of the host's lease, so that it outlives what the test does with the store.
void renew_lease(mesh& net, std::size_t host) {
  const auto before = net.host(host).runtime().ownership->confirmed_at();
  net.run_until([&] { return net.host(host).runtime().ownership->confirmed_at() != before; });
}

TEST_CASE("L-161 S-96 S-156 S-159 a move given up while its mark was on its way: when that comes through, the Spot moves and closes as ever") {
  for (const bool only_marks : {false, true})
    for (const bool closes : {false, true}) {
      CAPTURE(only_marks);
      CAPTURE(closes);
      stage on;
      mesh net{2};
      net.start(serve(on));
      net.run(rouse(net.host(0), "a"));
      net.run_until_idle();
      const auto from = net.owner_of("a");
      delay_writes(net, from, spot_key("a"), only_marks);
      CHECK(!net.run(start_move(net, "a", from, 1 - from, 2s)).left);
      let_through(net, from);
      CHECK(!row_of(net, "a")->move);
      if (closes) {
        close_itself(net, on, "a");
      } else {
        CHECK(net.run(start_move(net, "a", from, 1 - from)).left);
        CHECK(net.run(count(net.host(0), "a", "x", 1)).number == 1);
      }
    }
}

TEST_CASE("L-161 S-96 S-156 S-159 J-160 an Actor whose mark comes through late moves and joins as ever") {
  for (const bool only_marks : {false, true})
    for (const bool joins : {false, true}) {
      CAPTURE(only_marks);
      CAPTURE(joins);
      stage on;
      mesh net{2};
      net.start(serve_rooms(on));
      const table t{net, on, "r", {"ada"}};
      go_to(net, on, "ada", "");
      delay_writes(net, t.home, actor_key("ada"), only_marks);
      CHECK(!net.run(start_actor_move(net, "ada", t.home, 1 - t.home)).left);
      let_through(net, t.home);
      CHECK(!player_row(net, "ada")->move);
      if (joins) {
        on.trace.clear();
        go_to(net, on, "ada", t.room);
        CHECK(on.count("completed ada accepted") == 1);
      } else {
        CHECK(net.run(start_actor_move(net, "ada", t.home, 1 - t.home)).left);
      }
    }
}

TEST_CASE("L-161 L-200 S-96 a move that went back while the store was away for less than a lease: its mark goes when the store comes back") {
  for (const bool closes : {false, true}) {
    CAPTURE(closes);
    stage on;
    mesh net{2};
    const auto from = lane_scene{net, on}.from;
    renew_lease(net, from);
    on.at = [&](const std::string& step, const std::string&) {
      if (step != "capture")
        return;
      net.cut_store(from);
      throw std::runtime_error{"no"};
    };
    const auto end = net.run(start_move(net, "a", from, 1 - from));
    CHECK(end.reason == relocate_reason::state_incompatible);
    on.at = nullptr;
    net.advance(10500ms);
    net.heal();
    net.advance(3s);
    REQUIRE(net.owner_of("a") == from);
    CHECK(!row_of(net, "a")->move);
    if (closes)
      close_itself(net, on, "a");
    else
      CHECK(net.run(start_move(net, "a", from, 1 - from)).left);
  }
}

TEST_CASE("L-161 S-88 S-89 a room that went back while the store was away: it and its members stand for themselves when it comes back") {
  stage on;
  mesh net{2};
  net.start(serve_rooms(on));
  const table t{net, on, "r", {"ada", "bob"}};
  renew_lease(net, t.home);
  on.at = [&](const std::string& step, const std::string& id) {
    if (step != "capture" || id != "bob")
      return;
    net.cut_store(t.home);
    throw std::runtime_error{"no"};
  };
  CHECK(!net.run(start_move(net, t.room, t.home, 1 - t.home)).left);
  on.at = nullptr;
  net.advance(10500ms);
  net.heal();
  net.advance(3s);
  CHECK(!row_of(net, t.room)->aggregate);
  CHECK(!player_row(net, "ada")->aggregate);
  go_to(net, on, "bob", "");
  CHECK(net.run(start_move(net, t.room, t.home, 1 - t.home)).left);
  CHECK(net.run(say(net.host(0), "ada", "there")).rid == rid_of(net, 1 - t.home));
}

TEST_CASE("L-240 S-44 S-119 a move that went back and cannot say so any more keeps neither its host from ending nor the Spot from being discarded") {
  for (const bool loses_lease : {false, true}) {
    CAPTURE(loses_lease);
    stage on;
    mesh net{2};
    const auto from = lane_scene{net, on}.from;
    on.at = [&](const std::string& step, const std::string&) {
      if (step != "capture")
        return;
      net.cut_store(from);
      throw std::runtime_error{"no"};
    };
    CHECK(!net.run(start_move(net, "a", from, 1 - from)).left);
    on.at = nullptr;
    net.advance(40s);
    if (loses_lease) {
      net.heal();
      net.run_until([&] { return !lives(net, from, "a"); });
      net.advance(10s);
    }
    CHECK_NOTHROW(net.finish());
  }
}

} // namespace
} // namespace relocation_test
