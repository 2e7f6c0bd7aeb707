// People (Actors) who meet in rooms (User Spots) and halls (Entry Spots), all of them doing what a test says, and what they
// leave behind.
#pragma once

#include "tests/contract/creation/scripted_spots.hpp"

#include <set>

namespace membership_test {

using namespace std::chrono_literals;
using creation_test::barrier;
using creation_test::failure;
using creation_test::failure_of;
using creation_test::stored;
using zlink::error_kind;
using zlink::join_outcome;
using zlink::testing::mesh;
using zlink::testing::store_call;
using zlink::testing::store_fault;
using zlink::testing::store_operation;

struct say {
  std::string word;
};
struct said {
  std::string word;
  std::string spot;
  std::uint64_t generation = 0;
  std::uint64_t instance = 0;
};
struct tell {
  std::string word;
};
struct go {
  std::string room; ///< empty: home to the Entry Spot
  std::string word; ///< of the request
};
struct ticket {
  std::string word;
};
struct plain {
  std::string word;
};
ZLINK_PACKET(say, "member.say", word)
ZLINK_PACKET(said, "member.said", word, spot, generation, instance)
ZLINK_PACKET(tell, "member.tell", word)
ZLINK_PACKET(go, "member.go", room, word)
ZLINK_PACKET(ticket, "member.ticket", word)
ZLINK_PACKET(plain, "member.plain", word)

class person;

/// Entry Spots have ids that nobody knows.
inline std::string place_name(const std::string& spot_id) {
  return spot_id.find("-entry-") == std::string::npos ? spot_id : "hall";
}

/// The script of a test and its evidence. Outlives the mesh.
struct stage {
  std::vector<std::string> trace;
  int alive = 0;
  std::uint64_t instances = 0;
  std::function<void(const std::string& step)> at;                     ///< at each entry; may throw
  std::function<zlink::task<void>(const std::string& step)> during;    ///< awaited in the callback or handler of that step
  std::function<zlink::accept_reject_response(const std::string& word)> gate;
  std::function<zlink::accept_reject_response(const std::string& word)> birth;
  std::function<zlink::task<void>(zlink::actor& who, const std::string& word)> handler;
  std::vector<zlink::join_completion> ends;
  std::vector<std::string> sent_home; ///< by a room's handler for "out"
  std::function<zlink::task<void>(const zlink::spot_context& context)> in_room; ///< awaited in a room's handler for "do"
  std::function<zlink::task<void>(zlink::actor& who)> leave; ///< of the room that was made last
  std::function<zlink::task<bool>()> close;                  ///< of it
  std::function<void(person& who)> configured;               ///< called in its configure()
  std::function<zlink::task<void>(person& who, const zlink::timer_tick& tick)> ticked; ///< awaited in on_tick

  zlink::task<void> happened(std::string step) {
    trace.push_back(step);
    if (at)
      at(step);
    return during ? during(step) : zlink::task<void>::done();
  }
  int count(const std::string& prefix) const {
    int n = 0;
    for (const auto& one : trace)
      n += one.starts_with(prefix) ? 1 : 0;
    return n;
  }
  void hold(std::string step, barrier& until) {
    during = [step = std::move(step), &until](const std::string& now) {
      return now.starts_with(step) ? until.passed() : zlink::task<void>::done();
    };
  }
};

class person final : public zlink::actor {
public:
  person(zlink::actor_context context, stage& on) : actor(std::move(context)), on_(on), instance(++on.instances) { ++on_.alive; }
  ~person() override { --on_.alive; }
  void configure() override {
    on_.trace.push_back("configure " + context().actor_id());
    if (on_.configured)
      on_.configured(*this);
  }
  zlink::task<void> on_join_completed(const zlink::join_completion& join) override {
    std::string text = "completed " + context().actor_id() + ' ' + to_string(join.outcome);
    if (join.reply)
      text += ' ' + join.reply->as<ticket>().word;
    if (join.error)
      text += ' ' + std::string{zlink::to_string(join.error->kind())};
    on_.ends.push_back(join);
    co_await on_.happened(text);
  }

