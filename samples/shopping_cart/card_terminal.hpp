// A card terminal: it answers when the customer is there, which may take longer than anybody wants to wait.
#pragma once

#include <caf/typed_response_promise.hpp>

#include <zlink/zlink.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// To be paid once for each reference, however often it is asked for.
struct charge {
  std::string reference;
  std::int64_t cents = 0;
};
struct charged {
  std::string receipt;
};
struct customer_comes {};

ZLINK_PACKET(charge, "commerce.charge", reference, cents)
ZLINK_PACKET(charged, "commerce.charged", receipt)
ZLINK_PACKET(customer_comes, "commerce.customer_comes")

class card_terminal final : public zlink::instance_spot {
public:
  static constexpr const char* type = "card-terminal";

  using instance_spot::instance_spot;

  /// A Spot may be a CAF behaviour; an answer that comes later is a CAF promise.
  caf::behavior make_behavior() override;

private:
  struct open_charge {
    charge asked;
    caf::typed_response_promise<charged> answer;
  };

  charged book(const charge& asked);

  bool customer_is_here_ = false;
  std::vector<open_charge> open_;
  std::map<std::string, charged> booked_;
};
