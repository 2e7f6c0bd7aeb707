#include "zlink/caf/caf_reply.hpp"

#include "zlink/execution/gate.hpp"
#include "zlink/message.hpp"

#include <caf/actor_cast.hpp>

namespace zlink {

caf::error to_caf_error(const error& what) {
  return caf::error{static_cast<std::uint8_t>(static_cast<unsigned>(what.kind()) + 1), caf_error_category,
                    caf::make_message(to_string(what))};
}

namespace detail {

namespace {

/// Answers CAF's sender.
class caf_reply final : public counted, public reply_receiver {
public:
  caf_reply(caf::strong_actor_ptr sender, caf::message_id mid) noexcept : sender_(std::move(sender)), mid_(mid) {}
  void receive_reply(record* reply) noexcept override {
    sender_->enqueue(nullptr, mid_.response_id(), to_caf_message(std::move(reply->body)), current_execution_unit());
    free_record(reply);
  }
  void ref_receiver() noexcept override { ref(); }
  void unref_receiver() noexcept override { unref(); }

private:
  caf::strong_actor_ptr sender_;
  caf::message_id mid_;
};

} // namespace

bool is_system_message(const caf::type_erased_tuple& content) {
  return content.match_elements<caf::down_msg>() || content.match_elements<caf::exit_msg>()
         || content.match_elements<caf::group_down_msg>() || content.match_elements<caf::error>();
}

record* make_caf_record(caf::mailbox_element_ptr element) {
  const bool request = element->mid.is_request() && element->sender;
  auto* r = make_record(request ? record_kind::request : record_kind::send);
  if (request)
    r->reply = {new caf_reply{element->sender, element->mid}, 0};
  r->body.emplace<caf::message>(element->move_content_to_message());
  return r;
}

caf::message to_caf_message(payload body) {
  switch (body.kind()) {
    case payload_kind::empty: return {};
    case payload_kind::error: return caf::make_message(to_caf_error(*body.get<error>()));
    case payload_kind::caf_message: return std::move(*body.get<caf::message>());
    case payload_kind::shared: {
      const auto shared = *body.get<message>();
      return to_caf_message(shared.to_payload());
    }
    case payload_kind::encoded: {
      if (auto failed = caf_failure(body); failed && body.kind() == payload_kind::encoded)
        return caf::make_message(to_caf_error(*failed));
      if (auto* message = body.get<caf::message>()) // also an error, which arrives as it was sent (D-14)
        return std::move(*message);
      auto& encoded = *body.get<encoded_value>();
      const auto* type = find_packet(encoded.packet_name());
      if (type == nullptr)
        return caf::make_message(to_caf_error({error_kind::protocol_error, "the packet is not known here"}));
      dynamic_value value{*type};
      if (auto failed = decode_reply(body, *type, value.address()))
        return caf::make_message(to_caf_error(*failed));
      body.emplace<dynamic_value>(std::move(value));
      [[fallthrough]];
    }
    case payload_kind::dynamic:
    case payload_kind::value: break;
  }
  const auto* type = body.packet();
  const auto* caf_ops = type == nullptr ? nullptr : type->caf.load(std::memory_order_acquire);
  if (caf_ops == nullptr)
    return caf::make_message(to_caf_error({error_kind::protocol_error, "the packet is not known to CAF here"}));
  void* address = body.kind() == payload_kind::dynamic ? body.get<dynamic_value>()->address() : body.address();
  return to_caf_message(*caf_ops, address);
}

} // namespace detail
} // namespace zlink
