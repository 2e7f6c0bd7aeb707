// Conditional batches through the Redis store, and cold activations over it, beside the same work as a plain script through
// hiredis, pipelined alike, against one redis-server of its own that keeps nothing on disk.
//   bench_redis_bench [part of a row's title]
#include "figures.hpp"

#include "tests/redis/redis_server.hpp"

#include <hiredis/hiredis.h>

#include <zlink/zlink.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct touch {
  std::uint64_t n = 0;
};
struct touched {
  std::uint64_t n = 0;
};
ZLINK_PACKET(touch, "bench.touch", n)
ZLINK_PACKET(touched, "bench.touched", n)

namespace {

using clk = std::chrono::steady_clock;

constexpr int outstanding = 256;
const std::string value(200, 'v');

double per_second(int count, clk::time_point began) {
  return count / std::chrono::duration<double>(clk::now() - began).count();
}

/// Keys that no earlier run has used.
std::string next_key() {
  static std::atomic<int> last{0};
  return "actor/" + std::to_string(++last);
}

/// `rows` times: put if missing, in one script of nothing else.
constexpr const char* raw_script = "for i = 1, #KEYS do if redis.call('EXISTS', KEYS[i]) == 1 then return 0 end end "
                                   "for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i]) end return 1";

double raw_batches(redisContext& to, int batches, int rows) {
  const std::unique_ptr<void, decltype(&::freeReplyObject)> loaded{::redisCommand(&to, "SCRIPT LOAD %s", raw_script),
                                                                   &::freeReplyObject};
  const std::string digest = static_cast<redisReply*>(loaded.get())->str;
  const auto began = clk::now();
  for (int sent = 0, answered = 0; answered < batches;) {
    for (; sent < batches && sent - answered < outstanding; ++sent) {
      std::vector<std::string> words = {"EVALSHA", digest, std::to_string(rows)};
      for (int i = 0; i < rows; ++i)
        words.push_back("{raw}:" + next_key());
      words.insert(words.end(), static_cast<std::size_t>(rows), value);
      std::vector<const char*> texts;
      std::vector<std::size_t> sizes;
      for (const auto& word : words) {
        texts.push_back(word.data());
        sizes.push_back(word.size());
      }
      ::redisAppendCommandArgv(&to, static_cast<int>(texts.size()), texts.data(), sizes.data());
    }
    // Half of them are taken in before more are sent, so that both ends work on many at a time.
    for (const int until = std::min(batches, answered + outstanding / 2); answered < until; ++answered) {
      void* reply = nullptr;
      if (::redisGetReply(&to, &reply) != REDIS_OK || static_cast<redisReply*>(reply)->integer != 1)
        std::abort();
      ::freeReplyObject(reply);
    }
  }
  return per_second(batches, began);
}

/// Keeps so many things going until `count` have ended, from any thread.
class kept_going {
public:
  /// `begin(ended)` starts one and calls `ended()` once.
  using begin_one = std::function<void(std::function<void()> ended)>;
  kept_going(int count, begin_one begin) : begin_(std::move(begin)), left_(count), open_(count) {}

  double rate() {
    const auto began = clk::now();
    const int all = open_;
    for (int i = 0; i < outstanding; ++i)
      next();
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [&] { return open_ == 0; });
    return per_second(all, began);
  }

private:
  void next() {
    if (left_.fetch_sub(1) > 0)
      begin_([this] {
        next();
        const std::lock_guard guard{mutex_};
        if (--open_ == 0)
          changed_.notify_all();
      });
  }

  const begin_one begin_;
  std::atomic<int> left_;
  int open_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

double our_batches(zlink::location_store& store, int batches, int rows) {
  return kept_going{batches, [&store, rows](auto ended) {
                      zlink::store_batch batch;
                      for (int i = 0; i < rows; ++i) {
                        const auto key = next_key();
                        batch.conditions.push_back({zlink::store_condition::test::missing, key, {}});
                        batch.mutations.push_back({key, value, std::nullopt});
                      }
                      store.write(std::move(batch), [ended](zlink::store_outcome<zlink::store_write_result> outcome) {
                        if (!outcome || !outcome->applied)
                          std::abort();
                        ended();
                      });
                    }}
    .rate();
}

class idle_spot final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&idle_spot::on_touch>(); }

private:
  touched on_touch(const touch& t, const zlink::message_context&) { return {t.n}; }
};

/// Spots that come to life with a request each.
double activations(zlink::host& host, int count) {
  return kept_going{count, [&host](auto ended) {
                      host.spots().request_to_spot(next_key(), touch{1}).instance_spot("idle").submit<touched>().then(
                        [ended](auto answer) {
                          if (!answer)
                            std::abort();
                          ended();
                        });
                    }}
    .rate();
}

} // namespace

int main(int argc, char** argv) {
  bench::choose_rows(argc, argv);
  zlink::test::redis_server server;
  const auto store = zlink::make_redis_location_store(server.options("bench"));
  const std::unique_ptr<redisContext, decltype(&::redisFree)> raw{::redisConnectUnix(server.socket_path().c_str()),
                                                                  &::redisFree};
  for (const auto& [rows, batches] : {std::pair{1, 20'000}, std::pair{8, 5'000}, std::pair{64, 800}})
    bench::compare(
      "batches of " + std::to_string(rows) + " new rows of 200 B, 256 outstanding", "batches/s",
      [&, rows = rows, batches = batches] { return raw_batches(*raw, batches, rows); },
      [&, rows = rows, batches = batches] {
        return our_batches(*store, batches, rows);
      },
      0);
  zlink::host host;
  host.use_location_store(zlink::make_redis_location_store(server.options("bench:location")))
    .use_relocation_store(zlink::make_redis_relocation_store(server.options("bench:relocation")));
  host.add_mesh("bench").object_server().add_instance_spot_factory<idle_spot>(
    "idle", [](auto& factory) { factory.disable_relocation(); });
  host.start();
  bench::compare(
    "cold activations, 256 outstanding, beside one row a batch", "/s", [&] { return raw_batches(*raw, 20'000, 1); },
    [&] { return activations(host, 5'000); }, 0.4);
}
