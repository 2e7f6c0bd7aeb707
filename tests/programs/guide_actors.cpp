// docs/guide/actors.md: Actors, the Spots they belong to, and how they change them.
#include <zlink/zlink.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace std::chrono_literals;
using zlink::sync_wait;

struct passport { std::string name; };
struct refusal { std::string why; };
struct key { int cabin = 0; };
struct go_aboard { std::string ship; };
struct go_ashore {};
struct done {};
struct ask_position {};
struct position { std::string ship; int cabin = 0; };
struct ask_time {};
struct time_aboard { int hours = 0; };

ZLINK_PACKET(passport, "harbour.passport", name)
ZLINK_PACKET(refusal, "harbour.refusal", why)
ZLINK_PACKET(key, "harbour.key", cabin)
ZLINK_PACKET(go_aboard, "harbour.go_aboard", ship)
ZLINK_PACKET(go_ashore, "harbour.go_ashore")
ZLINK_PACKET(done, "harbour.done")
ZLINK_PACKET(ask_position, "harbour.ask_position")
ZLINK_PACKET(position, "harbour.position", ship, cabin)
ZLINK_PACKET(ask_time, "harbour.ask_time")
ZLINK_PACKET(time_aboard, "harbour.time_aboard", hours)

// What belongs to one traveller, wherever that is.
class traveller final : public zlink::actor {
public:
  using actor::actor;

  std::string name;
  int cabin = 0;
  int hours = 0;
  zlink::timer watch;

  void on_hour(const zlink::timer_tick&) { ++hours; }

  zlink::task<void> on_join_completed(const zlink::join_completion& join) override {
    switch (join.outcome) {
      case zlink::join_outcome::accepted: cabin = join.reply ? join.reply->as<key>().cabin : 0; break;
      case zlink::join_outcome::rejected: std::cout << name << ": " << join.reply->as<refusal>().why << '\n'; break;
      case zlink::join_outcome::failed: std::cout << name << ": " << zlink::to_string(join.error->kind()) << '\n'; break;
    }
    co_return;
  }
};

// A User Spot with members. All of them and the ship itself share one gate.
class ship final : public zlink::spot<traveller> {
public:
  using spot::spot;

  void configure() override {
    context().handlers().add_actor_handler<&ship::on_ask>().add_actor_handler<&ship::on_go_ashore>();
    context().handlers().add_actor_handler<&ship::on_ask_time>();
  }

  zlink::task<zlink::actor_join_response> on_actor_join(std::string, const zlink::message&) override {
    if (members().size() >= 2)
      co_return zlink::reject(refusal{"no cabin is free"});
    co_return zlink::accept(key{static_cast<int>(members().size()) + 1});
  }
  zlink::task<void> on_joined_actor(traveller& who) override {
    std::cout << who.name << " is aboard\n";
    who.watch = co_await who.context().add_timer<&traveller::on_hour>("watch", 10ms);
  }
  zlink::task<void> on_leave_actor(traveller&) override { co_return; }

private:
  position on_ask(traveller& who, const zlink::message_context&, const ask_position&) {
    return position{context().spot_id(), who.cabin};
  }
  time_aboard on_ask_time(traveller& who, const zlink::message_context&, const ask_time&) { return time_aboard{who.hours}; }
  zlink::task<done> on_go_ashore(traveller& who, const zlink::message_context&, const go_ashore&) {
    who.watch.cancel();
    co_await context().leave_actor(who);
    std::cout << members().size() << " left aboard\n";
    co_return done{};
  }
};

// The Entry Spot: where Actors come into being, and come home to.
class quay final : public zlink::entry_spot<traveller> {
public:
  using entry_spot::entry_spot;

  void configure() override {
    context().handlers().add_actor_handler<&quay::on_go_aboard>().add_actor_handler<&quay::on_ask>();
  }

  zlink::task<zlink::actor_create_response> on_create_actor(traveller& who, const zlink::message& request) override {
    who.name = request.as<passport>().name;
    if (who.name.empty())
      co_return zlink::reject(refusal{"nobody travels without a name"});
    co_return zlink::accept();
  }
  zlink::task<void> on_joined_actor(traveller&) override { co_return; }
  zlink::task<void> on_leave_actor(traveller&) override { co_return; }

private:
  void on_go_aboard(traveller& who, const zlink::message_context&, const go_aboard& m) {
    who.context().join_spot(m.ship, passport{who.name}).timeout(3s).defer();
  }
  position on_ask(traveller&, const zlink::message_context&, const ask_position&) { return position{"the quay", 0}; }
};

void open_harbour(zlink::host& host) {
  host.add_mesh("sea")
    .actor_limit(10'000)
    .object_server()
    .add_entry_spot<quay>()
    .add_spot_factory<ship>("ship", [](auto& factory) { factory.disable_relocation(); })
    .add_actor_factory<traveller>("traveller", [](auto& factory) { factory.disable_relocation(); });
  host.start();
}

int main() {
  zlink::host host;
  open_harbour(host);
  auto actors = host.actors();
  auto argo = sync_wait(host.spots().get_or_create("argo", "ship").submit()).spot;

  auto nobody = sync_wait(actors.create("x", "traveller").request(passport{}).submit());
  std::cout << zlink::to_string(nobody.state) << ": " << nobody.reply->as<refusal>().why << '\n';

  auto ada = sync_wait(actors.create("ada", "traveller").request(passport{"Ada"}).submit());
  sync_wait(actors.get_or_create("bob", "traveller").request(passport{"Bob"}).submit());
  sync_wait(actors.get_or_create("cyd", "traveller").request(passport{"Cyd"}).submit());

  for (const std::string id : {"ada", "bob", "cyd"}) {
    actors.send_to_actor(id, go_aboard{"argo"}).submit();
    auto where = sync_wait(actors.request_to_actor(id, ask_position{}).submit<position>()); // waits behind the Join
    std::cout << id << ": " << where.ship << ", cabin " << where.cabin << '\n';
  }

  while (sync_wait(actors.request_to_actor("bob", ask_time{}).submit<time_aboard>()).hours < 3) {
  }
  std::cout << "three hours at sea\n";
  std::cout << sync_wait(actors.find_spot("ada"))->spot_id << '\n';
  std::cout << std::boolalpha << sync_wait(host.spots().close(argo)) << '\n'; // members are aboard

  sync_wait(actors.request_to_actor("ada", go_ashore{}).submit<done>());
  std::cout << sync_wait(actors.destroy(ada.actor)) << '\n';
}
