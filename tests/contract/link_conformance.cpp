#include "tests/contract/link_conformance.hpp"

#include <atomic>
#include <mutex>

using namespace zlink;
using namespace zlink::detail;
using namespace zlink::test;

namespace {

/// Hears everything that happens on one connection. Thread-safe.
class listener final : public link_connection_events {
public:
  bool on_batch(byte_view batch) override {
    enter();
    std::lock_guard guard{mutex};
    batches.emplace_back(batch.begin(), batch.end());
    bytes_in += batch.size();
    return leave(turns_wanted > 0);
  }
  bool on_turn() override {
    enter();
    std::lock_guard guard{mutex};
    ++turns;
    batches_before_last_turn = batches.size();
    return leave(--turns_wanted > 0);
  }
  void on_writable() override {
    enter();
    std::lock_guard guard{mutex};
    ++writable;
    leave(false);
  }
  void on_reminder() override {
    enter();
    std::lock_guard guard{mutex};
    ++reminders;
    leave(false);
  }
  void on_closed(std::string why) override {
    enter();
    std::lock_guard guard{mutex};
    ++closed;
    reason = why;
    leave(false);
  }
  template <class F>
  auto read(F f) {
    std::lock_guard guard{mutex};
    return f(*this);
  }
  /// Of the thread that writes, while it is inside a call.
  static thread_local bool calling;

  std::mutex mutex;
  std::vector<bytes> batches;
  std::size_t bytes_in = 0;
  int turns_wanted = 0;
  int turns = 0;
  std::size_t batches_before_last_turn = 0;
  int writable = 0;
  int reminders = 0;
  int closed = 0;
  std::string reason;
  std::atomic<int> inside{0};
  std::atomic<int> mistakes{0}; ///< two events at once, or on the stack of a call

private:
  void enter() {
    if (inside.fetch_add(1) != 0 || calling)
      ++mistakes;
  }
  bool leave(bool result) {
    inside.fetch_sub(1);
    return result;
  }
};
thread_local bool listener::calling = false;

struct call_scope {
  call_scope() { listener::calling = true; }
  ~call_scope() { listener::calling = false; }
};

/// A started connection and what it hears.
struct end_point {
  std::shared_ptr<link_connection> connection;
  std::shared_ptr<listener> heard = std::make_shared<listener>();

  void write(bytes batch) {
    call_scope scope;
    connection->write(std::move(batch));
  }
  bool write_at_once(bytes batch) {
    call_scope scope;
    return connection->write_at_once(std::move(batch));
  }
};

/// Node 0 listens; others connect.
class wiring {
public:
  explicit wiring(transports_under_test& nodes) : nodes_(nodes) {
    where_ = nodes.node(0).listen(nodes.host(0), 0, [this](auto made) {
      std::lock_guard guard{mutex_};
      accepted_.push_back(std::move(made));
    });
  }
  ~wiring() {
    for (std::size_t i = 0; i < 3; ++i)
      nodes_.node(i).stop();
  }
  /// From node `i`: its end and the listening node's end.
  void connect(std::size_t i, end_point& mine, end_point& theirs, std::uint64_t limit = 4 << 20) {
    {
      call_scope scope;
      nodes_.node(i).connect(where_, 20'000, [this](auto made) {
        REQUIRE(made.has_value());
        std::lock_guard guard{mutex_};
        connected_ = std::move(made.value());
      });
    }
    REQUIRE(nodes_.until([&] {
      std::lock_guard guard{mutex_};
      return connected_ && !accepted_.empty();
    }));
    std::lock_guard guard{mutex_};
    mine.connection = std::exchange(connected_, nullptr);
    theirs.connection = std::move(accepted_.back());
    accepted_.pop_back();
    for (auto* end : {&mine, &theirs}) {
      end->connection->limit_batches(limit);
      call_scope scope;
      end->connection->start(end->heard);
    }
  }
  const endpoint& where() const { return where_; }

private:
  transports_under_test& nodes_;
  endpoint where_;
  std::mutex mutex_;
  std::shared_ptr<link_connection> connected_;
  std::vector<std::shared_ptr<link_connection>> accepted_;
};

bytes batch_of(std::size_t number, std::size_t size) {
  bytes batch(size, static_cast<std::byte>(number));
  for (std::size_t i = 0; i < size && i < 8; ++i)
    batch[i] = static_cast<std::byte>(number >> (8 * i));
  return batch;
}

/// Number 0 to `count` - 1, in that order, once all have come.
template <class Size>
bool has_batches(const end_point& end, std::size_t count, Size size_of) {
  bool same = end.heard->batches.size() == count;
  for (std::size_t i = 0; same && i < count; ++i)
    same = end.heard->batches[i] == batch_of(i, size_of(i));
  return same;
}

} // namespace

