// The one admission table (06, section 20).
#include "tests/contract/relocation/leaving_host.hpp"
#include "zlink/host/admission.hpp"

namespace host_relocate_test {
namespace {

using zlink::detail::host_work;
using zlink::detail::refusal;

constexpr std::optional<error_kind> taken{};
constexpr std::optional away{error_kind::unavailable};
constexpr std::optional ends{error_kind::shutting_down};

TEST_CASE("L-260 the cells of the table") {
  struct row {
    host_work work;
    std::optional<error_kind> relocating, relocated, draining;
  };
  for (const auto& r : {row{host_work::selection, away, away, ends}, row{host_work::node_message, taken, taken, ends},
                        row{host_work::object_message, taken, taken, ends}, row{host_work::absent_object, taken, away, ends},
                        row{host_work::placement_here, away, away, ends}, row{host_work::placement_away, taken, taken, ends},
                        row{host_work::control, taken, taken, ends}, row{host_work::new_session, away, away, ends},
                        row{host_work::session_work, taken, taken, ends}}) {
    CAPTURE(static_cast<int>(r.work));
    CHECK(refusal(r.work, host_state::serving) == taken);
    CHECK(refusal(r.work, host_state::relocating) == r.relocating);
    CHECK(refusal(r.work, host_state::relocated) == r.relocated);
    CHECK(refusal(r.work, host_state::draining) == r.draining);
    CHECK(refusal(r.work, host_state::stopped) == ends);
  }
}

/// Host 0 comes to that state and stays in it; host 1 serves as well, host 2 calls.
struct states_scene : scene {
  explicit states_scene(host_state wanted)
    : scene({.hosts = 3, .more = [this](zlink::host& host, std::size_t index) {
               auto& node = host.mesh("m");
               if (index == 2) {
                 node.add_channel_client("ch");
                 return;
               }
               node.add_channel_server("ch").add_handler([this, index](const greet& m, const zlink::message_context&) {
                 ++served[index];
                 return m;
               });
             }}) {
    add_spot("sal2", "salon");
    fill();
    mover.answer = [this](const stand_in::unit&) { return later(open); };
    relocating.emplace(leaving().relocate(within(10min)));
    net.run_until([this] { return open.waiting() == 1; });
    if (wanted == host_state::relocated) {
      open.open();
      net.run(std::move(*relocating));
    } else if (wanted == host_state::draining) {
      ending.emplace(leaving().shutdown());
    }
    net.advance(2s); // everybody knows
    CHECK(state() == wanted);
  }
  ~states_scene() { open.open(); }
  std::map<std::size_t, int> served;
  barrier open;
  std::optional<zlink::task<relocate_result>> relocating;
  std::optional<zlink::task<zlink::shutdown_result>> ending;
};

constexpr std::array states{host_state::relocating, host_state::relocated, host_state::draining};

TEST_CASE("L-260 channel selection and multicast: nobody chooses the host anew, over a new link either") {
  for (const auto now : states) {
    CAPTURE(to_string(now));
    states_scene s{now};
    const auto elsewhere = [&] {
      for (int i = 0; i < 10; ++i)
        s.net.run(s.net.host(2).channels().request_to_channel("ch", greet{"x"}).submit<greet>());
      CHECK(s.net.host(2).mesh("m").runtime().channels.targets("ch") == std::vector<std::string>{s.rid(1)});
      return s.served[0] == 0;
    };
    CHECK(elsewhere());
    CHECK(s.served[1] == 10);
    if (now == host_state::draining)
      continue; // no new link (L-246)
    s.net.lose_links(0, 2);
    s.net.advance(10s);
    CHECK(s.net.host(2).mesh("m").runtime().links->ready_count() == 2);
    CHECK(elsewhere());
  }
}

TEST_CASE("L-225 L-260 a host that goes back to Serving is selected again") {
  scene s{{.more = [](zlink::host& host, std::size_t index) {
             if (index == 0)
               host.mesh("m").add_channel_server("ch");
             else
               host.mesh("m").add_channel_client("ch");
           }}};
  s.add_cell("c");
  s.open_others();
  s.mover.answer = [&](const stand_in::unit&) {
    s.net.host(0).runtime().infra->post([] {});
    return at_once(false, relocate_reason::relocation_failed);
  };
  s.relocate();
  s.net.run_until_idle();
  CHECK(s.net.host(1).mesh("m").runtime().channels.targets("ch") == std::vector<std::string>{s.rid(0)});
}

TEST_CASE("L-260 L-245 X-171 a message for an object that is still here") {
  for (const auto now : states) {
    CAPTURE(to_string(now));
    states_scene s{now};
    for (const std::size_t from : {0u, 2u}) {
      auto asked = s.net.run(zlink::as_result(s.net.host(from).spots().request_to_spot("c", greet{"x"}).submit<greet>()));
      CHECK(creation_test::failure_of(asked) == (now == host_state::draining ? ends : taken));
    }
  }
}

TEST_CASE("L-260 L-220 C-38 create and Instance placement go elsewhere, whoever asks, or nowhere") {
  for (const auto now : states) {
    CAPTURE(to_string(now));
    states_scene s{now};
    int made = 0;
    const auto make = [&](std::size_t from) -> std::optional<error_kind> {
      const auto id = "n" + std::to_string(++made);
      auto& host = s.net.host(from);
      if (auto failed = failure(s.net, host.actors().create("a" + id, "guest").submit()))
        return failed;
      if (auto failed = failure(s.net, host.spots().get_or_create("s" + id, "salon").submit()))
        return failed;
      if (auto failed = failure(s.net, host.spots().request_to_spot("c" + id, greet{"x"}).instance_spot("cell").submit<greet>()))
        return failed;
      CHECK_FALSE(s.leaving().runtime().objects.find_actor("a" + id));
      CHECK_FALSE(s.leaving().runtime().objects.find("s" + id));
      CHECK_FALSE(s.leaving().runtime().objects.find("c" + id));
      return std::nullopt;
    };
    for (int i = 0; i < 4; ++i)
      CHECK(make(2) == taken);
    CHECK(make(0) == (now == host_state::draining ? ends : taken));
    for (const std::size_t host : {1u, 2u})
      s.net.host(host).mesh("m").placement_weight(0);
    s.net.advance(2s);
    CHECK(make(2) == away);
    CHECK(make(0) == (now == host_state::draining ? ends : away));
    const auto direct = s.leaving().runtime().refuse(host_work::placement_here);
    REQUIRE(direct);
    CHECK(direct->kind() == (now == host_state::draining ? error_kind::shutting_down : error_kind::unavailable));
  }
}

TEST_CASE("L-220 L-260 what begins here goes elsewhere at once, whatever this host's own list of nodes still shows") {
  scene s{{.hosts = 3}};
  barrier open;
  s.fill();
  s.mover.answer = [&](const stand_in::unit&) { return later(open); };
  auto asked = s.leaving().relocate();
  s.net.run_until([&] { return open.waiting() == 1; });
  const auto began = s.net.elapsed();
  for (int i = 0; i < 10; ++i) {
    const auto id = "n" + std::to_string(i);
    s.add_guest(id);
    s.add_cell(id);
    CHECK_FALSE(s.leaving().runtime().objects.find_actor(id));
    CHECK_FALSE(s.leaving().runtime().objects.find(id));
  }
  CHECK(s.net.elapsed() - began < 100ms); // nobody has looked into the store again
  open.open();
  CHECK(s.net.run(std::move(asked)).outcome == relocate_outcome::relocated);
}

TEST_CASE("L-260 a message that wakes a Spot, and comes by what its sender knew before, is refused") {
  scene s{{.hosts = 3}};
  s.add_cell("c");
  s.net.advance(2s);
  auto asked = s.net.host(2).spots().request_to_spot("new", greet{"x"}).instance_spot("cell").submit<greet>();
  s.leaving().runtime().state.store(host_state::relocating); // before it arrives
  CHECK(creation_test::failure_of(s.net.run(zlink::as_result(std::move(asked)))) == away);
  CHECK_FALSE(s.leaving().runtime().objects.find("new"));
  s.leaving().runtime().state.store(host_state::serving);
}

TEST_CASE("L-260 J-73 J-164 a Join aimed at this host; home is on another node") {
  for (const auto now : states) {
    CAPTURE(to_string(now));
    states_scene s{now};
    for (const auto* target : {"sal2", ""}) {
      const auto before = guest::ends.size();
      const std::string who = *target == '\0' ? "cid" : "ann";
      if (now == host_state::draining) {
        CHECK(failure(s.net, s.leaving().actors().send_to_actor(who, enter{target}).submit()) == ends);
        continue;
      }
      s.net.run(s.leaving().actors().send_to_actor(who, enter{target}).submit());
      s.net.run_until([&] { return guest::ends.size() > before; });
      if (*target == '\0') {
        CHECK(guest::ends.back().outcome == zlink::join_outcome::accepted);
        s.net.run_until([&] { return !s.leaving().runtime().objects.find_actor(who); });
        continue;
      }
      CHECK(guest::ends.back().outcome == zlink::join_outcome::failed);
      REQUIRE(guest::ends.back().error);
      CHECK(guest::ends.back().error->kind() == error_kind::unavailable);
    }
  }
}

TEST_CASE("L-260 a question of another node about what is here") {
  for (const auto now : states) {
    CAPTURE(to_string(now));
    states_scene s{now};
    auto found = s.net.run(zlink::as_result(s.net.host(2).spots().find("sal2")));
    REQUIRE((found.has_value() && found->has_value()));
    auto closed = s.net.run(zlink::as_result(s.net.host(2).spots().close(**found)));
    CHECK(creation_test::failure_of(closed) == (now == host_state::draining ? ends : taken));
  }
}

} // namespace
} // namespace host_relocate_test
