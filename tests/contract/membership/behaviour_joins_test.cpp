// Joins that a CAF behaviour of a room registers for its members.
#include "tests/contract/membership/join_scene.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

namespace membership_test {
namespace {

struct all_out {
  bool fails = false;
};
ZLINK_PACKET(all_out, "member.all_out", fails)

/// A room whose messages go to a behaviour.
class lodge final : public zlink::spot<person> {
public:
  using spot::spot;
  zlink::task<void> on_joined_actor(person&) override { return zlink::task<void>::done(); }
  zlink::task<void> on_leave_actor(person&) override { return zlink::task<void>::done(); }
  caf::behavior make_behavior() override {
    return {
      [this](const all_out& m) -> caf::result<said> {
        promise_ = self()->make_response_promise<said>();
        for (const person* who : members())
          who->context().join_entry_spot().defer();
        if (m.fails)
          throw std::runtime_error{"after the promise"};
        promise_.deliver(said{"out", ""});
        return promise_;
      },
    };
  }

private:
  caf::typed_response_promise<said> promise_;
};

TEST_CASE("J-58 J-63 what a behaviour has registered goes with its exception, also if it has taken a promise") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto& node = host.add_mesh("m");
    serve(node, on);
    node.object_server().add_spot_factory<lodge>("lodge", [](auto& factory) { factory.disable_relocation(); });
  });
  auto& host = net.host(0);
  net.run(host.spots().get_or_create("l", "lodge").submit());
  net.run(make_person(host, "ada"));
  move_person(net, on, "ada", "l");
  on.ends.clear();
  const auto order = [&](bool fails) { return host.spots().request_to_spot("l", all_out{fails}).timeout(1s).submit<said>(); };

  static_cast<void>(failure(net, order(true)));
  net.advance(10s);
  CHECK(on.ends.empty());
  const auto before = net.run(host.actors().find_spot("ada"));
  REQUIRE(before);
  CHECK(before->spot_id == "l");

  CHECK(net.run(order(false)).word == "out");
  net.run_until([&] { return on.ends.size() == 1; });
  CHECK(on.ends.front().outcome == join_outcome::accepted);
  CHECK_FALSE(net.run(host.actors().find_spot("ada")));
}

} // namespace
} // namespace membership_test
