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

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
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
struct received {
  std::uint64_t n = 0;
};
struct how_many {};
ZLINK_PACKET(blob, "bench.blob", n, text)
ZLINK_PACKET(blob_echo, "bench.blob_echo", n, text)
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
  host.without_stores();
  auto& node = host.add_mesh("bench");
  node.add_node_handler([](const blob& b, const zlink::message_context&) { return blob_echo{b.n, b.text}; });
  node.add_node_handler([&ours](const blob&, const zlink::message_context&) { ours.fetch_add(1); });
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

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--serve") == 0)
    return serve();
  bench::choose_rows(argc, argv);
  const auto other = start_child("/proc/self/exe");
  config cfg;
  caf::actor_system system{cfg};
  auto echo = system.middleman().remote_actor("127.0.0.1", other.echo_port);
  auto counter = system.middleman().remote_actor("127.0.0.1", other.count_port);
  zlink::host host{system};
  host.without_stores();
  auto& node = host.add_mesh("bench");
  node.peer(other.endpoint);
  node.send_timeout(60s); // a flood waits for room
  host.start();
  zlink::sync_wait(node.until_peers_ready(1));

  const auto raw_count = [&] {
    caf::scoped_actor me{system};
    std::uint64_t n = 0;
    me->request(*counter, 30s, how_many{}).receive([&](const received& r) { n = r.n; }, [](caf::error&) { std::abort(); });
    return n;
  };
  const auto our_count = [&] {
    return zlink::sync_wait(host.nodes().request_to_node("bench", other.rid, how_many{}).submit<received>()).n;
  };
  constexpr std::uint64_t ones = 200'000;
  const auto one_way_raw = [&] {
    const auto before = raw_count();
    const auto t0 = clk::now();
    for (std::uint64_t n = 0; n < ones / 4; ++n)
      caf::anon_send(*counter, blob{n, text_of(48)});
    while (raw_count() < before + ones / 4) {
    }
    return static_cast<double>(ones / 4) / std::chrono::duration<double>(clk::now() - t0).count();
  };
  const auto one_way_ours = [&] {
    const auto before = our_count();
    const auto t0 = clk::now();
    for (std::uint64_t n = 0; n < ones; ++n)
      host.nodes().send_to_node("bench", other.rid, blob{n, text_of(48)}).submit();
    while (our_count() < before + ones) {
    }
    return static_cast<double>(ones) / std::chrono::duration<double>(clk::now() - t0).count();
  };

  const auto requests_raw = [&](std::uint64_t count, int outstanding) {
    std::atomic<bool> done{false};
    const auto t0 = clk::now();
    auto asker = system.spawn([&, count, outstanding](caf::event_based_actor* self) {
      auto left = std::make_shared<std::uint64_t>(count);
      auto open = std::make_shared<std::uint64_t>(0);
      auto ask = std::make_shared<std::function<void()>>();
      *ask = [=, &done, &echo, weak = ask.get()] {
        --*left;
        ++*open;
        self->request(*echo, 30s, blob{*left, text_of(48)}).then([=, &done](const blob_echo&) {
          --*open;
          if (*left > 0)
            (*weak)();
          else if (*open == 0) {
            done = true;
            done.notify_all();
            self->quit();
          }
        });
      };
      self->attach_functor([ask] {});
      for (int i = 0; i < outstanding; ++i)
        (*ask)();
      return caf::behavior{[](int) {}};
    });
    done.wait(false);
    return static_cast<double>(count) / std::chrono::duration<double>(clk::now() - t0).count();
  };
  const auto requests_ours = [&](std::uint64_t count, int outstanding) {
    struct state {
      std::atomic<std::int64_t> left;
      std::atomic<std::int64_t> open{0};
      std::atomic<bool> done{false};
      std::function<void()> ask;
    };
    state s;
    s.left = static_cast<std::int64_t>(count);
    s.ask = [&] {
      if (s.left.fetch_sub(1) <= 0)
        return;
      s.open.fetch_add(1);
      host.nodes().request_to_node("bench", other.rid, blob{1, text_of(48)}).submit<blob_echo>().then(
        [&](zlink::result<blob_echo> answer) {
          if (!answer)
            std::abort();
          s.ask();
          if (s.open.fetch_sub(1) == 1 && s.left.load() <= 0) {
            s.done = true;
            s.done.notify_all();
          }
        });
    };
    const auto t0 = clk::now();
    for (int i = 0; i < outstanding; ++i)
      s.ask();
    s.done.wait(false);
    return static_cast<double>(count) / std::chrono::duration<double>(clk::now() - t0).count();
  };

  bench::compare("two processes, one-way, node direct, 64 B", "/s", one_way_raw, one_way_ours, 8.0);
  bench::compare("two processes, requests, 64 outstanding", "/s", [&] { return requests_raw(20'000, 64); },
                 [&] { return requests_ours(50'000, 64); }, 1.5);
  bench::compare("two processes, requests, 1 outstanding", "/s", [&] { return requests_raw(3'000, 1); },
                 [&] { return requests_ours(3'000, 1); }, 1.0 / 1.3);
  close(other.to);
  waitpid(other.pid, nullptr, 0);
  std::fflush(stdout);
  std::_Exit(0);
}
