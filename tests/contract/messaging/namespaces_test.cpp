// One packet name in every namespace, metadata on every path, and what each call and registry offers (03 sections 2, 3, 6, 8).
#include "tests/contract/messaging/probe_spots.hpp"

#include <concepts>

namespace zlink::test::messaging::namespaces {
namespace {

using namespace std::chrono_literals;
using testing::mesh;

struct item {
  std::string word;
};
struct hit {
  std::string where;
};
ZLINK_PACKET(item, "space.item", word)
ZLINK_PACKET(hit, "space.hit", where)

using hits = std::vector<std::string>;

std::string color_of(const message_context& context) { return std::string{context.metadata("color")}; }

class guest final : public actor {
public:
  using actor::actor;
};

template <class Base, class Context>
class everything : public Base {
public:
  everything(Context context, hits& seen) : Base(std::move(context)), seen_(seen) {}
  void configure() override {
    const auto handlers = this->context().handlers();
    handlers.template add_packet<&everything::on_item>()
      .template add_actor_handler<&everything::on_guest>()
      .template add_subscribe<&everything::on_event>("c", "t");
  }
  task<void> on_joined_actor(guest&) override { return task<void>::done(); }
  task<void> on_leave_actor(guest&) override { return task<void>::done(); }

private:
  hit on_item(const item&, const message_context& context) { return {"spot " + color_of(context)}; }
  hit on_guest(guest&, const message_context& context, const item&) { return {"actor " + color_of(context)}; }
  void on_event(const item&, const message_context& context) { seen_.push_back("event " + color_of(context)); }

