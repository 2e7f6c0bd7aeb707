// What the runtime knows about a packet type: its name, how to hold it and how to encode it. Filled in by ZLINK_PACKET
// (packet.hpp) at static initialisation. Includes nothing of CAF.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

namespace zlink {

using bytes = std::vector<std::byte>;
using byte_view = std::span<const std::byte>;

namespace detail {

/// How CAF holds the type; defined in zlink/caf/packet_ops.hpp, null where only CAF-free code knows the packet.
struct caf_packet_ops;

/// One per C++ type that has a ZLINK_PACKET line; lives as long as the program.
struct packet_type {
  std::string_view name;               ///< on the wire, 1..255 bytes of UTF-8
  const std::type_info* type = nullptr;
  std::size_t size = 0;
  std::size_t alignment = 0;

  void (*construct)(void* to) = nullptr;                        ///< value-initialised
  void (*copy)(void* to, const void* from) = nullptr;           ///< copy-construct
  void (*move)(void* to, void* from) noexcept = nullptr;        ///< move-construct, then destroy `from`
  void (*destroy)(void* what) noexcept = nullptr;

  void (*encode_binary)(const void* from, bytes& to) = nullptr; ///< appends
  void (*decode_binary)(void* into, byte_view from) = nullptr;  ///< into a constructed value; throws decode_error
  void (*encode_json)(const void* from, std::string& to) = nullptr;
  void (*decode_json)(void* into, std::string_view from) = nullptr;

  mutable std::atomic<const caf_packet_ops*> caf{nullptr};
};

/// The packet of that name, or null. Lock-free after start-up is not promised; cached by callers on hot paths.
const packet_type* find_packet(std::string_view name) noexcept;
/// Registers; the same type and name again is harmless, the same name for another type or another name for the same type
/// is remembered as a mistake that host start reports (M-29, C-34).
void register_packet(const packet_type& type);
/// Every registered packet, in name order.
std::vector<const packet_type*> registered_packets();
/// Clashes met by `register_packet`, one sentence each; empty if all is well.
std::vector<std::string> packet_registration_mistakes();

} // namespace detail
} // namespace zlink
