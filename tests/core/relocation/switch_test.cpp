// The temporary queue at an address of the object table, with threads that deliver while it comes and goes (06 section 13). Runs
// under the thread sanitizer.
#include "relocation/checksum.hpp"
#include "relocation/temporary_queue.hpp"
#include "zlink/objects/object_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <latch>
#include <set>
#include <thread>

namespace {

using namespace zlink::detail;

struct numbered {
  std::uint64_t value = 0;
};
ZLINK_PACKET(numbered, "switch.numbered", value)

record* make_numbered(std::uint64_t value) {
  auto* r = make_record(record_kind::send);
  r->body.emplace<numbered>(numbered{value});
  return r;
}
std::uint64_t number_in(record* r) {
  const auto value = r->body.get<numbered>()->value;
  free_record(r);
  return value;
}

constexpr std::uint64_t threads = 3;
constexpr std::uint64_t of_each = 4'000;

/// What one thread found: its message was taken by whatever stood there, or nothing did.
struct sender {
  std::vector<std::uint64_t> taken;
  std::vector<std::uint64_t> alone;
  void run(object_table& table, std::uint64_t first, std::latch& go) {
    go.arrive_and_wait();
    for (auto value = first; value < first + of_each; ++value) {
      auto* r = make_numbered(value);
      const auto done = table.deliver("a", r, false, {}, [](hosted_object&) { return true; });
      if (done.found)
        taken.push_back(value);
      else
        alone.push_back(number_in(r));
    }
  }
};

TEST_CASE("L-101 L-105 L-157 a message meets the queue or what comes after it, never both and never neither, in the order of its sender") {
  const auto live = live_records();
  object_table table;
  std::vector<std::uint64_t> kept; // by the queues, one after the other
  std::vector<sender> senders(threads);
  {
    std::latch go{threads + 1};
    std::vector<std::jthread> running;
    for (std::uint64_t i = 0; i < threads; ++i)
      running.emplace_back([&, i] { senders[i].run(table, i * of_each, go); });
    go.arrive_and_wait();
    for (int round = 0; round < 200; ++round) { // an attempt after the other
      const auto queue = new_counted<temporary_queue>(std::vector<object_generation>{{1}});
      const auto part = queue->part(0);
      table.divert("a", part);
      std::this_thread::yield();
      for (auto& one : queue->take_part(0)) // as the merge does, then what has come in between, under the lock
        kept.push_back(number_in(one.r));
      table.end_detour("a", *part, [&] {
        for (auto& one : queue->end_part(0))
          kept.push_back(number_in(one.r));
      });
    }
  }
  std::vector<std::uint64_t> taken;
  std::size_t alone = 0;
  for (const auto& one : senders) {
    taken.insert(taken.end(), one.taken.begin(), one.taken.end());
    alone += one.alone.size();
  }
  CHECK(taken.size() + alone == threads * of_each);
  for (std::uint64_t i = 0; i < threads; ++i) { // nothing of one sender overtakes
    std::vector<std::uint64_t> mine;
    std::ranges::copy_if(kept, std::back_inserter(mine), [i](auto value) { return value / of_each == i; });
    CHECK(std::ranges::is_sorted(mine));
    CHECK(mine == senders[i].taken);
  }
  CHECK(live_records() == live);
}

TEST_CASE("L-106 L-137 a batch that comes again takes the place of what was relayed, while others append") {
  const auto live = live_records();
  const auto queue = new_counted<temporary_queue>(std::vector<object_generation>{{1}});
  constexpr std::uint64_t batch_size = 50;
  constexpr std::uint32_t batches = 40;
  std::latch go{2};
  std::jthread others{[&] {
    go.arrive_and_wait();
    for (std::uint64_t value = 1000; value < 1000 + of_each; ++value) {
      staged_record one{make_numbered(value), {}};
      CHECK(queue->append(0, one));
    }
  }};
  go.arrive_and_wait();
  std::uint32_t sum = 0;
  for (std::uint32_t batch = 1; batch <= batches; ++batch) {
    sum = 0;
    for (std::uint64_t value = 0; value < batch_size; ++value) {
      const zlink::bytes frame{static_cast<std::byte>(value)};
      sum = crc32c(sum, frame);
      staged_record one{make_numbered(value), {}};
      CHECK(queue->relay(0, batch, frame, one));
    }
  }
  others.join();
  const auto relayed = queue->before_cutover();
  CHECK(relayed.batch == batches);
  CHECK(relayed.records == batch_size);
  CHECK(relayed.sum == sum);
  std::vector<std::uint64_t> all;
  for (auto& one : queue->end_part(0))
    all.push_back(number_in(one.r));
  CHECK(all.size() == batch_size + of_each);
  CHECK(std::ranges::is_sorted(all)); // the batch first, then the rest as it came
  CHECK(live_records() == live);
}

/// The records of one sending, as far as `upto`; what is not taken is told.
std::vector<std::uint64_t> send_batch(temporary_queue& queue, std::uint32_t batch, std::uint64_t from, std::uint64_t upto) {
  std::vector<std::uint64_t> left;
  for (auto value = from; value <= upto; ++value) {
    staged_record one{make_numbered(value), {}};
    if (!queue.relay(0, batch, zlink::bytes{static_cast<std::byte>(value)}, one))
      left.push_back(number_in(one.r));
  }
  return left;
}
std::vector<std::uint64_t> numbers_in(std::vector<staged_record> all) {
  std::vector<std::uint64_t> values;
  for (auto& one : all)
    values.push_back(number_in(one.r));
  return values;
}

TEST_CASE("L-137 L-157 of a batch that comes again during the switch each record is taken once") {
  using values = std::vector<std::uint64_t>;
  for (const std::uint64_t came : {5U, 3U}) { // of the first one: all of it, or a part
    CAPTURE(came);
    const auto live = live_records();
    const auto queue = new_counted<temporary_queue>(std::vector<object_generation>{{1}});
    CHECK(send_batch(*queue, 1, 1, came).empty());
    auto run = numbers_in(queue->take_part(0));
    CHECK(send_batch(*queue, 2, 1, 1).empty());
    for (const auto value : numbers_in(queue->end_part(0)))
      run.push_back(value);
    for (const auto value : send_batch(*queue, 2, 2, 5))
      run.push_back(value);
    CHECK(send_batch(*queue, 3, 1, 5).empty());
    CHECK(run == values{1, 2, 3, 4, 5});
    CHECK(live_records() == live);
  }
}

TEST_CASE("L-137 L-139 a batch that comes again and not all of it takes nothing away of what has come") {
  using values = std::vector<std::uint64_t>;
  const auto live = live_records();
  const auto queue = new_counted<temporary_queue>(std::vector<object_generation>{{1}});
  CHECK(send_batch(*queue, 1, 1, 3).empty());
  CHECK(send_batch(*queue, 2, 1, 2).empty());
  CHECK(queue->before_cutover().records == 2);
  CHECK(send_batch(*queue, 1, 4, 4).empty()); // from the buffers of the former link
  CHECK(queue->before_cutover().records == 2);
  CHECK(send_batch(*queue, 3, 1, 1).empty());
  CHECK(queue->before_cutover().batch == 3);
  CHECK(numbers_in(queue->end_part(0)) == values{1, 2, 3, 4});
  CHECK(live_records() == live);
}

} // namespace