  hits& seen_;
};
using room = everything<spot<guest>, spot_context>;
using hall = everything<entry_spot<guest>, entry_spot_context>;

class cold final : public instance_spot {
public:
  using instance_spot::instance_spot;
  void configure() override { context().handlers().add_packet<&cold::on_item>(); }

private:
  hit on_item(const item&, const message_context& context) { return {"instance " + color_of(context)}; }
};

TEST_CASE("M-49 M-41 one packet name in all namespaces: each call meets its own handler, with its metadata") {
  hits seen;
  mesh net{2};
  net.start([&](host& started, std::size_t index) {
    auto& node = started.add_mesh("m");
    if (index == 0) {
      node.object_client().add_channel_client("c");
      return;
    }
    node.add_node_handler([](const item&, const message_context& context) { return hit{"node " + color_of(context)}; });
    node.add_channel_server("c").add_handler(
      [](const item&, const message_context& context) { return hit{"channel " + color_of(context)}; });
    auto server = node.object_server();
    server.add_entry_spot<hall>([&seen](entry_spot_context context) { return std::make_unique<hall>(std::move(context), seen); });
    server.add_spot_factory<room>("room", [&seen](auto& factory) {
      factory.disable_relocation().construct_with([&seen](spot_context context) { return std::make_unique<room>(std::move(context), seen); });
    });
    server.add_instance_spot_factory<cold>("cold", [](auto& factory) { factory.disable_relocation(); });
    server.add_actor_factory<guest>("guest", [](auto& factory) { factory.disable_relocation(); });
  });
  auto& from = net.host(0);
  const auto rid = net.host(1).mesh("m").rid();
  net.run(from.spots().get_or_create("same", "room").submit());
  net.run(from.actors().create("same", "guest").submit()); // ids of Spots and Actors do not meet either (C-51)
  const auto asked = [&](auto call) { return net.run(call.metadata("color", "red").template submit<hit>()).where; };
  CHECK(asked(from.nodes().request_to_node("m", rid, item{"x"})) == "node red");
  CHECK(asked(from.channels().request_to_channel("c", item{"x"})) == "channel red");
  CHECK(asked(from.spots().request_to_spot("same", item{"x"})) == "spot red");
  CHECK(asked(from.actors().request_to_actor("same", item{"x"})) == "actor red");
  CHECK(asked(from.spots().request_to_spot("new", item{"x"}).instance_spot("cold")) == "instance red");
  CHECK(seen.empty());
  net.run(from.channels().publish("c", "t", item{"x"}).metadata("color", "red").submit());
  net.run_until_idle();
  CHECK(seen == hits{"event red", "event red"}); // the room and the Entry Spot
}

template <class Call>
concept has_metadata = requires(Call& c) { c.metadata("k", "v"); };
template <class Call>
concept has_timeout = requires(Call& c) { c.timeout(1s); };
template <class Call>
concept has_request_submit = requires(Call& c) { c.template submit<answer>(); };
template <class Call>
concept has_yield = requires(Call& c) { c.template yield<answer>(); };
template <class Call>
concept has_send_submit = requires(Call& c) {
  { c.submit() } -> std::same_as<task<void>>;
};
template <class Call>
constexpr bool is_send = has_metadata<Call> && has_send_submit<Call> && !has_timeout<Call> && !has_yield<Call>;
template <class Call>
constexpr bool is_request = has_metadata<Call> && has_timeout<Call> && has_request_submit<Call> && has_yield<Call>;
template <class Call>
concept has_intent = requires(Call& c) { c.instance_spot(); };

TEST_CASE("M-12 X-33 what each call offers") {
  static_assert(is_send<spot_send_call> && is_send<actor_send_call> && is_send<node_send_call> && is_send<channel_send_call>);
  static_assert(is_send<publish_call>);
  static_assert(is_request<spot_request_call> && is_request<actor_request_call> && is_request<node_request_call>);
  static_assert(is_request<channel_request_call>);
  static_assert(has_intent<spot_send_call> && has_intent<spot_request_call>);
  static_assert(!has_intent<actor_send_call> && !has_intent<actor_request_call> && !has_intent<channel_send_call>);
  static_assert(!has_yield<join_call> && !has_send_submit<join_call>); // its only terminal is defer (J-50)
  CHECK(true);
}

template <class Context>
concept speaks = requires(const Context& c) {
  c.outbound().send_to_spot("s", item{});
  c.outbound().request_to_spot("s", item{});
  c.outbound().send_to_actor("a", item{});
  c.outbound().request_to_actor("a", item{});
  c.outbound().send_to_channel("c", item{});
  c.outbound().request_to_channel("c", item{});
  c.outbound().publish("c", "t", item{});
};
template <class Registry>
concept has_subscriptions = requires(const Registry& r) { r.template add_subscribe<&cold::configure>("c", "t"); };
template <class Registry>
concept has_actor_handlers = requires(const Registry& r) { r.template add_actor_handler<&cold::configure>(); };
template <class Context>
concept leaves = requires(const Context& c, guest& who) { c.leave_actor(who); };
template <class Context>
concept destroys = requires(const Context& c, guest& who) { c.destroy_actor(who); };
template <class Context>
concept closes = requires(const Context& c) { c.close(); };

TEST_CASE("M-20 M-51 M-157 J-2 J-157 C-138 C-139 what contexts and registries of each kind offer") {
  static_assert(speaks<instance_spot_context> && speaks<spot_context> && speaks<entry_spot_context> && speaks<actor_context>);
  static_assert(!has_subscriptions<instance_spot_handler_registry> && !has_actor_handlers<instance_spot_handler_registry>);
  static_assert(leaves<spot_context> && !leaves<entry_spot_context> && !leaves<instance_spot_context>);
  static_assert(destroys<entry_spot_context> && !destroys<spot_context> && !destroys<instance_spot_context>);
  static_assert(closes<spot_context> && closes<instance_spot_context> && !closes<entry_spot_context>);
  mesh net{1};
  std::vector<std::string> mistakes;
  try {
    net.start([](host& started) {
      started.add_mesh("m").object_client().add_node_handler([](const item&, const message_context&) {});
    });
  } catch (const configuration_error& what) {
    mistakes = what.mistakes();
  }
  CHECK(mistakes.size() == 1);
}

TEST_CASE("M-157 registration belongs into configure") {
  hits seen;
  mesh net{1};
  static std::string end;
  end.clear();
  struct late final : spot<guest> {
    using spot::spot;
    void configure() override { context().handlers().add_packet<&late::on_item>(); }
    hit on_item(const item&, const message_context&) {
      for (const int which : {0, 1, 2})
        try {
          if (which == 0)
            context().handlers().add_packet<&late::on_item>();
          else if (which == 1)
            context().handlers().add_actor_handler<&late::on_guest>("another name");
          else
            context().handlers().add_subscribe<&late::on_event>("c", "t");
        } catch (const operation_failed& failed) {
          end += std::string{zlink::to_string(failed.kind())} + ' ';
        }
      return {"spot"};
    }
    hit on_guest(guest&, const message_context&, const item&) { return {"actor"}; }
    void on_event(const item&, const message_context&) {}
    task<void> on_joined_actor(guest&) override { return task<void>::done(); }
    task<void> on_leave_actor(guest&) override { return task<void>::done(); }
  };
  net.start([](host& started) {
    auto& node = started.add_mesh("m");
    node.add_channel_client("c");
    node.object_server().add_spot_factory<late>("late", [](auto& factory) { factory.disable_relocation(); });
  });
  net.run(net.host(0).spots().get_or_create("s", "late").submit());
  net.run(net.host(0).spots().request_to_spot("s", item{"x"}).submit<hit>());
  CHECK(end == "invalid_operation invalid_operation invalid_operation ");
}

} // namespace
} // namespace zlink::test::messaging::namespaces
