// The notice that an Actor's client has gone, as its Spot gets it (05 section 10).
#include "tests/contract/membership/join_scene.hpp"
#include "zlink/host/host_runtime.hpp"

namespace membership_test {
namespace {

/// As whoever keeps the client's connection does.
void lose_client(mesh& net, const std::string& id) {
  auto& runtime = net.host(0).runtime();
  runtime.infra->post([&runtime, who = runtime.objects.find_actor(id)] {
    zlink::detail::start_coroutine(runtime.actors.tell_disconnected(who), [](zlink::result<void>) {});
  });
}

/// Has no interest in clients.
class shed final : public zlink::spot<person> {
public:
  using spot::spot;
  zlink::task<void> on_joined_actor(person&) override { return zlink::task<void>::done(); }
  zlink::task<void> on_leave_actor(person&) override { return zlink::task<void>::done(); }
};

TEST_CASE("J-41 J-40 the Spot that an Actor belongs to is told of a lost client, once, among its joins") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  lose_client(net, "ada");
  net.run_until_idle();
  CHECK(on.trace == std::vector<std::string>{"disconnected hall ada"});

  move_person(net, on, "ada", "r");
  net.run(make_person(net.host(0), "bob"));
  on.trace.clear();
  barrier open;
  on.hold("joined r bob", open);
  net.run(send_off(net.host(0), "bob", "r"));
  net.run_until([&] { return open.waiting() == 1; });
  lose_client(net, "ada");
  net.advance(1s);
  CHECK(on.count("disconnected") == 0);
  open.open();
  net.run_until_idle();
  CHECK(on.count("disconnected r ada") == 1);
  CHECK(on.trace.back() != "joined r bob");
  CHECK(net.run(talk(net.host(0), "ada", "still here")).spot == "r");
}

TEST_CASE("J-41 who has left before the notice came is announced where he is") {
  scene s;
  auto& net = s.net;
  auto& on = s.on;
  move_person(net, on, "ada", "r");
  barrier open;
  on.hold("list", open);
  auto busy = net.host(0).spots().request_to_spot("r", say{"wait"}).timeout(1min).submit<said>();
  net.run_until([&] { return open.waiting() == 1; });
  lose_client(net, "ada"); // waits for the room
  net.advance(1s);
  on.during = nullptr;
  auto& runtime = net.host(0).runtime();
  const auto who = runtime.objects.find_actor("ada");
  const auto hall = runtime.find_node("m")->entry;
  runtime.infra->post([&] { who->committed({hall->id(), {}}, hall); }); // as the commit of a leave does
  net.run_until_idle();
  open.open();
  net.run(std::move(busy));
  net.run_until_idle();
  CHECK(on.count("disconnected r ada") == 0);
  CHECK(on.count("disconnected hall ada") == 1);
}

TEST_CASE("J-182 J-45 a notice that fails or that nobody wants changes nothing") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto& node = host.add_mesh("m");
    serve(node, on);
    node.object_server().add_spot_factory<shed>("shed", [](auto& factory) { factory.disable_relocation(); });
  });
  net.run(net.host(0).spots().get_or_create("s", "shed").submit());
  net.run(make_person(net.host(0), "ada"));
  on.at = [](const std::string& step) {
    if (step.starts_with("disconnected"))
      throw std::runtime_error{"no interest"};
  };
  auto& failed = net.host(0).runtime().actors.failed_callbacks;
  const auto before = failed.load();
  lose_client(net, "ada");
  net.run_until_idle();
  CHECK(failed.load() == before + 1);
  CHECK(net.run(talk(net.host(0), "ada", "in the hall")).word == "in the hall");
  move_person(net, on, "ada", "s");
  lose_client(net, "ada");
  net.run_until_idle();
  CHECK(failed.load() == before + 1);
  const auto at = net.run(net.host(0).actors().find_spot("ada"));
  REQUIRE(at);
  CHECK(at->spot_id == "s");
}

} // namespace
} // namespace membership_test
