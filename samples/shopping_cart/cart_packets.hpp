// What a shop and its carts say to each other.
#pragma once

#include <zlink/zlink.hpp>

#include <cstdint>
#include <map>
#include <string>

struct add_item {
  std::string sku;
  int quantity = 1;
  std::int64_t unit_cents = 0;
};

struct view_cart {};

/// What `add_item` and `view_cart` are answered with.
struct cart_reply {
  std::map<std::string, int> items;
  std::int64_t total_cents = 0;
  std::uint64_t incarnation = 0; ///< larger every time the cart has come to life again
};

struct check_out {};

/// What `check_out` is answered with. A customer who does not pay is no error.
struct check_out_reply {
  bool paid = false;
  std::string note;
  std::int64_t cents = 0;
};

ZLINK_PACKET(add_item, "commerce.add_item", sku, quantity, unit_cents)
ZLINK_PACKET(view_cart, "commerce.view_cart")
ZLINK_PACKET(cart_reply, "commerce.cart_reply", items, total_cents, incarnation)
ZLINK_PACKET(check_out, "commerce.check_out")
ZLINK_PACKET(check_out_reply, "commerce.check_out_reply", paid, note, cents)
