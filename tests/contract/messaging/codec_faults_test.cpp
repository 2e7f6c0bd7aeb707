// Encodings of the application that throw, whatever they throw: the record ends, and nothing else (X-164, X-165, M-137).
#include "tests/contract/messaging/forged_peer.hpp"

namespace zlink::test::messaging {
namespace {

using testing::mesh;

/// Binary, but throws a number where the test says so.
class moody_codec final : public codec {
public:
  std::string throws_at;

  std::string content_type() const override { return "application/x-moody"; }
  bool handles(const packet_info&) const override { return true; }
  void encode(const packet_info& type, const void* value, bytes& to) const override {
    mood(type, "encode");
    type.encode_binary(value, to);
  }
  void decode(const packet_info& type, byte_view from, void* value) const override {
    mood(type, "decode");
    type.decode_binary(value, from);
  }

private:
  void mood(const packet_info& type, const char* step) const {
    if (throws_at == std::string{step} + ' ' + std::string{type.name})
      throw 5;
  }
};

/// Two hosts with that encoding; Spots live on the first.
std::shared_ptr<moody_codec> start_moody(mesh& net, evidence& log) {
  auto moody = std::make_shared<moody_codec>();
  net.start([&](host& started, std::size_t index) {
    started.add_codec(moody);
    auto& node = started.add_mesh("m");
    serve_probes(node, log);
    if (index != 0)
      node.placement_weight(0);
  });
  return moody;
}

TEST_CASE("X-164 X-165 M-137 an encoding that throws no std::exception ends its record only, near and far") {
  struct fault {
    const char* at;
    error_kind far_end;
  };
  for (const auto& mood : {fault{"encode probe.ask", error_kind::invalid_operation},
                           fault{"encode probe.answer", error_kind::internal_failure},
                           fault{"decode probe.ask", error_kind::internal_failure},
                           fault{"decode probe.answer", error_kind::protocol_error}}) {
    CAPTURE(mood.at);
    evidence log;
    mesh net{2};
    const auto moody = start_moody(net, log);
    net.run(ask_at(net.host(1), "c", "alive"));
    moody->throws_at = mood.at;
    const auto spots = net.host(1).spots();
    CHECK(failure(net, spots.request_to_spot("c", ask{"1"}).submit<answer>()) == mood.far_end);
    CHECK(net.run(net.host(0).spots().request_to_spot("c", ask{"2"}).submit<answer>()).text == "2!"); // nothing is encoded
    moody->throws_at.clear();
    CHECK(net.run(spots.request_to_spot("c", ask{"3"}).submit<answer>()).text == "3!");
  }
}

TEST_CASE("X-164 M-2 a send that has no encoding ends in invalid_operation, whether its way is known or not") {
  for (const auto age : {std::chrono::milliseconds{0}, std::chrono::milliseconds{15'000}}) {
    CAPTURE(age.count());
    evidence log;
    mesh net{{.hosts = 2, .adjust = [age](std::size_t, host_options& options) { options.route_cache_max_age = age; }}};
    const auto moody = start_moody(net, log);
    net.run(ask_at(net.host(1), "c", "alive"));
    moody->throws_at = "encode probe.note";
    CHECK(failure(net, net.host(1).spots().send_to_spot("c", note{"1"}).submit()) == error_kind::invalid_operation);
    moody->throws_at.clear();
    net.run(net.host(1).spots().send_to_spot("c", note{"2"}).submit());
  }
}

TEST_CASE("X-164 M-4 C-104 a first message that has no encoding ends in invalid_operation at once, and does not block the id") {
  for (std::size_t from : {0, 1}) {
    CAPTURE(from);
    evidence log;
    mesh net{2};
    const auto moody = start_moody(net, log);
    moody->throws_at = "encode probe.ask";
    const auto spots = net.host(from).spots();
    CHECK(failure(net, spots.request_to_spot("c", ask{"1"}).instance_spot("probe").submit<answer>()) == error_kind::invalid_operation);
    moody->throws_at = "encode probe.note";
    CHECK(failure(net, spots.send_to_spot("c", note{"2"}).instance_spot("probe").submit()) == error_kind::invalid_operation);
    moody->throws_at.clear();
    CHECK(net.run(ask_at(net.host(from), "c", "3")).text == "3!");
  }
}

} // namespace
} // namespace zlink::test::messaging
