// Node-direct messages between two processes over caf_link beside CAF's own remoting, same shape, same run.
//   bench_link_bench [part of a row's title]       starts its own second process
#include "figures.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <zlink/zlink.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

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
struct received {
  std::uint64_t n = 0;
};
struct how_many {};
ZLINK_PACKET(blob, "bench.blob", n, text)
ZLINK_PACKET(blob_echo, "bench.blob_echo", n, text)
ZLINK_PACKET(json_blob, "bench.json_blob", n, text)
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

/// The second process: serves until its standard input ends.
int serve() {
  config cfg;
  caf::actor_system system{cfg};
  auto echo_port = system.middleman().publish(system.spawn(raw_server), 0, "127.0.0.1");
  auto count_port = system.middleman().publish(system.spawn(raw_counter), 0, "127.0.0.1");
  std::atomic<std::uint64_t> ours{0};
  zlink::host host{system};
  host.without_stores().add_codec(std::make_shared<json_for_one>());
  auto& node = host.add_mesh("bench");
  node.add_node_handler([](const blob& b, const zlink::message_context&) { return blob_echo{b.n, b.text}; });
  node.add_node_handler([&ours](const blob&, const zlink::message_context&) { ours.fetch_add(1); });
  node.add_node_handler([&ours](const json_blob&, const zlink::message_context&) { ours.fetch_add(1); });
  node.add_node_handler([&ours](const how_many&, const zlink::message_context&) { return received{ours.load()}; });
  host.start();
  std::cout << *echo_port << ' ' << *count_port << ' ' << node.endpoint() << ' ' << node.rid() << std::endl;
  std::string line;
  std::getline(std::cin, line);
  std::_Exit(0);
}

struct child {
  pid_t pid = 0;
  int to = -1;
  std::uint16_t echo_port = 0;
  std::uint16_t count_port = 0;
  std::string endpoint;
  std::string rid;
};

child start_child(const char* self) {
  int in[2];
  int out[2];
  if (pipe(in) != 0 || pipe(out) != 0)
    std::abort();
  child c;
  c.pid = fork();
  if (c.pid == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[1]);
    close(out[0]);
    execl(self, self, "--serve", nullptr);
    std::_Exit(127);
  }
  close(in[0]);
  close(out[1]);
  c.to = in[1];
  FILE* answers = fdopen(out[0], "r");
  char endpoint[256];
  char rid[256];
  if (std::fscanf(answers, "%hu %hu %255s %255s", &c.echo_port, &c.count_port, endpoint, rid) != 4)
    std::abort();
  c.endpoint = endpoint;
  c.rid = rid;
  return c;
}

std::string text_of(std::size_t bytes) { return std::string(bytes, 'x'); }

double seconds_since(clk::time_point t0) { return std::chrono::duration<double>(clk::now() - t0).count(); }

/// Requests that were kept going: how fast, and how long the middle one took.
struct request_run {
  double rate = 0;
  double median_us = 0;
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
    return {count / seconds_since(begun_), bench::summarise(std::move(took_)).median};
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

request_run our_requests(zlink::host& host, const std::string& rid, std::uint64_t count, int outstanding) {
  request_times times{count};
  std::mutex mutex; // completions may come on two threads while the first ones are being asked
  std::function<void()> ask = [&] {
    {
      std::lock_guard guard{mutex};
      if (!times.begin())
        return;
    }
    host.nodes().request_to_node("bench", rid, blob{1, text_of(48)}).submit<blob_echo>().then(
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

std::uint64_t raw_received(caf::actor_system& system, const caf::actor& counter) {
  caf::scoped_actor me{system};
  std::uint64_t n = 0;
  me->request(counter, 30s, how_many{}).receive([&](const received& r) { n = r.n; }, [](caf::error&) { std::abort(); });
  return n;
}

std::uint64_t our_received(zlink::host& host, const std::string& rid) {
  return zlink::sync_wait(host.nodes().request_to_node("bench", rid, how_many{}).submit<received>()).n;
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

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--serve") == 0)
    return serve();
  bench::choose_rows(argc, argv);
  const auto other = start_child(argv[0]);
  config cfg;
  caf::actor_system system{cfg};
  const auto echo = *system.middleman().remote_actor("127.0.0.1", other.echo_port);
  const auto counter = *system.middleman().remote_actor("127.0.0.1", other.count_port);
  zlink::host host{system};
  host.without_stores().add_codec(std::make_shared<json_for_one>());
  auto& node = host.add_mesh("bench");
  node.peer(other.endpoint);
  node.send_timeout(60s); // a flood waits for room
  host.start();
  zlink::sync_wait(node.until_peers_ready(1));

  constexpr std::uint64_t flood = 200'000;
  const auto raw_flood = [&] {
    return one_way(flood / 4, [&] { return raw_received(system, counter); },
                   [&](std::uint64_t n) { caf::anon_send(counter, blob{n, text_of(48)}); });
  };
  // As programs send: each waits until its message is admitted, which is at once while the peer keeps up.
  const auto our_stream = [&]<class T>(T) {
    return one_way(flood, [&] { return our_received(host, other.rid); }, [&](std::uint64_t n) {
      zlink::sync_wait(host.nodes().send_to_node("bench", other.rid, T{n, text_of(48)}).submit());
    });
  };
  // As plain CAF has to: whatever does not fit waits as an operation of its own.
  const auto our_flood = [&] {
    return one_way(flood, [&] { return our_received(host, other.rid); }, [&](std::uint64_t n) {
      host.nodes().send_to_node("bench", other.rid, blob{n, text_of(48)}).submit();
    });
  };
  bench::compare("two processes, one-way, node direct, 64 B", "/s", raw_flood, [&] { return our_stream(blob{}); }, 8.0);
  bench::compare("two processes, one-way, node direct, the same as JSON", "/s", raw_flood,
                 [&] { return our_stream(json_blob{}); }, 0);
  bench::compare("two processes, one-way, node direct, sent without waiting", "/s", raw_flood, our_flood, 0);
  bench::compare("two processes, requests, 64 outstanding", "/s",
                 [&] { return raw_requests(system, echo, 20'000, 64).rate; },
                 [&] { return our_requests(host, other.rid, 50'000, 64).rate; }, 1.5);
  bench::compare_times("two processes, a request with 1 outstanding, p50", "us",
                       [&] { return raw_requests(system, echo, 3'000, 1).median_us; },
                       [&] { return our_requests(host, other.rid, 3'000, 1).median_us; }, 1.3);
  close(other.to);
  waitpid(other.pid, nullptr, 0);
  std::fflush(stdout);
  std::_Exit(0);
}
