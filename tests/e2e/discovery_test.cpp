// What the other nodes learn of a node: its weights, its end.
#include "tests/e2e/scene.hpp"

#include <doctest/doctest.h>

using namespace zlink::test;
using namespace std::chrono_literals;

namespace {

/// What the store says of a node: Entry Spot, state, lease, placement weight.
struct listed {
  std::string entry_spot_id;
  std::string state;
  std::string lease;
  std::string weight;
};

std::optional<listed> listing(node_process& from, const std::string& rid) {
  const auto words = from.list("nodes");
  for (std::size_t i = 0; i + 4 < words.size(); i += 5)
    if (words[i] == rid)
      return listed{words[i + 1], words[i + 2], words[i + 3], words[i + 4]};
  return std::nullopt;
}

/// So many new ids that a node gets none of them only if it is no candidate: of three, by chance once in 10^10.
constexpr std::size_t many = 60;

/// Which of these new ids come to life there, or nowhere: a call that fails does not tell where it would have gone.
std::string strays(node_process& from, const node_process& there, const std::string& ids) {
  std::string found;
  for (const auto& said : from.list("ask 10000 intent" + names(ids, many)))
    if (said.find('@') == std::string::npos || said.find('@' + there.name() + '#') != std::string::npos)
      found += ' ' + said;
  return found;
}

bool answered_by(const std::string& said, const node_process& who) { return said.find(who.rid()) != std::string::npos; }

} // namespace

TEST_CASE("C-38 C-39 M-96 M-101 O-133 O-134 S-49 S-56 weights that change at run time show on the other nodes") {
  scene on;
  on.start_nodes(3);
  auto& changed = on.node(2);
  on.begin_even_load("kept", 20, 400ms, 20s);
  const auto kept = on.owned_by(changed, "kept", 20);
  on.watch_memory();

  changed.ask("weight 0");
  eventually("the store has the weight", 5s, [&] { return listing(on.node(0), changed.rid()).value().weight == "0"; });
  for (int round = 0; auto* from : {&on.node(0), &on.node(1)})
    eventually("no new Spots go there", 30s, [&] { return strays(*from, changed, "w" + std::to_string(++round) + '.').empty(); });
  for (auto* from : {&on.node(0), &on.node(1)}) // and so it stays
    CHECK(strays(*from, changed, "x" + from->name() + '.') == "");
  CHECK(on.owned_by(changed, "kept", 20) == kept); // what it has, it keeps
  changed.ask("weight 300");
  on.until_all_are_candidates();

  for (auto* from : {&on.node(0), &on.node(1)})
    eventually("it gets calls to the channel", 30s, [&] { return answered_by(from->ask("ring 8"), changed); });
  changed.ask("channel_weight 0");
  for (auto* from : {&on.node(0), &on.node(1)})
    eventually("it gets none", 30s, [&] { return !answered_by(from->ask("ring 8"), changed); });
  changed.ask("channel_weight 100");
  for (auto* from : {&on.node(0), &on.node(1)})
    eventually("it gets calls again", 30s, [&] { return answered_by(from->ask("ring 8"), changed); });
  on.check(usual_outcomes);
}

TEST_CASE("C-6 C-53 S-50 S-51 S-60 S-67 S-118 a node that ends well is gone, one that was killed is listed as dead; their "
          "replacements are other nodes") {
  scene on;
  on.start_nodes(3);
  auto& ended = on.node(1);
  auto& killed = on.node(2);
  CHECK(ended.terminate(60s) == 0);
  CHECK(!listing(on.node(0), ended.rid()));
  eventually("its name is forgotten", 10s, [&] { return on.node(0).ask("hail " + ended.rid() + " 5000") == "not_found"; });
  killed.kill();
  CHECK(on.node(0).ask("hail " + killed.rid() + " 5000") == "unavailable");
  eventually("its lease is over", 30s, [&] { return listing(on.node(0), killed.rid()).value().lease == "dead"; });
  CHECK(listing(on.node(0), killed.rid()).value().state == "serving"); // as it left it

  for (int i = 0; i < 2; ++i) {
    auto& fresh = on.start_node();
    const auto shown = listing(on.node(0), fresh.rid());
    REQUIRE(shown);
    CHECK(shown->entry_spot_id == fresh.entry_spot_id());
    CHECK(shown->lease == "live");
    for (const auto* former : {&ended, &killed}) {
      CHECK(fresh.rid() != former->rid());
      CHECK(fresh.entry_spot_id() != former->entry_spot_id());
    }
  }
  on.until_all_are_linked();
  on.until_all_are_candidates();
  on.check(usual_outcomes);
}
