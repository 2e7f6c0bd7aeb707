// Which links there are: who dials, and what the store's list of nodes has to do with it.
#include "tests/contract/creation/scripted_spots.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/mesh_links.hpp"

#include <algorithm>
#include <map>

namespace stores_test {

using namespace creation_test;
using zlink::detail::link_transport;

/// Counts whom a host dials.
class counting_transport final : public link_transport {
public:
  counting_transport(std::shared_ptr<link_transport> real, std::map<std::string, int>& dialled)
    : real_(std::move(real)), dialled_(dialled) {}
  zlink::detail::endpoint listen(const std::string& host, std::uint16_t port, accept_handler accepted) override {
    return real_->listen(host, port, std::move(accepted));
  }
  void connect(const zlink::detail::endpoint& where, std::uint32_t timeout_ms, connect_handler done) override {
    ++dialled_[to_string(where)];
    real_->connect(where, timeout_ms, std::move(done));
  }
  void stop() override { real_->stop(); }

private:
  std::shared_ptr<link_transport> real_;
  std::map<std::string, int>& dialled_;
};

zlink::detail::mesh_links& links_of(mesh& net, std::size_t host) {
  return *net.host(host).runtime().find_node("m")->links;
}

TEST_CASE("S-57 the node with the smaller id dials, and each pair has one link, whatever the order of starts") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    constexpr std::size_t hosts = 4;
    stage on;
    std::vector<std::map<std::string, int>> dialled(hosts);
    zlink::testing::mesh_options options{.hosts = hosts, .seed = seed, .max_link_delay = 30ms};
    options.adjust = [&](std::size_t index, zlink::host_options& o) {
      o.transport = [&dialled, index, make = o.transport](caf::actor_system& system, const std::string& mesh_name) {
        return std::make_shared<counting_transport>(make(system, mesh_name), dialled[index]);
      };
    };
    mesh net{options};
    net.start(serve(on));
    net.advance(10s);
    for (std::size_t i = 0; i < hosts; ++i) {
      CHECK(links_of(net, i).ready_count() == hosts - 1);
      const auto mine = net.host(i).mesh("m").rid();
      for (std::size_t j = 0; j < hosts; ++j)
        if (i != j)
          CHECK((dialled[i][net.host(j).mesh("m").endpoint()] > 0) == (mine < net.host(j).mesh("m").rid()));
    }
  }
}

TEST_CASE("S-60 S-56 a node that leaves the list is disconnected, and its own dialling brings it no link back") {
  for (const std::size_t leaver : {std::size_t{0}, std::size_t{1}}) { // one of the two is who dials
    CAPTURE(leaver);
    stage on;
    mesh net{2};
    net.start(serve(on));
    const auto other = 1 - leaver;
    const auto rid = net.host(leaver).mesh("m").rid();
    REQUIRE(links_of(net, other).ready_link(rid) != nullptr);
    const auto key = zlink::placement::descriptor_key("m", rid);
    const auto descriptor = zlink::placement::encode(*descriptor_of(net, rid));
    zlink::store_batch removal; // as if another process had cleaned up
    removal.mutations.push_back({key, std::nullopt, std::nullopt});
    net.store().location()->write(std::move(removal), [](auto answer) { REQUIRE(answer); });
    net.advance(5s);
    CHECK(links_of(net, other).ready_link(rid) == nullptr);
    CHECK_FALSE(links_of(net, other).is_known(rid));
    net.advance(1min);
    CHECK(links_of(net, other).ready_link(rid) == nullptr);
    put(net, key, descriptor);
    net.advance(10s);
    CHECK(links_of(net, other).ready_link(rid) != nullptr);
  }
}

TEST_CASE("S-60 S-63 a lost link is made again while the node is listed, and ends nobody's lifecycle") {
  stage on;
  mesh net{2};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a", "1"));
  const auto owner = net.owner_of("a");
  for (int i = 0; i < 5; ++i) {
    net.lose_links(0, 1);
    CHECK(links_of(net, 1 - owner).is_known(net.host(owner).mesh("m").rid()));
    net.advance(5s);
    CHECK(links_of(net, 0).ready_count() == 1);
    CHECK(links_of(net, 1).ready_count() == 1);
    CHECK(net.run(ask(net.host(1 - owner), "a", "again")).word == "again");
  }
  CHECK(on.count("factory") == 1);
}

} // namespace stores_test
