// Values to bytes and back, and the codecs a host knows. Includes nothing of CAF.
#pragma once

#include "zlink/codec_error.hpp"
#include "zlink/packet.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace zlink {

/// Content type of the compact encoding, the default between nodes (D-10).
inline constexpr std::string_view binary_content_type = "application/vnd.zlink.binary";
/// Content type of the JSON profile (M-35), the default at sessions and for tools.
inline constexpr std::string_view json_content_type = "application/json";

/// The compact encoding of `value`. Throws `encode_error` for nesting beyond 64 packets. Thread-safe.
template <packet T>
bytes encode(const T& value) {
  bytes to;
  detail::encode_binary(value, to);
  return to;
}

/// The value those bytes stand for; members that a sender of an older version did not know keep their defaults, bytes
/// of members unknown here are skipped. Throws `decode_error` naming packet and field. Thread-safe.
template <packet T>
T decode(byte_view from) {
  T value{};
  detail::decode_binary(from, value);
  return value;
}

/// The JSON text of `value` (M-35), an object. Throws `encode_error` for what JSON cannot say.
template <packet T>
std::string encode_json(const T& value) {
  std::string to;
  detail::encode_json(value, to);
  return to;
}

/// Strict: no BOM, every member once, those not optional present, unknown ones ignored; at most 64 MiB of text and 256
/// nested arrays and objects. Throws `decode_error`.
template <packet T>
T decode_json(std::string_view from) {
  T value{};
  detail::decode_json(from, value);
  return value;
}

/// What a codec may know about the type of a packet: its name, its C++ type and both built-in encodings.
using packet_info = detail::packet_type;

/// An encoding that an application adds to a host (`host.add_codec`). Implementations are used from many threads at
/// once.
class codec {
public:
  virtual ~codec() = default;
  /// `type/subtype`; read once, at registration.
  virtual std::string content_type() const = 0;
  /// True if values declared as `type` at the call site shall be sent in this encoding; asked rarely (M-37).
  virtual bool handles(const packet_info& type) const = 0;
  /// Appends the encoding of `*value`, which is of `type`. Throws `encode_error`.
  virtual void encode(const packet_info& type, const void* value, bytes& to) const = 0;
  /// Into a value-initialised `*value` of `type`. Throws `decode_error`.
  virtual void decode(const packet_info& type, byte_view from, void* value) const = 0;
};

/// The codecs of one host (M-37). `add` before everything else; all other members are thread-safe.
class codec_registry {
public:
  /// Which of the two built-in encodings serves types that no added codec handles.
  enum class fallback { binary, json };

  explicit codec_registry(fallback otherwise = fallback::binary);
  codec_registry(const codec_registry&) = delete;
  codec_registry& operator=(const codec_registry&) = delete;
  ~codec_registry();

  /// The content type is trimmed and lower-cased; of equal ones the last added counts, also against a built-in. Throws
  /// `configuration_error` for parameters, inner blanks, non-ASCII or empty parts.
  void add(std::shared_ptr<const codec> added);

  /// The codec that sends values declared as `type`: the last added one that handles it, else the fallback. Remembered
  /// for the first 1,024 types.
  const codec& for_sending(const packet_info& type) const;
  /// The codec of a received content type, compared verbatim; null if there is none. The content type a codec was
  /// registered under is `content_type_of(codec)`.
  const codec* for_content_type(std::string_view content_type) const noexcept;
  /// The canonical content type of a codec that `for_sending` or `for_content_type` returned.
  std::string_view content_type_of(const codec& which) const noexcept;
  /// Decodes into a value-initialised `*value`. Throws `decode_error`, also for a content type unknown here: it is
  /// never read as something else.
  void decode(std::string_view content_type, const packet_info& type, byte_view from, void* value) const;

  static constexpr std::size_t remembered_types = 1024;

private:
  struct entry {
    std::string content_type;
    std::shared_ptr<const codec> implementation;
    bool built_in; ///< never chosen by type, only as the fallback
  };
  class choices;

  const codec& choose(const packet_info& type) const;

  std::vector<entry> entries_; ///< in order of registration, the built-in ones first
  std::string_view fallback_;
  std::unique_ptr<choices> choices_;
};

namespace detail {

/// Trimmed and lower-cased; throws `configuration_error` unless of the form `type/subtype` (M-37).
std::string canonical_content_type(std::string_view content_type);

} // namespace detail

} // namespace zlink
