// Closes of rooms by their refs, and what tells a Spot why it ends (05 section 11).
#include "tests/contract/membership/join_scene.hpp"
#include "zlink/host/host_runtime.hpp"

namespace membership_test {
namespace {

using words = std::vector<std::string>;

TEST_CASE(
  "J-153 a close by ref ends that incarnation of the room only; another is refused, one that is gone is false") {
  for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
    CAPTURE(from);
    stage on;
    mesh net{2};
    net.start(serve_beside_client(on));
    net.run(make_person(net.host(0), "ada"));
    auto spots = net.host(from).spots(); // of the owner, or of another node
    const auto first = open_room(net, "r");
    auto other = first;
    ++other.object_generation;
    CHECK(failure(net, spots.close(other)) == error_kind::invalid_operation);
    CHECK(on.count("closing r") == 0);
    CHECK(net.run(spots.close(first)));
    CHECK(on.count("closing r") == 1);
    CHECK_FALSE(net.run(spots.close(first))); // gone

    const auto second = open_room(net, "r");
    CHECK(second.object_generation > first.object_generation);
    CHECK(failure(net, spots.close(first)) == error_kind::invalid_operation);
    CHECK(on.count("closing r") == 1); // nothing newer was closed instead
    move_person(net, on, "ada", "r");
    CHECK(failure(net, spots.close(first)) == error_kind::invalid_operation); // with members, too
    CHECK(names_in(net, "r") == "ada ");
    CHECK(*net.run(net.host(0).spots().find("r")) == second);
    CHECK_FALSE(net.run(spots.close(second)));
    move_person(net, on, "ada", "");
    CHECK(net.run(spots.close(second)));
    CHECK_FALSE(net.run(spots.close(second)));
    CHECK(on.count("closing r") == 2);
  }
}

TEST_CASE("J-153 J-136 C-113 what moves, by its row, is neither closed nor ended meanwhile") {
  scene s;
  auto& net = s.net;
  const auto moving = [&net](const std::string& key) {
    auto row = *zlink::placement::row_in(stored<zlink::placement::object_record>(net, key));
    row.move.emplace().relocation = net.host(0).runtime().random->next_id();
    row.move->attempt.value = 1;
    creation_test::put(net, key, zlink::placement::encode(zlink::placement::object_record{row}));
  };
  moving(zlink::placement::spot_key("r"));
  moving(zlink::placement::actor_key("ada"));
  CHECK(failure(net, net.host(0).spots().close(s.room)) == error_kind::unavailable);
  CHECK(failure(net, net.host(0).actors().destroy(s.ada.actor)) == error_kind::unavailable);
  CHECK(s.on.count("closing r") == 0);
  CHECK(s.on.alive == 1);
  CHECK(creation_test::row_of(net, "r"));
  CHECK(person_row(net, "ada"));
}

/// An Instance Spot that closes itself when it is told, and says why it ends.
class sleeper final : public zlink::instance_spot {
public:
  sleeper(zlink::instance_spot_context context, stage& on) : instance_spot(std::move(context)), on_(on) {}
  void configure() override { context().handlers().add_packet<&sleeper::on_say>(); }
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token) override {
    on_.trace.push_back("closing " + context().spot_id() + ' ' + to_string(why.reason));
    return zlink::task<void>::done();
  }

private:
  zlink::task<said> on_say(const say& m, const zlink::message_context&) {
    if (m.word == "close") {
      auto closing = context().close();
      co_await std::move(closing);
    }
    said answer{m.word, context().spot_id()};
    co_return answer;
  }
  stage& on_;
};
/// A User Spot without Actors that says why it ends.
class quiet_room final : public zlink::spot<> {
public:
  quiet_room(zlink::spot_context context, stage& on) : spot(std::move(context)), on_(on) {}
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token) override {
    on_.trace.push_back("closing " + context().spot_id() + ' ' + to_string(why.reason));
    return zlink::task<void>::done();
  }

private:
  stage& on_;
};

template <class TActor>
concept is_told_of_its_end = requires {
  &TActor::on_closing;
}
|| requires { &TActor::on_leave; }
|| requires { &TActor::on_destroyed; };

TEST_CASE("J-156 why a Spot ends, as a number and for every kind; an Actor that goes or ends closes nothing") {
  static_assert(static_cast<int>(zlink::spot_close_reason::explicit_close) == 0);
  static_assert(static_cast<int>(zlink::spot_close_reason::host_shutdown) == 1);
  static_assert(static_cast<int>(zlink::spot_close_reason::relocation_out) == 2);
  static_assert(static_cast<int>(zlink::spot_close_reason::idle_evicted) == 3);
  static_assert(!is_told_of_its_end<zlink::actor> && !is_told_of_its_end<person>);
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto& node = host.add_mesh("m");
    serve(node, on);
    node.instance_spot_idle_timeout(1min);
    auto server = node.object_server();
    server.add_instance_spot_factory<sleeper>("sleeper", [&on](auto& factory) {
      factory.disable_relocation().construct_with(
        [&on](zlink::instance_spot_context context) { return std::make_unique<sleeper>(std::move(context), on); });
    });
    server.add_spot_factory<quiet_room>("quiet", [&on](auto& factory) {
      factory.disable_relocation().construct_with(
        [&on](zlink::spot_context context) { return std::make_unique<quiet_room>(std::move(context), on); });
    });
  });
  auto spots = net.host(0).spots();
  const auto wake = [&](const std::string& id, const std::string& word) {
    net.run(spots.request_to_spot(id, say{word}).instance_spot("sleeper").submit<said>());
  };
  const auto made = net.run(make_person(net.host(0), "ada"));
  net.run(make_person(net.host(0), "bob"));
  open_room(net, "r");
  for (const auto* to : {"r", "", "r", ""}) // away and home
    move_person(net, on, "ada", to);
  move_person(net, on, "ada", "r");
  on.handler = [&](zlink::actor& who, const std::string&) -> zlink::task<void> {
    auto leaving = on.leave(who);
    co_await std::move(leaving);
  };
  net.run(talk(net.host(0), "ada", "leave"));
  on.handler = nullptr;
  CHECK(net.run(net.host(0).actors().destroy(made.actor)));
  net.run_until_idle();
  CHECK(on.count("closing") == 0);
  CHECK(net.run(talk(net.host(0), "bob", "x")).spot == net.host(0).mesh("m").entry_spot_id());

  CHECK(net.run(spots.close(net.run(spots.get_or_create("q", "quiet").submit()).spot)));
  wake("i", "close");
  net.run_until_idle();
  wake("idle", "x");
  net.advance(3min);
  CHECK(on.count("closing") == 3);
  CHECK(on.count("closing q explicit_close") == 1);
  CHECK(on.count("closing i explicit_close") == 1);
  CHECK(on.count("closing idle idle_evicted") == 1);

  on.trace.clear();
  net.run(spots.get_or_create("q", "quiet").submit());
  wake("i", "x");
  net.run(net.host(0).shutdown());
  CHECK(on.count("closing") == 4); // with "r"
  CHECK(on.count("closing q host_shutdown") == 1);
  CHECK(on.count("closing i host_shutdown") == 1);
  CHECK(on.count("closing hall host_shutdown") == 1);
  CHECK(on.count("left") == 0);
}

} // namespace
} // namespace membership_test