  // For the tests that register them as timer handlers.
  zlink::task<void> on_tick(const zlink::timer_tick& tick) {
    co_await on_.happened(tick_text("tick", tick));
    if (on_.ticked)
      co_await on_.ticked(*this, tick);
  }
  void on_other_tick(const zlink::timer_tick& tick) { on_.trace.push_back(tick_text("other tick", tick)); }

private:
  std::string tick_text(const std::string& what, const zlink::timer_tick& tick) const {
    const auto number = std::to_string(tick.delivery_index);
    return what + ' ' + context().actor_id() + ' ' + number + " in " + place_name(context().spot_id());
  }
  stage& on_;

public:
  const std::uint64_t instance;
};

template <class Base, class Context>
class place : public Base {
public:
  place(Context context, stage& on) : Base(std::move(context)), on_(on) {}
  void configure() override {
    this->context()
      .handlers()
      .template add_actor_handler<&place::on_say>()
      .template add_actor_handler<&place::on_tell>()
      .template add_actor_handler<&place::on_go>()
      .template add_actor_handler<&place::on_plain>();
  }
  zlink::task<void> on_joined_actor(person& who) override {
    const auto step = "joined " + name() + ' ' + who.context().actor_id();
    co_await on_.happened(step);
  }
  zlink::task<void> on_leave_actor(person& who) override {
    const auto step = "left " + name() + ' ' + who.context().actor_id();
    co_await on_.happened(step);
  }

