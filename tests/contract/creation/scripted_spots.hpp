// Spots whose callbacks do what a test says, what they leave behind, and the store as it really is.
#pragma once

#include "zlink/execution/operation.hpp"
#include "zlink/placement/record_codec.hpp"
#include "zlink/placement/record_keys.hpp"

#include <doctest/doctest.h>
#include <zlink/testing/mesh.hpp>
#include <zlink/zlink.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace creation_test {

using namespace std::chrono_literals;
using zlink::error_kind;
using zlink::testing::mesh;
using zlink::testing::store_call;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

struct wake {
  std::string word;
};
struct hint {
  std::string word;
};
struct order {
  std::string word;
};
struct told {
  std::string word;
  std::uint64_t generation = 0;
  std::string rid;
};
ZLINK_PACKET(wake, "creation.wake", word)
ZLINK_PACKET(hint, "creation.hint", word)
ZLINK_PACKET(order, "creation.order", word)
ZLINK_PACKET(told, "creation.told", word, generation, rid)

/// Holds callbacks and handlers until the test opens it.
class barrier {
public:
  zlink::task<void> passed() {
    if (open_)
      return zlink::task<void>::done();
    waiting_.push_back(zlink::detail::new_counted<zlink::detail::operation<void>>());
    return zlink::task<void>{waiting_.back()};
  }
  std::size_t waiting() const noexcept { return waiting_.size(); }
  void open() {
    open_ = true;
    for (auto& one : std::exchange(waiting_, {}))
      one->set(zlink::result<void>{});
  }

private:
  bool open_ = false;
  std::vector<zlink::detail::counted_ptr<zlink::detail::operation<void>>> waiting_;
};

/// The script of all Spots of a test, and their evidence. Outlives the mesh.
struct stage {
  /// "factory a", "configure a", "create a word", "initialize a", "handle a word", "closing a reason".
  std::vector<std::string> trace;
  int alive = 0;
  /// Called at each step with its name ("factory") and the id; may throw.
  std::function<void(const std::string& step, const std::string& id)> at;
  /// Awaited inside the callback or handler of that step.
  std::function<zlink::task<void>(const std::string& step, const std::string& id)> during;
  /// What `on_create` answers.
  std::function<zlink::spot_create_response(const std::string& word)> answer;
  std::function<void(const zlink::spot_closing_context&, std::stop_token)> closing;
  /// Awaited inside a handler for a `wake`.
  std::function<zlink::task<void>(const zlink::common_spot_context&, const std::string& word)> handler;

  void happened(const std::string& step, const std::string& id, const std::string& more = {}) {
    trace.push_back(step + ' ' + id + (more.empty() ? "" : ' ' + more));
    if (at)
      at(step, id);
  }
  zlink::task<void> wait(const std::string& step, const std::string& id) {
    return during ? during(step, id) : zlink::task<void>::done();
  }
  /// How many entries begin so.
  int count(const std::string& prefix) const {
    int n = 0;
    for (const auto& one : trace)
      n += one.starts_with(prefix) ? 1 : 0;
    return n;
  }
  /// Holds that step until the barrier opens; for other steps nothing waits.
  void hold(std::string step, barrier& until) {
    during = [step = std::move(step), &until](const std::string& now, const std::string&) {
      return now == step ? until.passed() : zlink::task<void>::done();
    };
  }
};

template <class Base>
class scripted : public Base {
public:
  template <class Context>
  scripted(Context context, stage& on) : Base(std::move(context)), on_(on) {
    on_.happened("factory", id());
    ++on_.alive;
  }
  ~scripted() override { --on_.alive; }

  void configure() override {
    on_.happened("configure", id());
    this->context().handlers().template add_packet<&scripted::on_wake>();
    this->context().handlers().template add_packet<&scripted::on_hint>();
  }
  zlink::task<void> on_initialize() override {
    on_.happened("initialize", id());
    co_await on_.wait("initialize", id());
  }
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token cleanup) override {
    on_.happened("closing", id(), to_string(why.reason));
    if (on_.closing)
      on_.closing(why, cleanup);
    co_await on_.wait("closing", id());
  }

protected:
  const std::string& id() const { return this->context().spot_id(); }
  stage& on_;

private:
  zlink::task<told> on_wake(const wake& m, const zlink::message_context&) {
    on_.happened("handle", id(), m.word);
    co_await on_.wait("handle", id());
    if (on_.handler)
      co_await on_.handler(this->context(), m.word);
    told answer{m.word, this->context().object_generation(), this->context().node_rid()};
    co_return answer;
  }
  void on_hint(const hint& m, const zlink::message_context&) { on_.happened("handle", id(), m.word); }
};

using cell = scripted<zlink::instance_spot>;
using hall = scripted<zlink::entry_spot<>>;

class room final : public scripted<zlink::spot<>> {
public:
  using scripted::scripted;
  zlink::task<zlink::spot_create_response> on_create(const zlink::message& request) override {
    const auto word = request.empty() ? std::string{} : request.as<order>().word.substr(0, 20);
    on_.happened("create", id(), word);
    co_await on_.wait("create", id());
    co_return on_.answer ? on_.answer(word) : zlink::accept();
  }
};

