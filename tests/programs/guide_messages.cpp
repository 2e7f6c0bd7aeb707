// docs/guide/messages.md: sends and requests, from outside and from Spots; submit and yield; messages to a node.
#include <caf/typed_response_promise.hpp>

#include <zlink/zlink.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

struct question { std::string text; };
struct answer { std::string text; };
struct speak { std::string text; };
struct queue_length {};
struct queue { int waiting = 0; };
struct node_health {};
struct node_report { std::string text; };

ZLINK_PACKET(question, "temple.question", text)
ZLINK_PACKET(answer, "temple.answer", text)
ZLINK_PACKET(speak, "temple.speak", text)
ZLINK_PACKET(queue_length, "temple.queue_length")
ZLINK_PACKET(queue, "temple.queue", waiting)
ZLINK_PACKET(node_health, "temple.node_health")
ZLINK_PACKET(node_report, "temple.node_report", text)

// Answers nobody before it has spoken.
class oracle final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  caf::behavior make_behavior() override {
    auto* me = self(); // the actor that this Spot is to CAF
    return {
      [this, me](const question&) -> caf::result<answer> {
        if (!words_.empty())
          return answer{words_};
        auto later = me->make_response_promise<answer>();
        waiting_.push_back(later);
        return later;
      },
      [this](const speak& m) {
        words_ = m.text;
        for (auto& later : std::exchange(waiting_, {}))
          later.deliver(answer{words_});
      },
    };
  }

private:
  std::string words_;
  std::vector<caf::typed_response_promise<answer>> waiting_;
};

class priest final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  void configure() override {
    context().handlers().add_packet<&priest::on_question>().add_packet<&priest::on_queue_length>();
  }

private:
  // With submit the priest would serve nobody until the oracle speaks. With yield others go on meanwhile, so what was
  // read before has to be read again.
  zlink::task<answer> on_question(const question& m, const zlink::message_context&) {
    ++waiting_;
    auto ask = context().outbound().request_to_spot("delphi", m);
    ask.instance_spot("oracle").timeout(10s);
    auto heard = co_await zlink::as_result(ask.yield<answer>());
    --waiting_;
    co_return heard ? *heard : answer{"the oracle is silent"};
  }

  queue on_queue_length(const queue_length&, const zlink::message_context&) const { return queue{waiting_}; }

  int waiting_ = 0;
};

// Stands around the node's handlers.
class doorkeeper final : public zlink::message_filter {
public:
  zlink::task<void> apply(const zlink::filter_context& context, zlink::filter_next& next) override {
    if (context.message().metadata("offering").empty())
      co_return; // a request ends in `rejected`
    co_await next();
  }
};

int main() {
  zlink::host host;
  auto& temple = host.add_mesh("temple");
  temple.object_server()
    .add_instance_spot_factory<oracle>("oracle", [](auto& factory) { factory.disable_relocation(); })
    .add_instance_spot_factory<priest>("priest", [](auto& factory) { factory.disable_relocation(); });
  temple.add_node_handler([](const node_health&, const zlink::message_context&) { return node_report{"well"}; });
  temple.add_filter<doorkeeper>();
  host.start();

  // A task is under way as soon as you have it.
  auto ask = host.spots().request_to_spot("pythia", question{"will it rain?"});
  auto asked = ask.instance_spot("priest").submit<answer>();

  // On this one node it queues behind the question, so the priest has begun with that.
  auto look = host.spots().request_to_spot("pythia", queue_length{});
  auto length = zlink::sync_wait(look.instance_spot("priest").timeout(5s).submit<queue>());
  std::cout << length.waiting << " waits\n";

  // One-way: ends when the message is accepted here, and may be dropped.
  host.spots().send_to_spot("delphi", speak{"bring an umbrella"}).instance_spot("oracle").submit();
  std::cout << zlink::sync_wait(std::move(asked)).text << '\n';

  // To exactly one node rather than to a Spot.
  auto check = host.nodes().request_to_node("temple", temple.rid(), node_health{}).metadata("offering", "honey");
  auto report = zlink::sync_wait(check.submit<node_report>());
  std::cout << "the node is " << report.text << '\n';
}
