#include "zlink/objects/handler_table.hpp"

#include "zlink/caf/message_codec.hpp"
#include "zlink/codec.hpp"
#include "zlink/execution/execution_object.hpp"
#include "zlink/message.hpp"

namespace zlink::detail {

const handler_table* handler_tables::intern(handler_set registered) {
  std::lock_guard guard{mutex_};
  for (const auto& table : tables_)
    if (table->set() == registered)
      return table.get();
  return tables_.emplace_back(std::make_unique<handler_table>(std::move(registered))).get();
}

namespace {

template <class Entry>
void add_once(std::vector<Entry>& entries, Entry entry, const char* whose) {
  for (const auto& e : entries)
    if (e.packet_name == entry.packet_name && e.replies == entry.replies)
      throw operation_failed{error{error_kind::internal_failure,
                                   std::string{"two "} + whose + " for " + (entry.replies ? "requests" : "sends")
                                     + " of packet \"" + entry.packet_name + "\"; register one, or give one of them "
                                     + "another packet name"}};
  entries.push_back(std::move(entry));
}

} // namespace

void handler_table_builder::add(handler_entry entry) { add_once(registered_.packets, std::move(entry), "handlers"); }

void handler_table_builder::add(actor_handler_entry entry) {
  add_once(registered_.actors, std::move(entry), "Actor handlers");
}

void handler_table_builder::add(event_entry entry) {
  for (const auto& e : registered_.events)
    if (e.handler.packet_name == entry.handler.packet_name && e.topic == entry.topic && e.channel == entry.channel)
      throw operation_failed{error{error_kind::internal_failure,
                                   "two subscriptions to packet \"" + entry.handler.packet_name + "\" under topic \""
                                     + entry.topic + "\" of channel \"" + entry.channel + "\"; register one"}};
  registered_.events.push_back(std::move(entry));
}

namespace {

template <class Entry>
const Entry* find_by_type(const std::vector<Entry>& entries, const packet_type* packet, bool replies) noexcept {
  for (const auto& e : entries)
    if (e.packet == packet && e.replies == replies && e.packet_name == packet->name)
      return &e;
  for (const auto& e : entries) // another type under that name (M-29)
    if (e.replies == replies && e.packet_name == packet->name)
      return &e;
  return nullptr;
}

template <class Entry>
const Entry* find_exactly(const std::vector<Entry>& entries, payload& body, bool request) {
  if (auto* packet = body.packet())
    return find_by_type(entries, packet, request);
  if (auto* encoded = body.get<encoded_value>()) {
    for (const auto& e : entries)
      if (e.replies == request && e.packet_name == encoded->packet_name())
        return &e;
    return nullptr;
  }
  if (auto* message = body.get<caf::message>())
    if (const auto* packet = packet_of(*message)) // then it is that packet (D-11), under its name (M-29)
      return find_by_type(entries, packet, request);
  return nullptr;
}

template <class Entry>
const Entry* find_for(const std::vector<Entry>& entries, payload& body, bool request) {
  const auto* entry = find_exactly(entries, body, request);
  // A send may be served by a handler that replies; nobody gets the reply.
  return entry != nullptr || request ? entry : find_exactly(entries, body, true);
}

/// The value as another type that takes the same name: what encoding between nodes would do (M-4, M-29).
void* converted_body(record& r, const execution_object& object, const packet_type& from, const void* value,
                     const packet_type& wanted) {
  const auto& codecs = *object.domain().codecs;
  const auto& chosen = codecs.for_sending(from);
  bytes encoded;
  chosen.encode(from, value, encoded);
  dynamic_value converted{wanted};
  try {
    codecs.decode(codecs.content_type_of(chosen), wanted, encoded, converted.address());
  } catch (const decode_error& what) {
    throw undecodable_record{what.what()};
  }
  r.more().packet_name = from.name;
  return r.body.emplace<dynamic_value>(std::move(converted)).address();
}

} // namespace

const handler_entry* find_handler(const handler_table& table, payload& body, bool request) {
  return find_for(table.set().packets, body, request);
}

const actor_handler_entry* find_actor_handler(const handler_table& table, payload& body, bool request) {
  return find_for(table.set().actors, body, request);
}

void* decoded_body(record& r, const execution_object& object, const packet_type& wanted) {
  auto& body = r.body;
  if (auto* shared = body.get<message>()) {
    if (const auto* value = shared->value_if(wanted))
      return const_cast<void*>(value); // handlers see it const
    const auto held = *shared;
    body = held.to_payload(); // another type under that name, or bytes that are none: as if it had come alone
  }
  switch (body.kind()) {
    case payload_kind::value:
      if (body.packet() == &wanted)
        return body.address();
      if (const auto* packet = body.packet())
        return converted_body(r, object, *packet, body.address(), wanted);
      break;
    case payload_kind::dynamic:
      if (body.packet() == &wanted)
        return body.get<dynamic_value>()->address();
      return converted_body(r, object, *body.packet(), body.get<dynamic_value>()->address(), wanted);
    case payload_kind::encoded: {
      const auto& codecs = *object.domain().codecs;
      object.domain().counters.decoded.fetch_add(1, std::memory_order_relaxed);
      auto& encoded = *body.get<encoded_value>();
      dynamic_value value{wanted};
      try {
        codecs.decode(encoded.content_type(), wanted, encoded.data(), value.address());
      } catch (const decode_error& what) {
        throw undecodable_record{what.what()};
      }
      r.decoded_by = codecs.for_content_type(encoded.content_type());
      if (encoded.packet_name() != wanted.name)
        r.more().packet_name = encoded.packet_name();
      return body.emplace<dynamic_value>(std::move(value)).address();
    }
    case payload_kind::caf_message: {
      auto& message = *body.get<caf::message>();
      if (const auto* packet = packet_of(message); packet != nullptr && packet != &wanted)
        return converted_body(r, object, *packet, message.cvals()->get(0), wanted);
      auto* caf_ops = wanted.caf.load(std::memory_order_acquire);
      if (caf_ops == nullptr)
        break;
      raw_value value{wanted};
      if (!take_from(message, *caf_ops, value.place()))
        break;
      return body.emplace<dynamic_value>(std::move(value).constructed()).address();
    }
    default: break;
  }
  throw undecodable_record{"the record does not hold packet \"" + std::string{wanted.name} + '"'};
}

} // namespace zlink::detail