TEST_CASE("link transport: it says where it listens, and both ends get one connection") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    CHECK(net.where().port != 0);
    CHECK(parse_endpoint(to_string(net.where())) == net.where());
    end_point mine;
    end_point theirs;
    net.connect(1, mine, theirs);
    CHECK_FALSE(mine.connection->peer_address().empty());
    CHECK_THROWS_AS(nodes.node(0).listen(nodes.host(0), 0, [](auto) {}), configuration_error);
  });
}

TEST_CASE("X-174 batches arrive whole and in order, both ways, one under way at a time, events one at a time") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    end_point a;
    end_point b;
    net.connect(1, a, b);
    constexpr std::size_t count = 200;
    const auto size_of = [](std::size_t i) { return i % 50 == 49 ? std::size_t{300'000} : 1 + (i * 37) % 2000; };
    for (std::size_t i = 0; i < count; ++i) {
      for (auto* end : {&a, &b})
        end->write(batch_of(i, size_of(i)));
      REQUIRE(nodes.until([&] {
        const auto taken = [i](listener& l) { return l.writable == static_cast<int>(i + 1); };
        return a.heard->read(taken) && b.heard->read(taken);
      }));
    }
    const auto all = [](listener& l) { return l.batches.size() == count; };
    REQUIRE(nodes.until([&] { return a.heard->read(all) && b.heard->read(all); }));
    for (auto* end : {&a, &b}) {
      CHECK(has_batches(*end, count, size_of));
      CHECK(end->heard->mistakes == 0);
    }
  });
}

TEST_CASE("link transport: batches written at once go in the order of all, and on_writable comes for those that were not") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    end_point a;
    end_point b;
    net.connect(1, a, b);
    constexpr std::size_t count = 300;
    const auto size_of = [](std::size_t i) { return i % 100 == 99 ? std::size_t{2'000'000} : 1 + (i * 37) % 900; };
    int expected = 0; // calls of on_writable
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 3 == 0)
        a.write(batch_of(i, size_of(i)));
      else if (a.write_at_once(batch_of(i, size_of(i))))
        continue;
      ++expected;
      REQUIRE(nodes.until([&] { return a.heard->read([&](listener& l) { return l.writable == expected; }); }));
    }
    REQUIRE(nodes.until([&] { return b.heard->read([](listener& l) { return l.batches.size() == count; }); }));
    CHECK(has_batches(b, count, size_of));
    CHECK(a.heard->writable == expected);
    CHECK(a.heard->mistakes == 0);
    a.connection->close();
    CHECK_FALSE(a.write_at_once(batch_of(1, 1)));
  });
}

TEST_CASE("link transport: one that reminds does so soon, once for all that asked meanwhile, and again when asked again") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    end_point a;
    end_point b;
    net.connect(1, a, b);
    const auto ask = [&] {
      call_scope scope;
      return a.connection->remind();
    };
    if (!ask())
      return;
    for (int n = 1; n <= 20; ++n) {
      REQUIRE(nodes.until([&] { return a.heard->read([n](listener& l) { return l.reminders >= n; }); }));
      CHECK(a.heard->reminders == n);
      CHECK(ask());
    }
    CHECK(b.heard->reminders == 0);
    CHECK(a.heard->mistakes == 0);
  });
}

TEST_CASE("link transport: what arrives before start is delivered after it") {
  for_each_transport([](transports_under_test& nodes) {
    std::mutex mutex;
    std::shared_ptr<link_connection> accepted;
    end_point mine;
    const auto where = nodes.node(0).listen(nodes.host(0), 0, [&](auto made) {
      std::lock_guard guard{mutex};
      accepted = std::move(made);
    });
    nodes.node(1).connect(where, 20'000, [&](auto made) {
      std::lock_guard guard{mutex};
      mine.connection = std::move(made.value());
    });
    REQUIRE(nodes.until([&] {
      std::lock_guard guard{mutex};
      return accepted && mine.connection;
    }));
    mine.connection->start(mine.heard);
    mine.write(batch_of(1, 10));
    REQUIRE(nodes.until([&] { return mine.heard->read([](listener& l) { return l.writable == 1; }); }));
    const auto theirs = std::make_shared<listener>();
    accepted->start(theirs);
    CHECK(nodes.until([&] { return theirs->read([](listener& l) { return l.batches.size() == 1; }); }));
    for (std::size_t i = 0; i < 3; ++i)
      nodes.node(i).stop();
  });
}

