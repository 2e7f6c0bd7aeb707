// Which object keeps a host from being emptied, and why (O-100, L-226).
#include "tests/contract/relocation/leaving_host.hpp"

namespace host_relocate_test {
namespace {

/// Records about what does not move: "event state id type kind reason: cause". Outlives the scene.
struct complaints {
  std::vector<std::string> told;
  auto listen() {
    return [this](std::size_t index, zlink::host_options& options) {
      if (index == 0)
        options.on_trace = [this](const zlink::trace_record& one) {
          if (!one.event.starts_with("zlink.runtime.") || one.state == "relocating")
            return;
          std::string line{one.event.substr(14)};
          for (const auto part : {one.state, one.spot_id, one.actor_id, one.spot_type, one.actor_type, one.unit_kind, one.reason})
            if (!part.empty())
              line += ' ' + std::string{part};
          told.push_back(line + (one.cause.empty() ? "" : ": " + std::string{one.cause}));
        };
    };
  }
};
using lines = std::vector<std::string>;

TEST_CASE("O-100 L-226 L-272 blocked before anything began: the record names the object and says why") {
  {
    complaints heard;
    scene s{{.houses = {{.of_guests = policy::disable}}, .adjust = heard.listen()}};
    s.add_guest("ann");
    s.open_others();
    CHECK(s.relocate().reason == relocate_reason::relocation_disabled);
    CHECK(heard.told
          == lines{"host.relocation_changed blocked ann guest entry_actor relocation_disabled: actor \"ann\" never leaves its node, as its "
                   "factory says"});
  }
  {
    complaints heard;
    scene s{{.houses = {{}, {.with_cells = false}}, .adjust = heard.listen()}};
    s.add_cell("c");
    s.open_others();
    CHECK(s.relocate(within(1s)).reason == relocate_reason::target_unavailable);
    REQUIRE(heard.told.size() == 1);
    CHECK(heard.told[0].starts_with("host.relocation_changed blocked c cell instance_spot target_unavailable: instance_spot of type \"cell\": "));
  }
}

TEST_CASE("O-100 L-225 L-226 a unit that stays, and the host that is blocked by it, say which it is and why, in no more than 256 bytes") {
  complaints heard;
  scene s{{.adjust = heard.listen()}};
  s.add_cell("c");
  s.add_guest("ann");
  s.open_others();
  s.mover.answer = [&](const stand_in::unit& unit) {
    return zlink::detail::make_ready_task(
      zlink::result<unit_end>{unit_end{unit.id != "c", relocate_reason::state_incompatible, "capture: " + std::string(1000, 'x'), {}}});
  };
  CHECK(s.relocate().reason == relocate_reason::state_incompatible);
  const auto cause = "capture: " + std::string(247, 'x');
  CHECK(heard.told
        == lines{"relocation.changed left guest entry_actor", "relocation.changed stays c cell instance_spot state_incompatible: " + cause,
                 "host.relocation_changed blocked c cell instance_spot state_incompatible: " + cause});
}

TEST_CASE("O-100 L-272 what was blocked by no object names none") {
  complaints heard;
  scene s{{.adjust = heard.listen()}};
  s.add_cell("c");
  s.net.cut_store(0);
  CHECK(s.relocate().reason == relocate_reason::store_unavailable);
  CHECK(heard.told == lines{"host.relocation_changed blocked store_unavailable: the Location Store does not tell which nodes there are"});
}

} // namespace
} // namespace host_relocate_test
