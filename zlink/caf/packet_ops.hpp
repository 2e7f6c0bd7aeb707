// How CAF holds a packet type. Including this header (message.hpp does) makes ZLINK_PACKET lines that follow register
// their types for CAF as well (D-11, D-12). CAF's own holders are templates whose code every file with a packet in sight
// would repeat; those here are not, and know the type by its functions.
#pragma once

#include "zlink/caf/compat.hpp"
#include "zlink/packet.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/deep_to_string.hpp>
#include <caf/deserializer.hpp>
#include <caf/message.hpp>
#include <caf/serializer.hpp>
#include <caf/type_erased_tuple.hpp>
#include <caf/type_nr.hpp>

#include <string>
#include <utility>

#undef ZLINK_DETAIL_CAF
#define ZLINK_DETAIL_CAF 1

namespace zlink::detail {

/// Filled in once per type; found through packet_type::caf.
struct caf_packet_ops {
  const packet_type& packet;
  std::uint16_t type_nr; ///< 0 unless the application gave the type a number for CAF
  std::uint32_t type_token;
  void (*take)(void* to, void* from); ///< move-construct
  caf::error (*save)(const void* what, caf::serializer& sink);
  caf::error (*load)(void* into, caf::deserializer& source);
  std::string (*to_text)(const void* what);

  caf::rtti_pair rtti() const noexcept { return {type_nr, type_nr != 0 ? nullptr : packet.type}; }
};

template <class T>
inline constexpr caf_packet_ops caf_packet_ops_of{
  packet_type_instance<T>,
  caf::type_nr<T>::value,
  caf::make_type_token<T>(),
  [](void* to, void* from) { ::new (to) T(std::move(*static_cast<T*>(from))); },
  // CAF's inspectors take values that they only read by reference.
  [](const void* what, caf::serializer& sink) { return sink(*static_cast<T*>(const_cast<void*>(what))); },
  [](void* into, caf::deserializer& source) { return source(*static_cast<T*>(into)); },
  [](const void* what) { return caf::deep_to_string(*static_cast<const T*>(what)); },
};

/// A value of its own for CAF.
caf::type_erased_value_ptr copy_as_value(const caf_packet_ops& ops, const void* value);

/// A tuple of one packet, whose value lies wherever its owner keeps it.
template <class Base>
class one_packet : public Base {
public:
  one_packet(const caf_packet_ops& ops, void* value) noexcept : ops_(ops), value_(value) {}
  std::size_t size() const noexcept override { return 1; }
  std::uint32_t type_token() const noexcept override { return ops_.type_token; }
  caf::rtti_pair type(std::size_t) const noexcept override { return ops_.rtti(); }
  const void* get(std::size_t) const noexcept override { return value_; }
  void* get_mutable(std::size_t) override { return value_; }
  using Base::load;
  caf::error load(std::size_t, caf::deserializer& source) override { return ops_.load(value_, source); }
  using Base::save;
  caf::error save(std::size_t, caf::serializer& sink) const override { return ops_.save(value_, sink); }
  using Base::stringify;
  std::string stringify(std::size_t) const override { return ops_.to_text(value_); }
  using Base::copy;
  caf::type_erased_value_ptr copy(std::size_t) const override { return copy_as_value(ops_, value_); }

protected:
  const caf_packet_ops& ops_;

private:
  void* value_;
};

/// Shows a value as a tuple of one element, without copying or allocating.
using packet_view = one_packet<caf::type_erased_tuple>;

/// Moves the value into a message of one element.
caf::message to_caf_message(const caf_packet_ops& ops, void* value);
/// True if the message is one such value.
bool matches(const caf_packet_ops& ops, const caf::message& what) noexcept;
/// Move-constructs (or copies, if shared) element 0 of `from` at `to`; false if the message is not one such value.
bool take_from(caf::message& from, const caf_packet_ops& ops, void* to);
/// Makes the type known to CAF's own serialization (caf_link does not need it, D-13's multi-value messages do).
void announce(const caf_packet_ops& ops, caf::actor_system_config& config);

/// Found by ADL where ZLINK_PACKET is expanded after this header.
template <class T>
const caf_packet_ops* zlink_caf_packet_ops(packet_tag<T>) {
  return &caf_packet_ops_of<T>;
}

} // namespace zlink::detail
