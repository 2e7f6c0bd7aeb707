// Messages to a Spot and to a node of another process over each link, beside CAF's own remoting and a bare echo of the same
// shape in the same run. The processes meet at a redis-server of the benchmark's own.
//   bench_link_bench [part of a row's title]
#include "asio_echo.hpp"
#include "figures.hpp"
#include "two_processes.hpp"

#include "tests/links/certificates.hpp"
#include "tests/redis/redis_server.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <zlink/zlink.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <vector>

struct blob {
  std::uint64_t n = 0;
  std::string text;
};
struct blob_echo {
  std::uint64_t n = 0;
  std::string text;
};
/// The same, encoded as JSON.
struct json_blob {
  std::uint64_t n = 0;
  std::string text;
};
/// One-way to a Spot.
struct counted_blob {
  std::uint64_t n = 0;
  std::string text;
};
struct received {
  std::uint64_t n = 0;
};
struct how_many {};
ZLINK_PACKET(blob, "bench.blob", n, text)
ZLINK_PACKET(blob_echo, "bench.blob_echo", n, text)
ZLINK_PACKET(json_blob, "bench.json_blob", n, text)
ZLINK_PACKET(counted_blob, "bench.counted_blob", n, text)
ZLINK_PACKET(received, "bench.received", n)
ZLINK_PACKET(how_many, "bench.how_many")

namespace {

using namespace std::chrono_literals;
using clk = std::chrono::steady_clock;

struct config : caf::actor_system_config {
  config() {
    zlink::configure(*this);
    load<caf::io::middleman>();
  }
};

/// JSON for one type; the host's default is the binary encoding.
class json_for_one final : public zlink::codec {
public:
  std::string content_type() const override { return std::string{zlink::json_content_type}; }
  bool handles(const zlink::packet_info& type) const override { return type.name == std::string_view{"bench.json_blob"}; }
  void encode(const zlink::packet_info& type, const void* value, zlink::bytes& to) const override {
    std::string text;
    type.encode_json(value, text);
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    to.insert(to.end(), first, first + text.size());
  }
  void decode(const zlink::packet_info& type, zlink::byte_view from, void* value) const override {
    type.decode_json(value, {reinterpret_cast<const char*>(from.data()), from.size()});
  }
};

std::atomic<std::uint64_t> got{0};

caf::behavior raw_server(caf::event_based_actor*) {
  return {
    [count = std::uint64_t{0}](const blob& b) mutable -> caf::result<blob_echo> {
      ++count;
      return blob_echo{b.n, b.text};
    },
  };
}

caf::behavior raw_counter(caf::event_based_actor*) {
  return {
    [](const blob&) { got.fetch_add(1); },
    [](const how_many&) { return received{got.load()}; },
  };
}

/// The links that are measured, each as a mesh of that name.
constexpr const char* links[] = {"caf", "tcp", "tls"};

class echo_spot final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override {
    context().handlers().add_packet<&echo_spot::on_blob>().add_packet<&echo_spot::on_counted>().add_packet<&echo_spot::on_how_many>();
  }

private:
  blob_echo on_blob(const blob& b, const zlink::message_context&) { return {b.n, b.text}; }
  void on_counted(const counted_blob&, const zlink::message_context&) { ++count_; }
  received on_how_many(const how_many&, const zlink::message_context&) { return {count_}; }

  std::uint64_t count_ = 0;
};

/// Both processes' hosts.
void use_redis(zlink::host& host, const std::string& url) {
  zlink::redis_options options;
  options.url = url;
  options.key_prefix = "bench:location";
  host.use_location_store(zlink::make_redis_location_store(options));
  options.key_prefix = "bench:relocation";
  host.use_relocation_store(zlink::make_redis_relocation_store(options)).add_codec(std::make_shared<json_for_one>());
}

zlink::mesh_node& add_link(zlink::host& host, const std::string& link, const zlink::mesh_tls& files) {
  auto& node = host.add_mesh(link);
  if (link != "caf")
    node.transport(zlink::mesh_transport::tcp).secret("a secret of all nodes here");
  if (link == "tls")
    node.tls(files);
  return node;
}

