// Messages between two Spots of one process beside the same between two plain CAF actors.
#include "figures.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <zlink/zlink.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

struct ping {
  std::uint64_t n = 0;
};
struct pong {
  std::uint64_t n = 0;
};
struct note {
  std::uint64_t n = 0;
};
struct more {};
struct run_requests {
  std::uint64_t count = 0;
  std::uint32_t outstanding = 1;
  bool member = false;
};
struct run_notes {
  std::uint64_t count = 0;
  bool member = false;
};
ZLINK_PACKET(ping, "bench.ping", n)
ZLINK_PACKET(pong, "bench.pong", n)
ZLINK_PACKET(note, "bench.note", n)
ZLINK_PACKET(more, "bench.more")
ZLINK_PACKET(run_requests, "bench.run_requests", count, outstanding, member)
ZLINK_PACKET(run_notes, "bench.run_notes", count, member)

namespace {

using namespace std::chrono_literals;
using clk = std::chrono::steady_clock;

constexpr std::uint64_t burst = 1000;

std::atomic<std::uint64_t> finished{0};

void wait_finished(std::uint64_t before) {
  auto seen = finished.load();
  while (seen == before) {
    finished.wait(seen);
    seen = finished.load();
  }
}

void finish() {
  finished.fetch_add(1);
  finished.notify_all();
}

double seconds_since(clk::time_point t0) { return std::chrono::duration<double>(clk::now() - t0).count(); }

// -- Spots ----------------------------------------------------------------------------------------------------------------

class behaviour_sink final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  caf::behavior make_behavior() override {
    return {
      [](const ping& p) { return pong{p.n}; },
      [this](const note& m) { count(m); },
    };
  }

private:
  void count(const note& m) {
    if (m.n % burst == burst - 1)
      context().outbound().send_to_spot("source", more{}).submit();
    if (m.n == 0)
      finish();
  }
};

class member_sink final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&member_sink::on_ping>().add_packet<&member_sink::on_note>(); }

private:
  pong on_ping(const ping& p, const zlink::message_context&) { return pong{p.n}; }
  void on_note(const note& m, const zlink::message_context&) {
    if (m.n % burst == burst - 1)
      context().outbound().send_to_spot("source", more{}).submit();
    if (m.n == 0)
      finish();
  }
};

class source final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override {
    context()
      .handlers()
      .add_packet<&source::on_requests>()
      .add_packet<&source::on_notes>()
      .add_packet<&source::on_more>()
      .add_packet<&source::on_ping>();
  }

private:
  void on_requests(const run_requests& r, const zlink::message_context&) {
    left_ = r.count;
    open_ = 0;
    sink_ = r.member ? "member-sink" : "behaviour-sink";
    for (std::uint32_t i = 0; i < r.outstanding; ++i)
      ask();
  }
  void ask() {
    --left_;
    ++open_;
    context().outbound().request_to_spot(sink_, ping{left_}).submit<pong>().then([this](zlink::result<pong> answer) {
      if (!answer)
        std::abort();
      --open_;
      if (left_ > 0)
        ask();
      else if (open_ == 0)
        finish();
    });
  }
  void on_notes(const run_notes& r, const zlink::message_context&) {
    left_ = r.count;
    sink_ = r.member ? "member-sink" : "behaviour-sink";
    for (int i = 0; i < 4; ++i)
      send_burst(); // at most as many as a lane holds, else sends would wait
  }
  void on_more(const more&, const zlink::message_context&) { send_burst(); }
  pong on_ping(const ping& p, const zlink::message_context&) { return pong{p.n}; }
  void send_burst() {
    for (std::uint64_t i = 0; i < burst && left_ > 0; ++i)
      context().outbound().send_to_spot(sink_, note{--left_}).submit();
  }

  std::uint64_t left_ = 0;
  std::uint64_t open_ = 0;
  std::string sink_;
};

// -- raw CAF ----------------------------------------------------------------------------------------------------------------

caf::behavior raw_sink(caf::event_based_actor* self) {
  return {
    [](const ping& p) { return pong{p.n}; },
    [self](const note& m) {
      if (m.n % burst == burst - 1)
        self->send(caf::actor_cast<caf::actor>(self->current_sender()), more{});
      if (m.n == 0)
        finish();
    },
  };
}

struct raw_source_state {
  std::uint64_t left = 0;
  std::uint64_t open = 0;
};

