// The mechanism under claims and shared gates, with stand-ins for what will share them: two objects, two pairs of lanes,
// one gate.
#include "tests/contract/execution/stage.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/handler_invoke.hpp"

namespace claims_test {

using namespace zlink::test;
using zlink::testing::mesh;
namespace detail = zlink::detail;

/// An object whose records say what it does: wait at a door with the gate, without it, or nothing.
class stand_in final : public detail::execution_object {
public:
  stand_in(detail::execution_domain& domain, detail::counted_ptr<detail::gate> gate, stage& scene, std::string name,
           bool claims)
    : execution_object(domain, std::move(gate), 0), stage_(scene), name_(std::move(name)), claims_(claims) {}

  std::string_view mesh_name() const noexcept override { return "m"; }
  bool needs_lease() const noexcept override { return false; }
  bool claims_while_yielded() const noexcept override { return claims_; }
  std::optional<zlink::error_kind> yield_refused() const noexcept override { return std::nullopt; }
  detail::dispatched dispatch(detail::record* r) override {
    return {detail::start_run<void>(r, [&](detail::handler_run&) { return serve(r->body.get<tell>()->what); }), nullptr};
  }
  void tell_it(std::string what) {
    auto* r = detail::make_record(detail::record_kind::send);
    r->body.emplace<tell>(tell{std::move(what)});
    REQUIRE(submit(r, false) == detail::admission::admitted);
  }

private:
  zlink::task<void> serve(std::string what) {
    stage_.note(name_ + ' ' + what + " starts");
    if (what == "yield" || what == "hold") {
      auto waiting = door(what == "yield" ? detail::turn_use::yield : detail::turn_use::submit);
      co_await std::move(waiting);
      stage_.note(name_ + ' ' + what + " resumes");
    }
    stage_.note(name_ + ' ' + what + " ends");
  }
  zlink::task<void> door(detail::turn_use use) {
    auto passing = stage_.pass(name_ + (use == detail::turn_use::yield ? " yield" : " hold"));
    if (passing.operation())
      passing.operation()->use = use;
    return passing;
  }

  stage& stage_;
  std::string name_;
  bool claims_;
};

struct shared_gate {
  stage scene;
  mesh net{1};
  detail::counted_ptr<stand_in> a;
  detail::counted_ptr<stand_in> b;
  detail::counted_ptr<stand_in> spot;

  shared_gate() {
    net.start(serve(scene));
    auto& domain = net.host(0).runtime().domain;
    auto gate = detail::new_counted<detail::gate>(domain);
    a = detail::new_counted<stand_in>(domain, gate, scene, "a", true);
    b = detail::new_counted<stand_in>(domain, gate, scene, "b", true);
    spot = detail::new_counted<stand_in>(domain, gate, scene, "spot", false);
  }
};

TEST_CASE("a yielded run that claims its lane lets others of the gate run, and nothing behind itself") {
  shared_gate s;
  s.a->tell_it("yield");
  s.a->tell_it("job2");
  s.b->tell_it("job");
  s.spot->tell_it("probe");
  s.net.run_until_idle();
  CHECK(s.scene.has("b job ends"));
  CHECK(s.scene.has("spot probe ends"));
  CHECK_FALSE(s.scene.has("a job2 starts"));
  CHECK(s.a->application_word().records() == 2);
  s.b->tell_it("hold"); // in the gate when the reply of "a" comes
  s.net.run_until_idle();
  s.scene.open("a yield");
  s.b->tell_it("behind");
  s.net.run_until_idle();
  CHECK_FALSE(s.scene.has("a yield resumes")); // it needs the gate again
  s.scene.open("b hold");
  s.net.run_until_idle();
  CHECK(s.scene.in_order({"a yield starts", "b hold ends", "a yield resumes", "a yield ends", "a job2 starts"}));
  CHECK(s.scene.has("b behind ends"));
  CHECK(s.a->application_word().records() == 0);
}

TEST_CASE("lifecycle steps of an object whose application lane is claimed run meanwhile") {
  shared_gate s;
  s.a->tell_it("yield");
  s.net.run_until_idle();
  s.a->tell_it("job2");
  s.a->submit_step(std::make_unique<detail::turn_step>([&](detail::execution_object&) { s.scene.note("leave"); }));
  s.net.run_until_idle();
  CHECK(s.scene.has("leave"));
  CHECK_FALSE(s.scene.has("a job2 starts"));
  s.scene.open("a yield");
  s.net.run_until_idle();
  CHECK(s.scene.in_order({"leave", "a yield ends", "a job2 ends"}));
}

TEST_CASE("runs of objects with and without claims share a gate one at a time") {
  shared_gate s;
  s.spot->tell_it("yield");
  s.spot->tell_it("next"); // a Spot claims nothing
  s.net.run_until_idle();
  CHECK(s.scene.has("spot next ends"));
  s.a->tell_it("yield");
  s.a->tell_it("hold");
  s.net.run_until_idle();
  s.scene.open("a yield");
  s.net.run_until_idle();
  CHECK(s.scene.in_order({"a yield ends", "a hold starts"}));
  s.spot->tell_it("kept out");
  s.net.run_until_idle();
  CHECK_FALSE(s.scene.has("spot kept out starts"));
  s.scene.open("a hold");
  s.scene.open("spot yield");
  s.net.run_until_idle();
  CHECK(s.scene.has("spot kept out ends"));
  CHECK(s.scene.has("spot yield ends"));
}

TEST_CASE("a sealed lane takes nothing, and what it had runs") { // the seal bit
  shared_gate s;
  s.a->tell_it("hold");
  s.a->tell_it("accepted");
  s.net.run_until_idle();
  s.a->application_word().set(detail::admission_word::sealed_bit);
  auto* r = detail::make_record(detail::record_kind::send);
  r->body.emplace<tell>(tell{"late"});
  CHECK(s.a->submit(r, true) == detail::admission::sealed);
  CHECK(s.a->submit_arrival(r, true) == detail::admission::sealed);
  detail::free_record(r);
  s.scene.open("a hold");
  s.net.run_until_idle();
  CHECK(s.scene.has("a accepted ends"));
}

} // namespace claims_test
