// A shopping cart as an Instance Spot: member-function handlers, one of them a coroutine.
#pragma once

#include "cart_packets.hpp"
#include "shelf.hpp"

#include <zlink/zlink.hpp>

#include <stop_token>

class cart final : public zlink::instance_spot {
public:
  static constexpr const char* type = "shopping-cart";

  cart(zlink::instance_spot_context context, shelf& store);

  void configure() override;
  /// No message runs before this has ended.
  zlink::task<void> on_initialize() override;
  /// The last callback: a paid cart is forgotten, any other is put away for its next incarnation.
  zlink::task<void> on_closing(const zlink::spot_closing_context& closing, std::stop_token cleanup) override;

private:
  cart_reply on_add_item(const add_item& m, const zlink::message_context& info);
  cart_reply on_view_cart(const view_cart& m, const zlink::message_context& info) const;
  zlink::task<check_out_reply> on_check_out(const check_out& m, const zlink::message_context& info);

  shelf& shelf_;
  cart_reply content_;
};