/// The second process: serves until its standard input ends.
int serve(const std::string& redis, const zlink::mesh_tls& files) {
  config cfg;
  caf::actor_system system{cfg};
  auto echo_port = system.middleman().publish(system.spawn(raw_server), 0, "127.0.0.1");
  auto count_port = system.middleman().publish(system.spawn(raw_counter), 0, "127.0.0.1");
  static bench::echo_server bare;
  std::atomic<std::uint64_t> ours{0};
  zlink::host host{system};
  use_redis(host, redis);
  for (const auto* link : links) {
    auto& node = add_link(host, link, files);
    node.object_server().add_instance_spot_factory<echo_spot>("echo", [](auto& factory) { factory.disable_relocation(); });
    node.add_node_handler([](const blob& b, const zlink::message_context&) { return blob_echo{b.n, b.text}; });
    node.add_node_handler([&ours](const blob&, const zlink::message_context&) { ours.fetch_add(1); });
    node.add_node_handler([&ours](const json_blob&, const zlink::message_context&) { ours.fetch_add(1); });
    node.add_node_handler([&ours](const how_many&, const zlink::message_context&) { return received{ours.load()}; });
  }
  host.start();
  std::cout << *echo_port << ' ' << *count_port << ' ' << bare.port();
  for (const auto* link : links)
    std::cout << ' ' << host.mesh(link).rid();
  std::cout << std::endl;
  std::string line;
  std::getline(std::cin, line);
  std::_Exit(0);
}

std::string text_of(std::size_t bytes) { return std::string(bytes, 'x'); }

double seconds_since(clk::time_point t0) { return std::chrono::duration<double>(clk::now() - t0).count(); }

double percentile(std::vector<double> took, double part) {
  std::sort(took.begin(), took.end());
  return took[static_cast<std::size_t>(static_cast<double>(took.size() - 1) * part)];
}

/// Requests that were kept going: how fast, and how long the middle one and the slowest hundredth took.
struct request_run {
  double rate = 0;
  double median_us = 0;
  double p99_us = 0;
};

/// Collects the times of one run's requests; answers come one at a time.
class request_times {
public:
  explicit request_times(std::uint64_t count) : left_(count) { took_.reserve(count); }
  /// False: enough.
  bool begin() noexcept {
    if (left_ == 0)
      return false;
    --left_;
    ++open_;
    return true;
  }
  /// True: that was the last.
  bool end(clk::time_point begun) {
    took_.push_back(std::chrono::duration<double, std::micro>(clk::now() - begun).count());
    return --open_ == 0 && left_ == 0;
  }
  void finish() {
    finished_ = true;
    finished_.notify_all();
  }
  request_run wait() {
    finished_.wait(false);
    const auto count = static_cast<double>(took_.size());
    return {count / seconds_since(begun_), percentile(took_, 0.5), percentile(took_, 0.99)};
  }

private:
  const clk::time_point begun_ = clk::now();
  std::uint64_t left_;
  std::uint64_t open_ = 0;
  std::vector<double> took_;
  std::atomic<bool> finished_{false};
};

request_run raw_requests(caf::actor_system& system, const caf::actor& echo, std::uint64_t count, int outstanding) {
  request_times times{count};
  std::function<void(caf::event_based_actor*)> ask = [&](caf::event_based_actor* self) {
    if (!times.begin())
      return;
    self->request(echo, 30s, blob{1, text_of(48)}).then([&, self, begun = clk::now()](const blob_echo&) {
      if (times.end(begun)) {
        self->quit();
        times.finish();
        return;
      }
      ask(self);
    });
  };
  system.spawn([&ask, outstanding](caf::event_based_actor* self) {
    for (int i = 0; i < outstanding; ++i)
      ask(self);
    return caf::behavior{[](int) {}};
  });
  return times.wait();
}

/// The second process as a node of ours.
struct other_node {
  zlink::host& host;
  std::string mesh;
  std::string rid;
};

