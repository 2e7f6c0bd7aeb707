// Which link a node uses, and what start refuses of it (O-23, O-141, O-151).
#include "tests/links/certificates.hpp"
#include "tests/links/poll.hpp"

#include <doctest/doctest.h>

#include <zlink/zlink.hpp>

#include <mutex>
#include <string>
#include <vector>

namespace zlink::test::mesh_transports {
namespace {

struct question {
  std::string text;
};
struct reply {
  std::string text;
};
ZLINK_PACKET(question, "mesh_transport.question", text)
ZLINK_PACKET(reply, "mesh_transport.reply", text)

/// What is wrong according to `start()`, in one text; empty: it started.
std::string mistakes_of(const std::function<void(host&, mesh_node&)>& configure) {
  host one;
  configure(one, one.add_mesh("m"));
  try {
    one.start();
  } catch (const configuration_error& what) {
    return what.what();
  }
  return {};
}

bool says(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

void protect(mesh_node& node, const mesh_tls& files) {
  node.transport(zlink::mesh_transport::tcp)
    .tls({.cert = files.cert, .key = files.key, .ca = files.ca})
    .secret("what all nodes of this mesh know");
}

std::string ask(host& from, const mesh_node& to) {
  auto call = from.nodes().request_to_node("m", to.rid(), question{"?"});
  return sync_wait(call.submit<reply>()).text;
}

TEST_CASE("O-23 O-141 what is wrong with a link's settings is told together, before a socket opens") {
  const auto text = mistakes_of([](host& one, mesh_node& node) {
    one.without_stores();
    node.transport(mesh_transport::tcp).secret("short").tls({.cert = "only.crt"}).peer("caf://127.0.0.1:1");
  });
  CHECK(says(text, "secret takes 16 to 1024 bytes, got 5"));
  CHECK_FALSE(says(text, "short")); // O-151
  CHECK(says(text, "tls needs cert, key and ca"));
  CHECK(says(text, "caf://127.0.0.1:1 cannot be reached by transport tcp"));
}

TEST_CASE("O-141 no transport goes beyond loopback without TLS") {
  for (const auto kind : {mesh_transport::tcp, mesh_transport::caf}) {
    CAPTURE(to_string(kind));
    const auto text = mistakes_of([kind](host&, mesh_node& node) {
      node.transport(kind).bind_host("0.0.0.0").advertise_host("node.example").object_client();
    });
    CHECK(says(text, "loopback"));
  }
  CHECK(says(mistakes_of([](host& one, mesh_node& node) {
               one.without_stores();
               node.transport(mesh_transport::tcp).peer("tcp://192.0.2.1:9");
             }),
             "tcp://192.0.2.1:9 is not loopback"));
  CHECK(says(mistakes_of([](host&, mesh_node& node) { node.secret("what all nodes of this mesh know"); }), "need transport tcp"));
}

TEST_CASE("certificates that cannot be used end the start, with and without stores") {
  for (const bool stores : {true, false}) {
    const auto text = mistakes_of([stores](host& one, mesh_node& node) {
      if (!stores)
        one.without_stores();
      node.transport(mesh_transport::tcp).tls({.cert = "missing.crt", .key = "missing.key", .ca = "missing.ca"});
    });
    CHECK(says(text, "\"missing.crt\" cannot be used: No such file or directory"));
  }
}

TEST_CASE("O-141 O-143 two hosts find each other by their store and talk over TLS") {
  test_authority authority;
  embedded_store store;
  host first;
  host second;
  for (auto* one : {&first, &second}) {
    one->use_store(store);
    auto& node = one->add_mesh("m");
    protect(node, authority.issue(one == &first ? "first" : "second"));
    node.add_node_handler([](const question& q, const message_context&) { return reply{q.text + '!'}; });
    one->start();
  }
  sync_wait(first.mesh("m").until_peers_ready(1));
  sync_wait(second.mesh("m").until_peers_ready(1));
  CHECK(first.mesh("m").endpoint().starts_with("tcp://127.0.0.1:"));
  CHECK(ask(first, second.mesh("m")) == "?!");
  CHECK(ask(second, first.mesh("m")) == "?!");
}

TEST_CASE("a node of another secret is not let in, and the host is told") {
  std::mutex mutex;
  std::vector<link_refusal> told;
  host_options options;
  options.on_link_refused = [&](const link_refusal& what) {
    std::lock_guard guard{mutex};
    told.push_back(what);
  };
  host here{options};
  here.without_stores();
  here.add_mesh("m").transport(mesh_transport::tcp).secret("what all nodes of this mesh know");
  here.start();
  host_options quiet;
  quiet.on_link_refused = [](const link_refusal&) {};
  host there{quiet};
  there.without_stores();
  there.add_mesh("m").transport(mesh_transport::tcp).secret("what somebody else guesses").peer(here.mesh("m").endpoint());
  there.start();
  CHECK(poll_until([&] {
    std::lock_guard guard{mutex};
    return !told.empty();
  }));
  std::lock_guard guard{mutex};
  CHECK(told.front().mesh == "m");
  CHECK(told.front().reason == "the shared secret is not proved");
}

} // namespace
} // namespace zlink::test::mesh_transports
