// What placement promises when several nodes place the same ids at once, and what it does not.
#include "tests/contract/creation/scripted_spots.hpp"

namespace creation_test {

namespace {

/// Of these ids, how many live at that node.
int living_at(mesh& net, const std::string& rid, const std::string& ids, int count) {
  int there = 0;
  for (int i = 0; i < count; ++i) {
    const auto row = row_of(net, ids + std::to_string(i));
    there += row && row->node.node_rid == rid ? 1 : 0;
  }
  return there;
}

} // namespace

TEST_CASE("C-38 C-71 C-100 ids that several nodes place at once go to the fastest: a slow candidate may get none of them, and "
          "gets its share of what one node places") {
  constexpr int ids = 30;
  int races_without_it = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    stage on;
    mesh net{{.hosts = 3, .seed = seed}};
    INFO("seed ", net.seed());
    net.start(serve(on));
    const auto slow = net.host(2).mesh("m").rid();
    net.faults(2).set_rule([](const store_call& call) { // its reservations reach the store last
      const bool reserves = call.what == store_operation::write && call.touches(zlink::placement::spot_key("raced"));
      return reserves ? store_fault::hold_call : store_fault::none;
    });
    std::vector<zlink::task<told>> calls;
    for (int i = 0; i < ids; ++i)
      for (std::size_t host = 0; host < 3; ++host)
        calls.push_back(rouse(net.host(host), "raced" + std::to_string(i), "x"));
    net.advance(1s);
    net.faults(2).set_rule({});
    net.faults(2).release_all();
    for (auto& call : calls) {
      const auto why = failure(net, std::move(call));
      CHECK((!why || *why == error_kind::unavailable));
    }
    const int raced = living_at(net, slow, "raced", ids);
    CHECK(raced < ids / 4); // those that all three have sent there
    races_without_it += raced == 0 ? 1 : 0;
    for (std::size_t host = 0; host < 3; ++host) { // each of them has had it among its candidates
      const auto alone = "alone" + std::to_string(host) + '.';
      for (int i = 0; i < ids; ++i)
        net.run(rouse(net.host(host), alone + std::to_string(i), "x"));
      CHECK(living_at(net, slow, alone, ids) > 0);
    }
  }
  CHECK(races_without_it > 0);
}

} // namespace creation_test
