// docs/guide/errors.md: what can go wrong, and the forms in which a caller meets it.
#include <caf/typed_response_promise.hpp>

#include <zlink/zlink.hpp>

#include <chrono>
#include <future>
#include <iostream>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

struct divide { int by = 1; };
struct quotient { int value = 0; };
struct think_hard {};
struct stop_thinking {};

ZLINK_PACKET(divide, "sums.divide", by)
ZLINK_PACKET(quotient, "sums.quotient", value)
ZLINK_PACKET(think_hard, "sums.think_hard")
ZLINK_PACKET(stop_thinking, "sums.stop_thinking")

class sums final : public zlink::instance_spot {
public:
  using instance_spot::instance_spot;

  caf::behavior make_behavior() override {
    auto* me = self(); // the actor that this Spot is to CAF
    return {
      [](const divide& m) {
        if (m.by == 0) // a fault: the caller sees internal_failure, the Spot lives on
          throw std::invalid_argument("division by zero");
        return quotient{12 / m.by};
      },
      [this, me](const think_hard&) -> caf::result<quotient> {
        thinking_ = me->make_response_promise<quotient>();
        return thinking_;
      },
      [this](const stop_thinking&) { thinking_.deliver(quotient{42}); }, // its caller has gone
    };
  }

private:
  caf::typed_response_promise<quotient> thinking_;
};

zlink::spot_request_call ask(zlink::host& host, divide request) {
  return host.spots().request_to_spot("sums-1", request).instance_spot("sums");
}

// By exception: awaiting and sync_wait throw.
void by_exception(zlink::host& host) {
  try {
    zlink::sync_wait(ask(host, divide{0}).submit<quotient>());
  } catch (const zlink::operation_failed& failure) {
    std::cout << "by exception: " << zlink::to_string(failure.kind()) << '\n';
  }
}

// By value: as_result never throws for the operation's sake.
void by_value(zlink::host& host) {
  auto missing = host.spots().request_to_spot("sums-2", divide{3}); // no marker: only an existing Spot
  auto outcome = zlink::sync_wait(zlink::as_result(missing.submit<quotient>()));
  std::cout << "by value: " << zlink::to_string(outcome.error().kind()) << '\n';

  auto slow = host.spots().request_to_spot("sums-1", think_hard{});
  slow.timeout(50ms);
  auto late = zlink::sync_wait(zlink::as_result(slow.submit<quotient>()));
  std::cout << "by value: " << zlink::to_string(late.error().kind()) << '\n';
  host.spots().send_to_spot("sums-1", stop_thinking{}).submit();
}

// By callback: the same result, on the host's completion dispatcher.
void by_callback(zlink::host& host) {
  std::promise<int> told;
  ask(host, divide{4}).submit<quotient>().then([&told](zlink::result<quotient> outcome) {
    told.set_value(outcome ? outcome->value : -1);
  });
  std::cout << "by callback: " << told.get_future().get() << '\n';
}

// A mistake in the program is told where it is made, before anything happens.
void mistakes(zlink::host& host) {
  try {
    host.spots().send_to_spot("", divide{1}).submit();
  } catch (const std::invalid_argument&) {
    std::cout << "at the call: invalid_argument\n";
  }
  try {
    host.add_mesh("late");
  } catch (const zlink::configuration_error&) {
    std::cout << "at registration: configuration_error\n";
  }
}

int main() {
  zlink::host host;
  host.add_mesh("school").object_server().add_instance_spot_factory<sums>(
    "sums", [](auto& factory) { factory.disable_relocation(); });
  host.start();
  by_exception(host);
  by_value(host);
  by_callback(host);
  mistakes(host);
}
