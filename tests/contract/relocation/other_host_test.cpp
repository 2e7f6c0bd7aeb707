// Two hosts of one process: what a handler of one starts through the other.
#include "tests/contract/relocation/move_scene.hpp"

namespace relocation_test {
namespace {

TEST_CASE("X-100 a call counts against the host that it is started through, and gives its place back there") {
  stage on;
  std::size_t home = 0;
  mesh net{{.hosts = 2, .adjust = [](std::size_t, zlink::host_options& options) { options.max_operations = 2; }}};
  net.start(serve(on));
  net.run(rouse(net.host(0), "a"));
  net.run(rouse(net.host(0), "b"));
  home = net.owner_of("a");
  on.acts = [&](const zlink::instance_spot_context&, const std::string& word) -> zlink::task<void> {
    for (std::uint64_t i = 1; i <= 10 && word == "go"; ++i) {
      auto counting = count(net.host(1 - home), "b", "other", i); // not the host that this handler runs on
      static_cast<void>(co_await std::move(counting));
    }
  };
  net.run(bid(net.host(home), "a", "go"));
  CHECK(look_at(net, 0, "b").entries.size() == 11);
}

} // namespace
} // namespace relocation_test