inline void add_cells(zlink::object_server_builder server, stage& on, const std::string& type = "cell",
                      std::uint32_t limit = 0) {
  server.add_instance_spot_factory<cell>(type, [&](auto& factory) {
    factory.disable_relocation().limit(limit).construct_with(
      [&on](zlink::instance_spot_context context) { return std::make_unique<cell>(std::move(context), on); });
  });
}
inline void add_rooms(zlink::object_server_builder server, stage& on, const std::string& type = "room",
                      std::uint32_t limit = 0) {
  server.add_spot_factory<room>(type, [&](auto& factory) {
    factory.disable_relocation().limit(limit).construct_with(
      [&on](zlink::spot_context context) { return std::make_unique<room>(std::move(context), on); });
  });
}
inline void add_hall(zlink::object_server_builder server, stage& on) {
  server.add_entry_spot<hall>([&on](zlink::entry_spot_context context) { return std::make_unique<hall>(std::move(context), on); });
}
/// Every host serves cells and rooms in mesh "m".
inline auto serve(stage& on) {
  return [&on](zlink::host& host) {
    auto server = host.add_mesh("m").object_server();
    add_cells(server, on);
    add_rooms(server, on);
  };
}
/// Host 0 is a client of mesh "m", the others serve.
inline auto serve_beside_client(stage& on) {
  return [&on](zlink::host& host, std::size_t index) {
    if (index == 0)
      host.add_mesh("m").object_client();
    else
      serve(on)(host);
  };
}

// -- calls ------------------------------------------------------------------------------------------------------------

/// To a Spot that is there.
inline zlink::task<told> ask(zlink::host& host, std::string id, std::string word, std::chrono::milliseconds limit = 5s) {
  return host.spots().request_to_spot(std::move(id), wake{std::move(word)}).timeout(limit).submit<told>();
}
/// With Instance intent.
inline zlink::task<told> rouse(zlink::host& host, std::string id, std::string word, std::chrono::milliseconds limit = 5s) {
  return host.spots().request_to_spot(std::move(id), wake{std::move(word)}).instance_spot("cell").timeout(limit).submit<told>();
}
inline zlink::task<zlink::spot_create_result> open_room(zlink::host& host, std::string id, std::string word = {},
                                                        std::chrono::milliseconds limit = 5s) {
  return host.spots().get_or_create(std::move(id), "room").request(order{std::move(word)}).timeout(limit).submit();
}
template <class T>
std::optional<error_kind> failure_of(const zlink::result<T>& outcome) {
  return outcome.has_value() || outcome.is_cancelled() ? std::nullopt : std::optional{outcome.error().kind()};
}
/// How a call that is expected to fail ends; nothing if it ends well.
template <class T>
std::optional<error_kind> failure(mesh& net, zlink::task<T> call) {
  return failure_of(net.run(zlink::as_result(std::move(call))));
}

// -- the store --------------------------------------------------------------------------------------------------------

template <class Record>
zlink::placement::observed<Record> stored(mesh& net, const std::string& key) {
  zlink::placement::observed<Record> seen;
  net.store().location()->read(key, [&seen](zlink::store_outcome<zlink::store_read_result> answer) {
    auto judged = zlink::placement::observe<Record>(*answer);
    seen = std::get<0>(std::move(judged));
  });
  return seen;
}
inline std::optional<zlink::placement::row_record> row_of(mesh& net, const std::string& id) {
  const auto seen = stored<zlink::placement::object_record>(net, zlink::placement::spot_key(id));
  const auto* row = zlink::placement::row_in(seen);
  return row == nullptr ? std::nullopt : std::optional{*row};
}
inline zlink::placement::slot_bucket spots_on(mesh& net, std::size_t host) {
  const auto seen = stored<zlink::placement::capacity_record>(
    net, zlink::placement::capacity_key("m", net.host(host).mesh("m").rid()));
  return seen.record ? seen.record->spots : zlink::placement::slot_bucket{};
}
inline std::optional<zlink::placement::descriptor_record> descriptor_of(mesh& net, const std::string& rid) {
  return stored<zlink::placement::descriptor_record>(net, zlink::placement::descriptor_key("m", rid)).record;
}
/// Writes past all hosts.
inline void put(mesh& net, const std::string& key, std::string bytes) {
  zlink::store_batch batch;
  batch.mutations.push_back({key, std::move(bytes), std::nullopt});
  net.store().location()->write(std::move(batch), [](auto answer) { REQUIRE(answer); });
}
/// Counts the calls of a host that name a Spot's row.
struct row_spy {
  int reads = 0;
  int writes = 0;
  void watch(mesh& net, std::size_t host, const std::string& id) {
    net.faults(host).set_rule([this, key = zlink::placement::spot_key(id)](const store_call& call) {
      if (call.touches(key))
        ++(call.what == store_operation::write ? writes : reads);
      return store_fault::none;
    });
  }
};

} // namespace creation_test
