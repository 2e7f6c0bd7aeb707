#include "cart.hpp"

#include "card_terminal.hpp"

#include <chrono>
#include <utility>

using namespace std::chrono_literals;

cart::cart(zlink::instance_spot_context context, shelf& store) : instance_spot(std::move(context)), shelf_(store) {}

void cart::configure() {
  context()
    .handlers()
    .add_packet<&cart::on_add_item>()
    .add_packet<&cart::on_view_cart>()
    .add_packet<&cart::on_check_out>();
}

zlink::task<void> cart::on_initialize() {
  content_ = shelf_.take(context().spot_id());
  ++content_.incarnation;
  co_return;
}

zlink::task<void> cart::on_closing(const zlink::spot_closing_context& closing, std::stop_token) {
  if (closing.reason == zlink::spot_close_reason::explicit_close)
    shelf_.remove(context().spot_id());
  else // idle_evicted, host_shutdown
    shelf_.put(context().spot_id(), content_);
  co_return;
}

cart_reply cart::on_add_item(const add_item& m, const zlink::message_context&) {
  content_.items[m.sku] += m.quantity;
  content_.total_cents += m.quantity * m.unit_cents;
  return content_;
}

cart_reply cart::on_view_cart(const view_cart&, const zlink::message_context&) const { return content_; }

// submit keeps the turn while the terminal waits for the customer: what was added meanwhile would not be on the bill,
// so nothing is added meanwhile. Where others should go on, there is yield.
zlink::task<check_out_reply> cart::on_check_out(const check_out&, const zlink::message_context&) {
  auto pay = context().outbound().request_to_spot("terminal-1", charge{context().spot_id(), content_.total_cents});
  pay.instance_spot(card_terminal::type).timeout(300ms);
  auto paid = co_await zlink::as_result(pay.submit<charged>()); // a result, because no answer is an answer here
  if (!paid)
    co_return check_out_reply{false, zlink::to_string(paid.error().kind()), 0};

  co_await context().close(); // decided now; this reply still leaves, then comes on_closing
  co_return check_out_reply{true, paid->receipt, content_.total_cents};
}