/// `call(text)` makes the request.
template <class Call>
request_run requests_by(Call call, std::uint64_t count, int outstanding) {
  request_times times{count};
  std::mutex mutex; // completions may come on two threads while the first ones are being asked
  std::function<void()> ask = [&] {
    {
      std::lock_guard guard{mutex};
      if (!times.begin())
        return;
    }
    call().template submit<blob_echo>().then(
      [&, begun = clk::now()](zlink::result<blob_echo> answer) {
        if (!answer)
          std::abort();
        bool last = false;
        {
          std::lock_guard guard{mutex};
          last = times.end(begun);
        }
        if (last)
          times.finish();
        else
          ask();
      });
  };
  for (int i = 0; i < outstanding; ++i)
    ask();
  return times.wait();
}

/// The Spot of that mesh's node; it comes to life with the first message.
std::string spot_of(const other_node& to) { return "echo of " + to.mesh; }

request_run spot_requests(const other_node& to, std::uint64_t count, int outstanding) {
  return requests_by(
    [&] {
      return to.host.spots().request_to_spot(spot_of(to), blob{1, text_of(48)}).instance_spot("echo").in_mesh(to.mesh);
    },
    count, outstanding);
}

request_run node_requests(const other_node& to, std::uint64_t count, int outstanding) {
  return requests_by([&] { return to.host.nodes().request_to_node(to.mesh, to.rid, blob{1, text_of(48)}); }, count, outstanding);
}

std::uint64_t raw_received(caf::actor_system& system, const caf::actor& counter) {
  caf::scoped_actor me{system};
  std::uint64_t n = 0;
  me->request(counter, 30s, how_many{}).receive([&](const received& r) { n = r.n; }, [](caf::error&) { std::abort(); });
  return n;
}

std::uint64_t our_received(const other_node& to) {
  return zlink::sync_wait(to.host.nodes().request_to_node(to.mesh, to.rid, how_many{}).submit<received>()).n;
}

std::uint64_t spot_received(const other_node& to) {
  return zlink::sync_wait(
           to.host.spots().request_to_spot(spot_of(to), how_many{}).instance_spot("echo").in_mesh(to.mesh).submit<received>())
    .n;
}

/// One-way messages a second, from the first `send` until `count_received` has seen them all.
template <class Count, class Send>
double one_way(std::uint64_t messages, Count count_received, Send send) {
  const auto before = count_received();
  const auto t0 = clk::now();
  for (std::uint64_t n = 0; n < messages; ++n)
    send(n);
  while (count_received() < before + messages) {
  }
  return static_cast<double>(messages) / seconds_since(t0);
}

constexpr std::uint64_t flood = 200'000;

// As programs send: each waits until its message is admitted, which is at once while the peer keeps up.
template <class T>
double our_stream(const other_node& to) {
  return one_way(flood, [&] { return our_received(to); }, [&](std::uint64_t n) {
    zlink::sync_wait(to.host.nodes().send_to_node(to.mesh, to.rid, T{n, text_of(48)}).submit());
  });
}

double spot_stream(const other_node& to) {
  return one_way(flood, [&] { return spot_received(to); }, [&](std::uint64_t n) {
    zlink::sync_wait(to.host.spots().send_to_spot(spot_of(to), counted_blob{n, text_of(48)}).submit());
  });
}

// As plain CAF has to: whatever does not fit waits as an operation of its own.
double our_flood(const other_node& to) {
  return one_way(flood, [&] { return our_received(to); }, [&](std::uint64_t n) {
    to.host.nodes().send_to_node(to.mesh, to.rid, blob{n, text_of(48)}).submit();
  });
}

/// What each link is wanted to reach (design of the two links).
struct wishes {
  double one_way;
  double requests;
};