  zlink::task<void> on_disconnect_actor(person& who) override {
    const auto step = "disconnected " + name() + ' ' + who.context().actor_id();
    co_await on_.happened(step);
  }

protected:
  std::string name() const { return place_name(this->context().spot_id()); }
  stage& on_;

private:
  zlink::task<said> on_say(person& who, const zlink::message_context&, const say& m) {
    const auto step = "handle " + who.context().actor_id() + ' ' + m.word + " in " + name();
    co_await on_.happened(step);
    if (on_.handler)
      co_await on_.handler(who, m.word);
    said answer{m.word, who.context().spot_id(), who.context().object_generation(), who.instance};
    co_return answer;
  }
  void on_tell(person& who, const zlink::message_context&, const tell& m) {
    on_.trace.push_back("handle " + who.context().actor_id() + ' ' + m.word + " in " + name());
  }
  /// No coroutine, though it returns a task.
  zlink::task<said> on_plain(person& who, const zlink::message_context&, const plain& m) {
    who.context().join_spot("r").defer();
    if (m.word == "throw")
      throw std::runtime_error{"a fault of a plain handler"};
    return zlink::detail::make_ready_task(zlink::result<said>{said{m.word, ""}});
  }
  void on_go(person& who, const zlink::message_context&, const go& m) {
    on_.trace.push_back("go " + who.context().actor_id());
    if (m.room.empty())
      who.context().join_entry_spot().timeout(2s).defer();
    else
      who.context().join_spot(m.room, ticket{m.word}).timeout(2s).defer();
  }
};

class hall final : public place<zlink::entry_spot<person>, zlink::entry_spot_context> {
public:
  using place::place;
  zlink::task<zlink::actor_create_response> on_create_actor(person& who, const zlink::message& request) override {
    const auto word = request.empty() ? std::string{} : request.as<ticket>().word;
    const auto step = "create " + who.context().actor_id() + (word.empty() ? "" : ' ' + word);
    co_await on_.happened(step);
    co_return on_.birth ? on_.birth(word) : zlink::accept();
  }
  zlink::task<void> on_initialize() override {
    return on_.during ? on_.during("initialize hall") : zlink::task<void>::done();
  }
  zlink::task<void> on_closing(const zlink::spot_closing_context& why, std::stop_token) override {
    on_.trace.push_back(std::string{"closing hall "} + to_string(why.reason));
    co_return;
  }
};

class room final : public place<zlink::spot<person>, zlink::spot_context> {
public:
  using place::place;
  void configure() override {
    place::configure();
    context().handlers().add_packet<&room::on_list>();
    on_.leave = [this](zlink::actor& who) { return context().leave_actor(who); };
    on_.close = [this] { return context().close(); };
  }
  zlink::task<zlink::actor_join_response> on_actor_join(std::string actor_id, const zlink::message& request) override {
    const auto word = request.empty() ? std::string{} : request.as<ticket>().word;
    const auto step = "gate " + name() + ' ' + actor_id + (word.empty() ? "" : ' ' + word);
    co_await on_.happened(step);
    co_return on_.gate ? on_.gate(word) : zlink::accept();
  }
  zlink::task<void> on_closing(const zlink::spot_closing_context&, std::stop_token) override {
    on_.trace.push_back("closing " + name() + " with " + std::to_string(readable()));
    co_return;
  }

private:
  std::size_t readable() const {
    try {
      return members().size();
    } catch (const zlink::operation_failed&) {
      return 999;
    }
  }
  zlink::task<said> on_list(const say& m, const zlink::message_context&) {
    if (m.word == "wait") {
      auto waiting = on_.during ? on_.during("list") : zlink::task<void>::done();
      co_await std::move(waiting);
      said waited{"waited", context().spot_id()};
      co_return waited;
    }
    if (m.word == "do") {
      auto doing = on_.in_room(context());
      co_await std::move(doing);
    }
    if (m.word == "out")
      for (person* who : members()) {
        on_.sent_home.push_back(who->context().actor_id());
        co_await context().leave_actor(*who);
      }
    std::string names;
    for (const person* who : members())
      names += who->context().actor_id() + ' ';
    said answer{names, context().spot_id()};
    co_return answer;
  }
};

struct node_settings {
  bool per_actor = false;
};
/// A node with a hall, rooms of type "room", people of type "person".
inline void serve(zlink::mesh_node& node, stage& on, node_settings wanted = {}) {
  auto server = node.object_server();
  server.add_entry_spot<hall>([&on](zlink::entry_spot_context context) { return std::make_unique<hall>(std::move(context), on); });
  server.add_spot_factory<room>("room", [&on, wanted](auto& factory) {
    factory.construct_with([&on](zlink::spot_context context) { return std::make_unique<room>(std::move(context), on); });
    if (wanted.per_actor)
      factory.recreate_on_relocation().per_actor();
    else
      factory.disable_relocation();
  });
  server.add_actor_factory<person>("person", [&on](auto& factory) {
    factory.disable_relocation().construct_with(
      [&on](zlink::actor_context context) { return std::make_unique<person>(std::move(context), on); });
  });
}
inline auto serve_all(stage& on, node_settings wanted = {}) {
  return [&on, wanted](zlink::host& host) { serve(host.add_mesh("m"), on, wanted); };
}
/// Host 0 is a client, the others serve.
inline auto serve_beside_client(stage& on) {
  return [&on](zlink::host& host, std::size_t index) {
    auto& node = host.add_mesh("m");
    if (index == 0)
      node.object_client();
    else
      serve(node, on);
  };
}

// -- calls ------------------------------------------------------------------------------------------------------------------

inline zlink::task<zlink::actor_create_result> make_person(zlink::host& host, std::string id, std::string word = {},
                                                           std::chrono::milliseconds limit = 5s) {
  return host.actors().create(std::move(id), "person").request(ticket{std::move(word)}).timeout(limit).submit();
}
inline zlink::task<zlink::actor_create_result> get_person(zlink::host& host, std::string id, std::chrono::milliseconds limit = 5s) {
  return host.actors().get_or_create(std::move(id), "person").timeout(limit).submit();
}
inline zlink::task<said> talk(zlink::host& host, std::string id, std::string word, std::chrono::milliseconds limit = 5s) {
  return host.actors().request_to_actor(std::move(id), say{std::move(word)}).timeout(limit).submit<said>();
}
inline zlink::task<void> tell_person(zlink::host& host, std::string id, std::string word) {
  return host.actors().send_to_actor(std::move(id), tell{std::move(word)}).submit();
}
inline zlink::task<void> send_off(zlink::host& host, std::string id, std::string to, std::string word = {}) {
  return host.actors().send_to_actor(std::move(id), go{std::move(to), std::move(word)}).submit();
}
inline zlink::spot_ref open_room(mesh& net, const std::string& id, std::size_t host = 0) {
  return net.run(net.host(host).spots().get_or_create(id, "room").submit()).spot;
}
inline std::string names_in(mesh& net, const std::string& id) {
  return net.run(net.host(0).spots().request_to_spot(id, say{"list"}).submit<said>()).word;
}
/// Sends somebody somewhere and waits until that has ended.
inline void move_person(mesh& net, stage& on, const std::string& id, const std::string& to) {
  const auto before = on.ends.size();
  net.run(send_off(net.host(0), id, to));
  net.run_until([&] { return on.ends.size() > before; });
  net.run_until_idle();
}

// -- the store ----------------------------------------------------------------------------------------------------------------

inline std::optional<zlink::placement::row_record> person_row(mesh& net, const std::string& id) {
  const auto seen = stored<zlink::placement::object_record>(net, zlink::placement::actor_key(id));
  const auto* row = zlink::placement::row_in(seen);
  return row == nullptr ? std::nullopt : std::optional{*row};
}
inline std::string person_version(mesh& net, const std::string& id) {
  return stored<zlink::placement::object_record>(net, zlink::placement::actor_key(id)).version;
}
inline zlink::placement::slot_bucket people_on(mesh& net, std::size_t host) {
  const auto seen = stored<zlink::placement::capacity_record>(
    net, zlink::placement::capacity_key("m", net.host(host).mesh("m").rid()));
  return seen.record ? seen.record->actors : zlink::placement::slot_bucket{};
}

} // namespace membership_test