class raw_source final : public caf::event_based_actor {
public:
  raw_source(caf::actor_config& config, caf::actor sink) : caf::event_based_actor(config), sink_(std::move(sink)) {}
  caf::behavior make_behavior() override {
    return {
      [this](const run_requests& r) {
        left_ = r.count;
        open_ = 0;
        for (std::uint32_t i = 0; i < r.outstanding; ++i)
          ask();
      },
      [this](const run_notes& r) {
        left_ = r.count;
        for (int i = 0; i < 4; ++i)
          send_burst();
      },
      [this](const more&) { send_burst(); },
    };
  }

private:
  void ask() {
    --left_;
    ++open_;
    request(sink_, 30s, ping{left_}).then([this](const pong&) {
      --open_;
      if (left_ > 0)
        ask();
      else if (open_ == 0)
        finish();
    });
  }
  void send_burst() {
    for (std::uint64_t i = 0; i < burst && left_ > 0; ++i)
      send(sink_, note{--left_});
  }
  caf::actor sink_;
  std::uint64_t left_ = 0;
  std::uint64_t open_ = 0;
};

struct config : caf::actor_system_config {
  config() { zlink::configure(*this); }
};

} // namespace

int main(int argc, char** argv) {
  bench::choose_rows(argc, argv);
  config cfg;
  caf::actor_system system{cfg};
  zlink::host_options options;
  options.application_lane_records = 100'000;
  zlink::host host{system, options};
  host.add_mesh("bench")
    .object_server()
    .add_instance_spot_factory<source>("source", [](auto& f) { f.disable_relocation(); })
    .add_instance_spot_factory<behaviour_sink>("behaviour", [](auto& f) { f.disable_relocation(); })
    .add_instance_spot_factory<member_sink>("member", [](auto& f) { f.disable_relocation(); });
  host.start();
  zlink::sync_wait(host.spots().request_to_spot("behaviour-sink", ping{}).instance_spot("behaviour").submit<pong>());
  zlink::sync_wait(host.spots().request_to_spot("member-sink", ping{}).instance_spot("member").submit<pong>());
  zlink::sync_wait(host.spots().request_to_spot("source", ping{}).instance_spot("source").submit<pong>());
  auto sink = system.spawn(raw_sink);
  auto raw = system.spawn<raw_source>(sink);

  const auto requests = [&](bool ours, bool member, std::uint64_t count, std::uint32_t outstanding) {
    const auto before = finished.load();
    const auto t0 = clk::now();
    const run_requests order{count, outstanding, member};
    if (ours)
      zlink::sync_wait(host.spots().send_to_spot("source", order).submit());
    else
      caf::anon_send(raw, order);
    wait_finished(before);
    return static_cast<double>(count) / seconds_since(t0);
  };
  const auto notes = [&](bool ours, bool member, std::uint64_t count) {
    const auto before = finished.load();
    const auto t0 = clk::now();
    const run_notes order{count, member};
    if (ours)
      zlink::sync_wait(host.spots().send_to_spot("source", order).submit());
    else
      caf::anon_send(raw, order);
    wait_finished(before);
    return static_cast<double>(count) / seconds_since(t0);
  };

  constexpr std::uint64_t few = 200'000;
  constexpr std::uint64_t many = 1'000'000;
  bench::compare("request, through a behaviour, 1 outstanding", "/s", [&] { return requests(false, false, few, 1); },
                 [&] { return requests(true, false, few, 1); }, 2.0);
  bench::compare("request, through a behaviour, 64 outstanding", "/s", [&] { return requests(false, false, many, 64); },
                 [&] { return requests(true, false, many, 64); }, 2.5);
  bench::compare("request, member function, 1 outstanding", "/s", [&] { return requests(false, false, few, 1); },
                 [&] { return requests(true, true, few, 1); }, 2.0);
  bench::compare("request, member function, 64 outstanding", "/s", [&] { return requests(false, false, many, 64); },
                 [&] { return requests(true, true, many, 64); }, 2.5);
  bench::compare("one-way, through a behaviour", "/s", [&] { return notes(false, false, many); },
                 [&] { return notes(true, false, many); }, 1.3);
  bench::compare("one-way, member function", "/s", [&] { return notes(false, false, many); },
                 [&] { return notes(true, true, many); }, 1.3);
  caf::anon_send_exit(raw, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(sink, caf::exit_reason::user_shutdown);
}
