// The life of a shopping cart: it wakes on a request, sleeps when nobody asks, wakes again, is paid, and is gone.
#include "card_terminal.hpp"
#include "cart.hpp"
#include "cart_packets.hpp"
#include "shelf.hpp"

#include <zlink/zlink.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

using namespace std::chrono_literals;

namespace {

const std::string cart_id = "cart-17";

void open_shop(zlink::host& host, shelf& store) {
  auto& commerce = host.add_mesh("commerce");
  commerce.instance_spot_idle_timeout(1s); // so that you see it; an hour would be more like it
  commerce.object_server()
    .add_instance_spot_factory<cart>(cart::type,
                                     [&store](auto& factory) {
                                       factory.construct_with([&store](zlink::instance_spot_context context) {
                                         return std::make_unique<cart>(std::move(context), store);
                                       });
                                       factory.disable_relocation();
                                     })
    .add_instance_spot_factory<card_terminal>(card_terminal::type, [](auto& factory) { factory.disable_relocation(); });
  host.start();
}

/// A request whose cart may be missing: then one is made, and this is its first message.
template <class T>
cart_reply ask(zlink::host& host, T request) {
  return zlink::sync_wait(host.spots()
                            .request_to_spot(cart_id, std::move(request))
                            .instance_spot(cart::type)
                            .in_mesh("commerce")
                            .timeout(5s)
                            .template submit<cart_reply>());
}

void print(const char* what, const cart_reply& cart) {
  std::cout << what << ": " << cart.items.size() << " lines, " << cart.total_cents << " cents, incarnation "
            << cart.incarnation << '\n';
}

void check_out_now(zlink::host& host) {
  auto ask = host.spots().request_to_spot(cart_id, check_out{});
  ask.instance_spot(cart::type);
  const auto reply = zlink::sync_wait(ask.submit<check_out_reply>());
  std::cout << "check out: " << (reply.paid ? "paid " + std::to_string(reply.cents) + " cents, " : "not paid, ")
            << reply.note << '\n';
}

void find_missing(zlink::host& host) {
  try {
    zlink::sync_wait(host.spots().request_to_spot("cart-99", view_cart{}).template submit<cart_reply>());
  } catch (const zlink::operation_failed& failure) {
    std::cout << "cart-99: " << zlink::to_string(failure.kind()) << '\n';
  }
}

} // namespace

int main() {
  shelf store; // before the host: carts are put away while it shuts down
  zlink::host host;
  open_shop(host, store);

  print("added tea", ask(host, add_item{"tea", 2, 590}));
  print("added biscuits", ask(host, add_item{"biscuits", 1, 300}));
  find_missing(host); // no marker, so nothing is made

  store.wait_until_put(cart_id);
  std::cout << "nobody asked for a while: the cart is put away\n";
  print("asked again", ask(host, view_cart{}));

  check_out_now(host); // the customer is not at the terminal yet
  host.spots().send_to_spot("terminal-1", customer_comes{}).instance_spot(card_terminal::type).submit();
  check_out_now(host);

  store.wait_until_removed(cart_id);
  std::cout << "paid and forgotten\n";
}
