// CAF messages between nodes: several values, atoms, types that are no packets (D-13). Both nodes must have registered
// the types with CAF.
#pragma once

#include "zlink/caf/compat.hpp"
#include "zlink/packet_type.hpp"

#include <string>
#include <string_view>

namespace zlink::detail {

/// Content type of CAF's own binary serialization.
inline constexpr std::string_view caf_content_type = "application/vnd.caf";
/// What packet names of such messages begin with; the names of the types follow, separated by commas.
inline constexpr std::string_view caf_name_prefix = "caf:";

/// The packet that is the only element of `content`, if CAF and this program know it as one; else null.
const packet_type* packet_of(const caf::message& content) noexcept;

/// "caf:@atom,@i32". Throws `encode_error` for a type that CAF cannot name.
std::string caf_packet_name(caf::actor_system& system, const caf::message& content);
/// Appends. Throws `encode_error`.
void encode_caf_message(caf::actor_system& system, const caf::message& content, bytes& to);
/// Throws `decode_error`: unknown types, bytes missing or left over, other types than `packet_name` says.
caf::message decode_caf_message(caf::actor_system& system, std::string_view packet_name, byte_view from);

} // namespace zlink::detail
