// A thread that works through many jobs sends what they have for a peer together, and a job that takes long holds nothing up.
#include "tests/core/link/link_pair.hpp"

#include "zlink/execution/gathering.hpp"

#include <doctest/doctest.h>

namespace gathering_test {

using namespace link_test;

/// A connection that can remind: the test says when.
class reminding final : public link_connection {
public:
  explicit reminding(std::shared_ptr<link_connection> real) : real_(std::move(real)) {}
  void start(std::shared_ptr<link_connection_events> events) override {
    events_ = events;
    real_->start(std::move(events));
  }
  void write(bytes batch) override {
    ++batches;
    real_->write(std::move(batch));
  }
  bool write_at_once(bytes batch) override {
    write(std::move(batch));
    spot_batches += on_the_spot ? 1 : 0;
    return on_the_spot;
  }
  void limit_batches(std::uint64_t largest) override { real_->limit_batches(largest); }
  void close() override {
    events_ = nullptr;
    real_->close();
  }
  std::string peer_address() const override { return real_->peer_address(); }
  bool remind() override {
    ++asked;
    return can;
  }
  void ring() { events_->on_reminder(); }

  int batches = 0;
  int asked = 0;
  bool can = true;
  bool on_the_spot = false;
  int spot_batches = 0;

private:
  std::shared_ptr<link_connection> real_;
  std::shared_ptr<link_connection_events> events_;
};

struct scene {
  link_pair net;
  std::shared_ptr<reminding> connection = std::make_shared<reminding>(net.a.connection);

  scene() {
    net.a.connection = connection;
    net.start();
    REQUIRE(net.a.session->ready());
    connection->batches = connection->asked = 0;
  }
  void send(const std::string& text) {
    REQUIRE(net.a.session->try_send(net.make_note(text), link_pair::to_spot("s")) == admission::admitted);
  }
  std::string arrived() {
    net.settle();
    std::string all;
    for (std::size_t i = 0; i < net.b.owner.messages.size(); ++i)
      all += net.b.owner.text(i);
    return all;
  }
};

TEST_CASE("what the jobs of one thread send is one batch, in their order, when they are done") {
  scene s;
  {
    const gathering jobs;
    gathering::expect(true);
    for (const auto* text : {"a", "b", "c", "d"})
      s.send(text);
    CHECK(s.connection->batches == 0);
    CHECK(s.arrived().empty());
    s.send("e");
  }
  CHECK(s.connection->batches == 1);
  CHECK(s.arrived() == "abcde");
}

TEST_CASE("a job that no other follows, and a thread without jobs, send at once") {
  scene s;
  s.send("a");
  CHECK(s.connection->batches == 1);
  CHECK(s.arrived() == "a");
  {
    const gathering jobs;
    s.send("b"); // nothing was said of another job
    CHECK(s.connection->batches == 2);
    CHECK(s.arrived() == "ab");
    gathering::expect(true);
    s.send("c");
    gathering::expect(false);
    s.send("d"); // of the last job: together with what waits
    CHECK(s.connection->batches == 2);
  }
  CHECK(s.connection->batches == 3);
  CHECK(s.arrived() == "abcd");
}

TEST_CASE("a lone batch is written on the spot; of a stream, what comes until the transport has called is one batch") {
  scene s;
  s.connection->on_the_spot = true;
  s.send("a");
  CHECK(s.connection->batches == 1);
  CHECK(s.connection->spot_batches == 1);
  s.net.executor.run_for(std::chrono::milliseconds{1});
  s.send("b");
  CHECK(s.connection->spot_batches == 2);
  for (const auto* text : {"c", "d", "e"}) // at the same moment: a stream
    s.send(text);
  CHECK(s.connection->spot_batches == 2);
  CHECK(s.connection->batches == 3); // with "c"; the others wait for `on_writable`
  CHECK(s.arrived() == "abcde");
  CHECK(s.connection->batches == 4);
}

TEST_CASE("a job that takes long holds nothing up: the reminder sends what has gathered") {
  scene s;
  const gathering jobs;
  gathering::expect(true);
  s.send("a");
  s.send("b");
  CHECK(s.connection->asked > 0);
  s.connection->ring();
  CHECK(s.connection->batches == 1);
  CHECK(s.arrived() == "ab");
  s.send("c");
  CHECK(s.connection->batches == 1);
  s.connection->ring();
  CHECK(s.arrived() == "abc");
}

TEST_CASE("nothing gathers where nobody reminds") {
  scene s;
  s.connection->can = false;
  const gathering jobs;
  s.send("a");
  CHECK(s.connection->batches == 1);
  CHECK(s.arrived() == "a");
}

TEST_CASE("X-106 the peer learns of pressure at once, together with what has gathered") {
  scene s;
  const gathering jobs;
  gathering::expect(true);
  s.send("a");
  s.net.a.session->set_pressure(true, 1);
  CHECK(s.connection->batches == 1);
  CHECK(s.arrived() == "a");
  CHECK(s.net.b.owner.pressures == std::vector<bool>{true});
}

TEST_CASE("a link that ends while a thread gathers loses no end: the caller of a request is told") {
  replies_seen replies;
  scene s;
  {
    const gathering jobs;
    gathering::expect(true);
    s.net.a.session->send(s.net.make_request("r", replies.route(7)), link_pair::to_spot("s"), s.net.in(std::chrono::seconds{1}));
    s.net.a.session->close("over");
  }
  s.net.settle();
  REQUIRE(replies.seen.size() == 1);
  CHECK(replies.failure(0) == error_kind::unavailable);
}

} // namespace gathering_test
