#include "link_pair.hpp"

#include "zlink/execution/system_executor.hpp"

#include <doctest/doctest.h>

#include <array>
#include <barrier>
#include <thread>

using namespace link_test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t requests_raced = 100;

/// Thread-safe; counts the ends of each of a round's requests.
class counting_receiver final : public reply_receiver {
public:
  void receive_reply(record* r) noexcept override {
    ends[r->reply.id].fetch_add(1);
    free_record(r);
  }
  void ref_receiver() noexcept override { references.fetch_add(1); }
  void unref_receiver() noexcept override { references.fetch_sub(1); }

  std::array<std::atomic<int>, requests_raced> ends{};
  std::atomic<int> references{0};
};

} // namespace

TEST_CASE("M-130 an id is found once; a used one never finds its successor in the same place") {
  reply_table table;
  replies_seen caller;
  const auto first = table.add(caller.route(1), 1, {});
  CHECK(first != 0);
  CHECK(table.take(first).id == 1);
  CHECK(table.take(first).receiver == nullptr);
  caller.unref_receiver();
  const auto second = table.add(caller.route(2), 1, {});
  CHECK(static_cast<std::uint32_t>(second) == static_cast<std::uint32_t>(first));
  CHECK(second != first);
  CHECK(table.take(first).receiver == nullptr);
  CHECK(table.take(second + 1).receiver == nullptr);
  CHECK(table.size() == 1);
  table.fail_link(2, error{error_kind::unavailable, "other link"});
  CHECK(caller.seen.empty());
  table.fail_link(1, error{error_kind::unavailable, "lost"});
  CHECK(caller.failure(0) == error_kind::unavailable);
  CHECK(caller.references == 0);
}

TEST_CASE("M-130 10,000 races of reply, link loss, deadline and repeated reply: one end each") {
  constexpr std::size_t rounds = 100;
  reply_table table;
  counting_receiver caller;
  std::array<std::uint64_t, requests_raced> ids{};
  std::barrier<> phase{5};
  const auto contend = [&](auto act) {
    return [&, act] {
      for (std::size_t i = 0; i < rounds; ++i) {
        phase.arrive_and_wait();
        act();
        phase.arrive_and_wait();
      }
    };
  };
  const auto reply = [&] {
    for (const auto id : ids) {
      const auto route = table.take(id);
      if (route.receiver == nullptr)
        continue;
      auto* r = make_record(record_kind::completion);
      r->reply = route;
      send_reply(r);
    }
  };
  std::thread threads[] = {
    std::thread{contend(reply)},
    std::thread{contend(reply)},
    std::thread{contend([&] { table.fail_link(1, error{error_kind::unavailable, "lost"}); })},
    std::thread{contend([&] { table.expire(steady_time{2s}); })},
  };
  int wrong = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    for (std::size_t k = 0; k < ids.size(); ++k) {
      caller.ends[k] = 0;
      caller.ref_receiver();
      ids[k] = table.add({&caller, k}, 1, steady_time{1s});
    }
    phase.arrive_and_wait(); // go
    phase.arrive_and_wait(); // all have done their worst
    for (const auto& ends : caller.ends)
      wrong += ends != 1;
  }
  for (auto& t : threads)
    t.join();
  CHECK(wrong == 0);
  CHECK(table.size() == 0);
  CHECK(caller.references == 0);
}

namespace {

/// A connection whose other end is its own thread: takes batches and answers every request, from there.
class echo_connection final : public link_connection {
public:
  explicit echo_connection(std::shared_ptr<serial_executor> thread) : thread_(std::move(thread)) {}