void measure_link(const other_node& to, const std::function<double()>& raw_flood, caf::actor_system& system,
                  const caf::actor& echo, wishes wanted) {
  const auto title = [&](const char* what) { return to.mesh + " link, " + what; };
  bench::compare(title("one-way to a Spot, 64 B"), "/s", raw_flood, [&] { return spot_stream(to); }, wanted.one_way);
  bench::compare(title("one-way, node direct, 64 B"), "/s", raw_flood, [&] { return our_stream<blob>(to); }, wanted.one_way);
  bench::compare(title("one-way, node direct, as JSON"), "/s", raw_flood, [&] { return our_stream<json_blob>(to); }, 0);
  bench::compare(title("one-way, sent without waiting"), "/s", raw_flood, [&] { return our_flood(to); }, 0);
  const auto raw_rate = [&] { return raw_requests(system, echo, 20'000, 64).rate; };
  bench::compare(title("requests to a Spot, 64 outstanding"), "/s", raw_rate,
                 [&] { return spot_requests(to, 50'000, 64).rate; }, wanted.requests);
  bench::compare(title("requests, node direct, 64 outstanding"), "/s", raw_rate,
                 [&] { return node_requests(to, 50'000, 64).rate; }, 0);
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 5 && std::strcmp(argv[1], "--serve") == 0)
    return serve(argv[2], {argv[3], argv[4], argv[5]});
  bench::choose_rows(argc, argv);
  zlink::test::test_authority authority;
  const auto theirs = authority.issue("server");
  auto redis = std::make_unique<zlink::test::redis_server>();
  bench::second_process other{{argv[0], "--serve", redis->url(), theirs.cert, theirs.key, theirs.ca}};
  std::uint16_t echo_port = 0;
  std::uint16_t count_port = 0;
  std::uint16_t bare_port = 0;
  other.said() >> echo_port >> count_port >> bare_port;
  config cfg;
  caf::actor_system system{cfg};
  const auto echo = *system.middleman().remote_actor("127.0.0.1", echo_port);
  const auto counter = *system.middleman().remote_actor("127.0.0.1", count_port);
  zlink::host host{system};
  use_redis(host, redis->url());
  std::vector<other_node> others;
  for (const auto* link : links) {
    std::string rid;
    other.said() >> rid;
    add_link(host, link, authority.issue("client")).object_client().send_timeout(60s); // a flood waits for room
    others.push_back({host, link, rid});
  }
  host.start();
  for (const auto* link : links)
    zlink::sync_wait(host.mesh(link).until_peers_ready(1));
  for (const auto& to : others)
    spot_received(to); // it is there, and its route known

  const auto raw_flood = [&] {
    return one_way(flood / 4, [&] { return raw_received(system, counter); },
                   [&](std::uint64_t n) { caf::anon_send(counter, blob{n, text_of(48)}); });
  };
  measure_link(others[0], raw_flood, system, echo, {0, 1.5});
  measure_link(others[1], raw_flood, system, echo, {8, 4});
  measure_link(others[2], raw_flood, system, echo, {4, 2});
  const auto alone = [](const auto& run) { return [run] { return run().median_us; }; };
  const auto raw_one = [&] { return raw_requests(system, echo, 3'000, 1); };
  bench::compare_times("caf link, a request with 1 outstanding, p50, beside CAF", "us", alone(raw_one),
                       alone([&] { return spot_requests(others[0], 3'000, 1); }), 1.3);
  for (const auto* one : {&others[1], &others[2]}) {
    const double wanted = one->mesh == "tcp" ? 4 : 8;
    const auto title = one->mesh + " link, a request with 1 outstanding, ";
    const auto echo_at = [&](double part) { return percentile(bench::echo_times(bare_port, 3'000), part); };
    bench::compare_times(title + "p50, beside a bare echo", "us", [&] { return echo_at(0.5); },
                         [&] { return spot_requests(*one, 3'000, 1).median_us; }, wanted);
    bench::compare_times(title + "p99, beside a bare echo", "us", [&] { return echo_at(0.99); },
                         [&] { return spot_requests(*one, 3'000, 1).p99_us; }, wanted);
  }
  other.end();
  redis.reset();
  std::fflush(stdout);
  std::_Exit(0);
}
