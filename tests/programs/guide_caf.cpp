// docs/guide/caf.md: a Spot whose coroutine handler waits for a CAF actor; the actor and the system were there before.
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exec_main.hpp>
#include <caf/send.hpp>

#include <zlink/zlink.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

using namespace std::chrono_literals;

struct order { std::string dish; };
struct served { std::string text; };

ZLINK_PACKET(order, "inn.order", dish)
ZLINK_PACKET(served, "inn.served", text)

// An actor as it always was.
caf::behavior cook(caf::event_based_actor*) {
  return {
    [](const std::string& dish) -> caf::result<std::string> {
      if (dish == "fugu")
        return caf::make_error(caf::sec::invalid_argument);
      return "hot " + dish;
    },
  };
}

class table final : public zlink::instance_spot {
public:
  table(zlink::instance_spot_context context, caf::actor cook)
    : instance_spot(std::move(context)), cook_(std::move(cook)) {}

  void configure() override { context().handlers().add_packet<&table::on_order>(); }

private:
  // The turn is kept until the actor has answered, as with submit.
  zlink::task<served> on_order(const order& m, const zlink::message_context&) {
    auto dish = co_await zlink::as_result(context().ask<std::string>(cook_, 5s, m.dish));
    if (!dish)
      co_return served{"no " + m.dish + ": " + zlink::to_string(dish.error().kind())};
    co_return served{*dish};
  }

  caf::actor cook_;
};

std::string eat(zlink::host& host, const std::string& dish) {
  auto call = host.spots().request_to_spot("table-1", order{dish});
  call.instance_spot("table");
  return zlink::sync_wait(call.submit<served>()).text;
}

struct config : caf::actor_system_config {
  config() { zlink::configure(*this); }
};

void caf_main(caf::actor_system& system, const config&) {
  const caf::actor kitchen = system.spawn(cook);
  {
    zlink::host host{system}; // ends before the system does
    host.add_mesh("inn").object_server().add_instance_spot_factory<table>("table", [&kitchen](auto& factory) {
      factory.construct_with([&kitchen](zlink::instance_spot_context context) {
        return std::make_unique<table>(std::move(context), kitchen);
      });
      factory.disable_relocation();
    });
    host.start();
    std::cout << eat(host, "soup") << '\n' << eat(host, "fugu") << '\n';
  }
  caf::anon_send_exit(kitchen, caf::exit_reason::user_shutdown);
}

CAF_MAIN()
