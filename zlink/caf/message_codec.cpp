#include "zlink/caf/message_codec.hpp"

#include "zlink/caf/packet_ops.hpp"
#include "zlink/codec_error.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/uniform_type_info_map.hpp>

#include <cstring>
#include <typeindex>
#include <vector>

namespace zlink::detail {

namespace {

/// Messages are few and packets many: the registry is read once per type.
const packet_type* packet_of_type(const std::type_info& type) {
  for (const auto* packet : registered_packets())
    if (*packet->type == type)
      return packet;
  return nullptr;
}

} // namespace

const packet_type* packet_of(const caf::message& content) noexcept {
  if (content.size() != 1)
    return nullptr;
  const auto rtti = content.cvals()->type(0);
  if (rtti.first != 0 || rtti.second == nullptr)
    return nullptr; // one of CAF's own types
  const auto* packet = packet_of_type(*rtti.second);
  return packet != nullptr && packet->caf.load(std::memory_order_acquire) != nullptr ? packet : nullptr;
}

std::string caf_packet_name(caf::actor_system& system, const caf::message& content) {
  std::string name{caf_name_prefix};
  for (std::size_t i = 0; i < content.size(); ++i) {
    const auto rtti = content.cvals()->type(i);
    const auto& type = system.types().portable_name(rtti);
    if (type.empty() || type == system.types().default_type_name())
      throw encode_error{std::string{"CAF does not know type "} + (rtti.second != nullptr ? rtti.second->name() : "?")
                         + "; register it with actor_system_config::add_message_type"};
    if (i != 0)
      name += ',';
    name += type;
  }
  return name;
}

void encode_caf_message(caf::actor_system& system, const caf::message& content, bytes& to) {
  std::vector<char> buffer;
  caf::binary_serializer sink{system, buffer};
  if (auto failed = content.save(sink))
    throw encode_error{"CAF message: " + text_of(failed)};
  const auto* first = reinterpret_cast<const std::byte*>(buffer.data());
  to.insert(to.end(), first, first + buffer.size());
}

caf::message decode_caf_message(caf::actor_system& system, std::string_view packet_name, byte_view from) {
  caf::message content;
  caf::binary_deserializer source{system, reinterpret_cast<const char*>(from.data()), from.size()};
  if (auto failed = content.load(source))
    throw decode_error{"CAF message \"" + std::string{packet_name} + "\": " + text_of(failed)};
  if (source.remaining() != 0)
    throw decode_error{"CAF message \"" + std::string{packet_name} + "\": bytes behind the last value"};
  if (caf_packet_name(system, content) != packet_name)
    throw decode_error{"CAF message \"" + std::string{packet_name} + "\" holds other types than its name says"};
  return content;
}

} // namespace zlink::detail
