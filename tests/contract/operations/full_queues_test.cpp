// What a caller sees when queues are full: time that passes, and nothing else (09 section 1).
#include "tests/contract/creation/scripted_spots.hpp"

#include <set>

namespace creation_test {
namespace {

/// Everything that these calls ended with, sorted.
template <class T>
std::set<std::string> ends_of(mesh& net, std::vector<zlink::task<T>> calls) {
  std::set<std::string> ends;
  for (auto& call : calls) {
    const auto end = net.run(zlink::as_result(std::move(call)));
    ends.insert(end ? "well" : zlink::to_string(end.error().kind()));
  }
  return ends;
}

TEST_CASE("O-8 a full queue is no error: calls wait, within their own deadlines") {
  for (const std::size_t from : {std::size_t{0}, std::size_t{1}}) {
    CAPTURE(from);
    stage on;
    barrier open;
    mesh net{{.hosts = 2, .adjust = [](std::size_t, zlink::host_options& options) {
                options.application_lane_records = 2; // the Spot's queue
                options.max_operations = 4;           // the table of calls under way
                options.max_jobs = 2;                 // what the receiving host takes from its links
              }}};
    net.start(serve_beside_client(on));
    net.run(open_room(net.host(0), "a"));
    on.hold("handle", open);
    std::vector<zlink::task<told>> requests;
    for (int i = 0; i < 20; ++i)
      requests.push_back(ask(net.host(from), "a", std::to_string(i), 1s));
    CHECK(ends_of(net, std::move(requests)) == std::set<std::string>{"deadline_exceeded"});
    std::vector<zlink::task<void>> sends;
    for (int i = 0; i < 20; ++i)
      sends.push_back(net.host(from).spots().send_to_spot("a", hint{std::to_string(i)}).submit());
    const auto ends = ends_of(net, std::move(sends));
    CHECK(ends.contains("deadline_exceeded"));
    CHECK((ends.size() == 1 || ends == std::set<std::string>{"deadline_exceeded", "well"}));
    // Room, and everybody who still waits is served.
    std::vector<zlink::task<told>> patient;
    for (int i = 0; i < 20; ++i)
      patient.push_back(ask(net.host(from), "a", "patient", 60s));
    net.advance(500ms); // less than the send timeout, in which a message has to be admitted
    open.open();
    CHECK(ends_of(net, std::move(patient)) == std::set<std::string>{"well"});
  }
}

TEST_CASE("O-8 having no room for an object is another matter") {
  stage on;
  mesh net{1};
  net.start([&on](zlink::host& host) {
    auto& node = host.add_mesh("m");
    node.spot_limit(1);
    add_rooms(node.object_server(), on);
  });
  net.run(open_room(net.host(0), "a"));
  const auto before = net.elapsed();
  CHECK(failure(net, open_room(net.host(0), "b")) == error_kind::unavailable);
  CHECK(net.elapsed() - before < 1s); // at once
}

} // namespace
} // namespace creation_test