TEST_CASE("S-64 a close is known at both ends, once, after the batch that was under way") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    end_point a;
    end_point b;
    net.connect(1, a, b);
    a.write(batch_of(7, 100'000));
    {
      call_scope scope;
      a.connection->close();
      a.connection->close();
    }
    const auto over = [](listener& l) { return l.closed == 1; };
    REQUIRE(nodes.until([&] { return a.heard->read(over) && b.heard->read(over); }));
    CHECK(b.heard->batches.size() == 1);
    a.write(batch_of(8, 10)); // dropped
    b.write(batch_of(9, 10));
    b.connection->close();
    end_point c;
    end_point d;
    net.connect(2, c, d); // a new connection, behind all of that
    c.write(batch_of(1, 1));
    REQUIRE(nodes.until([&] { return d.heard->read([](listener& l) { return l.batches.size() == 1; }); }));
    CHECK(a.heard->read(over));
    CHECK(b.heard->read(over));
    CHECK(b.heard->read([](listener& l) { return l.batches.size() == 1; }));
    CHECK(a.heard->mistakes + b.heard->mistakes == 0);
  });
}

TEST_CASE("link transport: a batch above the limit ends the connection and is not delivered") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    end_point a;
    end_point b;
    net.connect(1, a, b, handshake_batch_bytes);
    a.write(batch_of(1, handshake_batch_bytes));
    REQUIRE(nodes.until([&] { return b.heard->read([](listener& l) { return l.batches.size() == 1; }); }));
    REQUIRE(nodes.until([&] { return a.heard->read([](listener& l) { return l.writable == 1; }); }));
    a.write(batch_of(2, handshake_batch_bytes + 1));
    const auto over = [](listener& l) { return l.closed == 1; };
    REQUIRE(nodes.until([&] { return a.heard->read(over) && b.heard->read(over); }));
    CHECK(b.heard->batches.size() == 1);
  });
}

TEST_CASE("S-67 connecting to nobody ends in unavailable, once, and disturbs no other connection") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    end_point a;
    end_point b;
    net.connect(1, a, b);
    const auto nowhere = nodes.node(2).listen(nodes.host(2), 0, [](auto) {});
    std::atomic<int> answers{0};
    nodes.node(1).connect(nowhere, 20'000, [&](auto made) { answers += made.has_value() ? 1 : 100; });
    REQUIRE(nodes.until([&] { return answers == 1; }));
    nodes.node(2).stop(); // nobody listens there any more
    answers = 0;
    std::atomic<bool> unavailable{false};
    nodes.node(1).connect(nowhere, 500, [&](auto made) {
      unavailable = !made.has_value() && made.error().kind() == error_kind::unavailable;
      ++answers;
    });
    REQUIRE(nodes.until([&] { return answers == 1; }));
    CHECK(unavailable);
    a.write(batch_of(1, 5));
    CHECK(nodes.until([&] { return b.heard->read([](listener& l) { return l.batches.size() == 1; }); }));
    CHECK(answers == 1);
  });
}

TEST_CASE("X-77 a connection that asks for turns gets them, and another one's batch comes between") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    end_point a;
    end_point busy;
    net.connect(1, a, busy);
    end_point c;
    end_point other;
    net.connect(2, c, other);
    constexpr int many = 2'000'000;
    busy.heard->turns_wanted = many;
    a.write(batch_of(1, 10));
    REQUIRE(nodes.until([&] { return busy.heard->read([](listener& l) { return l.turns > 0; }); }));
    c.write(batch_of(1, 10));
    REQUIRE(nodes.until([&] { return other.heard->read([](listener& l) { return l.batches.size() == 1; }); }));
    CHECK(busy.heard->read([](listener& l) { return std::exchange(l.turns_wanted, 1); }) > 1); // still at it
  });
}

TEST_CASE("link transport: stop ends every connection at both ends, and nothing follows it") {
  for_each_transport([](transports_under_test& nodes) {
    wiring net{nodes};
    end_point a;
    end_point b;
    net.connect(1, a, b);
    end_point c;
    end_point d;
    net.connect(2, c, d);
    nodes.node(0).stop();
    const auto over = [](listener& l) { return l.closed == 1; };
    REQUIRE(nodes.until(
      [&] { return a.heard->read(over) && b.heard->read(over) && c.heard->read(over) && d.heard->read(over); }));
    std::atomic<int> answers{0};
    nodes.node(1).connect(net.where(), 300, [&](auto made) { answers += made.has_value() ? 100 : 1; });
    REQUIRE(nodes.until([&] { return answers != 0; }));
    CHECK(answers == 1);
  });
}