  void start(std::shared_ptr<link_connection_events> events) override {
    thread_->post([this, events = std::move(events)]() mutable {
      events_ = std::move(events);
      bytes batch;
      append_hello(batch, link_pair::identity("b", 22));
      append_hello_answer(batch, {true, {}, {}});
      deliver(batch);
    });
  }
  void write(bytes batch) override {
    thread_->post([this, batch = std::move(batch)] {
      if (!events_)
        return;
      bytes answers;
      frame_reader in{batch};
      while (!in.at_end())
        if (const auto f = in.next(1 << 20); f.type == frame_type::message)
          if (const auto m = decode_message(f.body); m.request)
            append_reply(answers, {.reply_route = m.reply_route, .kind = reply_kind::empty});
      events_->on_writable();
      if (!answers.empty())
        deliver(answers);
    });
  }
  void limit_batches(std::uint64_t) override {}
  void close() override {
    thread_->post([this] {
      if (auto events = std::exchange(events_, nullptr))
        events->on_closed("closed here");
    });
  }
  std::string peer_address() const override { return "echo"; }

private:
  void deliver(byte_view batch) {
    bool more = events_->on_batch(batch);
    while (more)
      more = events_->on_turn();
  }

  std::shared_ptr<serial_executor> thread_;
  std::shared_ptr<link_connection_events> events_; ///< the thread's
};

class ready_owner final : public link_owner {
public:
  void on_hello(link_session& link, const link_identity&) override { link.admit(); }
  void on_ready(link_session&) override {
    ready = true;
    ready.notify_all();
  }
  bool on_message(link_session&, byte_view, std::uint32_t, steady_time) override { return true; }
  void on_control(link_session&, std::uint16_t, byte_view) override {}
  void on_peer_pressure(link_session&, bool) override {}
  void on_undecodable(link_session&, const std::string&) override {}
  void on_down(link_session&, const std::string&) override { ++downs; }

  std::atomic<bool> ready{false};
  std::atomic<int> downs{0};
};

} // namespace

TEST_CASE("M-130 M-135 S-63 requests of four threads against a link that ends meanwhile: one end each, nothing left") {
  const auto environment = make_system_environment();
  const auto time = std::make_shared<system_clock>();
  const auto thread = environment->make_serial("link", time);
  {
    infrastructure infra{environment->make_serial("infra", time), time};
    codec_registry codecs;
    constexpr int rounds = 100;
    constexpr std::size_t per_thread = 25;
    for (int round = 0; round < rounds; ++round) {
      ready_owner owner;
      struct caller_state final : reply_receiver {
        void receive_reply(record* r) noexcept override {
          ends[r->reply.id].fetch_add(1);
          free_record(r);
          open.fetch_sub(1);
          open.notify_all();
        }
        void ref_receiver() noexcept override { references.fetch_add(1); }
        void unref_receiver() noexcept override { references.fetch_sub(1); }
        std::array<std::atomic<int>, 4 * per_thread> ends{};
        std::atomic<int> open{4 * per_thread};
        std::atomic<int> references{0};
      } caller;
      link_options options;
      options.self = link_pair::identity("a", 11);
      options.connection = std::make_shared<echo_connection>(thread);
      options.owner = &owner;
      options.infra = &infra;
      options.random = std::make_shared<counting_random>();
      options.codecs = &codecs;
      options.replies = std::make_shared<reply_table>();
      options.outbound_bytes = 500; // some wait for room
      const auto session = link_session::make(options);
      session->start();
      owner.ready.wait(false);
      std::vector<std::thread> senders;
      for (std::size_t t = 0; t < 4; ++t)
        senders.emplace_back([&, t] {
          for (std::size_t i = 0; i < per_thread; ++i) {
            auto* r = make_record(record_kind::request);
            r->body.emplace<note>(note{"?"});
            caller.ref_receiver();
            r->reply = {&caller, t * per_thread + i};
            session->send(r, link_pair::to_spot("s"), time->now() + 10s);
          }
        });
      std::thread closer{[&] { session->close("race"); }};
      for (auto& s : senders)
        s.join();
      closer.join();
      for (auto open = caller.open.load(); open > 0; open = caller.open.load())
        caller.open.wait(open);
      bool once = true;
      for (const auto& ends : caller.ends)
        once = once && ends == 1;
      CHECK(once);
      CHECK(options.replies->size() == 0);
      CHECK(session->waiting_sends() == 0);
      CHECK(owner.downs == 1);
      std::atomic<bool> done{false};
      thread->post([&] { // behind everything of this round
        done = true;
        done.notify_all();
      });
      done.wait(false);
      CHECK(caller.references == 0);
    }
  }
  thread->stop();
}
