// The compact encoding between nodes (D-10): `application/vnd.zlink.binary`.
//
//   bool, 8-bit integer   1 byte                      optional        0, or 1 and the value
//   other integer         LEB128, zigzag if signed    pair, tuple     its parts
//   float, double         4, 8 bytes little endian    array           its elements
//   enum, duration        as their number             variant         index (LEB128) and the value
//   string, bytes         length (LEB128) and bytes   vector, set, …  count (LEB128) and the elements
//   nested packet         length (LEB128) and fields  map             count and key, value, key, value, …
//
// A packet is its fields in order of declaration, without names. Where the bytes end before a field begins, that field
// and those after it keep their defaults; bytes after the last known field are skipped: fields may be added at the end,
// also to packets nested in others. Nothing is allocated for a length that the remaining bytes could not fill.
#pragma once

#include "zlink/codec/fields.hpp"
#include "zlink/codec_error.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace zlink::detail {

/// Appends to a byte vector at `finish()`; without it nothing is appended.
class binary_writer {
public:
  explicit binary_writer(bytes& to) noexcept : to_(to), start_(to.size()), base_(local_), at_(local_) {
    end_ = local_ + sizeof local_;
  }
  binary_writer(const binary_writer&) = delete;
  binary_writer& operator=(const binary_writer&) = delete;
  ~binary_writer() {
    if (base_ != nullptr && base_ != local_)
      to_.resize(start_);
  }
  void finish();

  void byte(std::byte b) {
    need(1);
    *at_++ = b;
  }
  void varint(std::uint64_t v) {
    need(10);
    auto* at = at_; // a store of bytes may change anything, also this object: keep the position out of its way
    for (; v >= 0x80; v >>= 7)
      *at++ = static_cast<std::byte>(v | 0x80);
    *at++ = static_cast<std::byte>(v);
    at_ = at;
  }
  void raw(const void* from, std::size_t size) {
    if (size == 0)
      return;
    need(size);
    std::memcpy(at_, from, size);
    at_ += size;
  }
  /// Puts the length of everything written since `used()` was `start` in front of it.
  void prefix_length(std::size_t start);
  std::size_t used() const noexcept { return static_cast<std::size_t>(at_ - base_); }
  [[noreturn]] void fail(const char* why) const { throw encode_error{describe(place, why)}; }

  const codec_place* place = nullptr;
  int depth = 0;

private:
  void need(std::size_t size) {
    if (static_cast<std::size_t>(end_ - at_) < size) [[unlikely]]
      grow(size);
  }
  void grow(std::size_t more);

  bytes& to_;
  std::size_t start_;
  std::byte* base_; ///< first byte of this encoding: in `local_` while it fits, then in `to_`
  std::byte* at_;
  std::byte* end_;
  std::byte local_[256]; ///< most messages fit: one allocation of the right size, and no zeros written first
};

/// Reads from bytes it does not own; every member throws `decode_error` when they do not suffice.
class binary_reader {
public:
  explicit binary_reader(byte_view from) : at_(from.data()), end_(from.data() + from.size()) {}

  bool at_end() const noexcept { return at_ == end_; }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  std::byte byte() {
    if (at_end()) [[unlikely]]
      fail("bytes end too early");
    return *at_++;
  }
  std::uint64_t varint() {
    if (!at_end() && *at_ < std::byte{0x80}) [[likely]]
      return static_cast<std::uint64_t>(*at_++);
    return long_varint();
  }
  /// A count of elements that take at least `each` bytes: never more than what is left can hold.
  std::size_t count(std::size_t each) {
    const auto n = varint();
    if (n > left() / each) [[unlikely]]
      fail("length exceeds the bytes left");
    return static_cast<std::size_t>(n);
  }
  void raw(void* to, std::size_t size) {
    if (size > left()) [[unlikely]]
      fail("bytes end too early");
    if (size != 0)
      std::memcpy(to, at_, size);
    at_ += size;
  }
  /// The next `size` bytes where they lie.
  byte_view view(std::size_t size) {
    if (size > left()) [[unlikely]]
      fail("length exceeds the bytes left");
    return {std::exchange(at_, at_ + size), size};
  }
  /// Hides all but the next `size` bytes; give the result to `leave`, which goes on behind them.
  const std::byte* enter(std::size_t size) noexcept { return std::exchange(end_, at_ + size); }
  void leave(const std::byte* outer_end) noexcept { at_ = std::exchange(end_, outer_end); }
  [[noreturn]] void fail(const char* why) const { throw decode_error{describe(place, why)}; }

  const codec_place* place = nullptr;
  int depth = 0;

private:
  std::uint64_t long_varint();

  const std::byte* at_;
  const std::byte* end_;
};

/// Elements whose bytes in memory are their encoding, so that a run of them is copied at once.
template <class T>
inline constexpr bool is_raw = (integer_field<T> && sizeof(T) == 1)
                               || (float_field<T> && std::endian::native == std::endian::little);
template <enum_field T>
inline constexpr bool is_raw<T> = is_raw<std::underlying_type_t<T>>; // bool is none: it has invalid values

/// Least bytes that a value of the type takes.
template <class T>
constexpr std::size_t least_bytes() {
  if constexpr (std::same_as<T, std::monostate>)
    return 0;
  else if constexpr (float_field<T>)
    return sizeof(T);
  else if constexpr (array_field<T>)
    return std::tuple_size_v<T> * least_bytes<typename T::value_type>();
  else if constexpr (tuple_field<T>)
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (std::size_t{0} + ... + least_bytes<std::tuple_element_t<I, T>>());
    }(std::make_index_sequence<std::tuple_size_v<T>>{});
  else
    return 1;
}

template <class T>
void write_binary(binary_writer& out, const T& x);
template <class T>
void read_binary(binary_reader& in, T& x);

// -- writing ----------------------------------------------------------------------------------------------------------

template <class T>
void write_binary_number(binary_writer& out, T x) {
  if constexpr (float_field<T>) {
    auto bits = std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(x);
    std::byte to[sizeof bits];
    for (std::size_t i = 0; i < sizeof bits; ++i)
      to[i] = static_cast<std::byte>(bits >> (8 * i));
    out.raw(to, sizeof to);
  } else if constexpr (sizeof(T) == 1) {
    out.byte(static_cast<std::byte>(x));
  } else if constexpr (std::is_signed_v<T>) {
    const auto wide = static_cast<std::int64_t>(x);
    out.varint((static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63));
  } else {
    out.varint(x);
  }
}

template <has_fields T>
void write_binary_fields(binary_writer& out, const T& x) {
  codec_scope scope{out, packet_name<T>()};
  const auto write = [&](const auto& field) {
    scope.at(field.name);
    write_binary(out, x.*field.member);
  };
  std::apply([&](const auto&... field) { (write(field), ...); }, packet_fields<T>.items);
}

template <class T>
void write_binary_elements(binary_writer& out, const T& x) {
  if constexpr (is_raw<typename T::value_type> && (is_a<T, std::vector> || is_std_array<T>)) {
    out.raw(x.data(), x.size() * sizeof(typename T::value_type));
  } else {
    for (const auto& element : x)
      write_binary<typename T::value_type>(out, element);
  }
}

template <class T>
void write_binary(binary_writer& out, const T& x) {
  static_assert(packet_field_type<T>,
                "ZLINK_PACKET: no field of this type; give the type a ZLINK_PACKET line of its own");
  if constexpr (std::same_as<T, bool>) {
    out.byte(x ? std::byte{1} : std::byte{0});
  } else if constexpr (integer_field<T> || float_field<T>) {
    write_binary_number(out, x);
  } else if constexpr (enum_field<T>) {
    write_binary(out, static_cast<std::underlying_type_t<T>>(x));
  } else if constexpr (duration_field<T>) {
    write_binary(out, x.count());
  } else if constexpr (std::same_as<T, std::string>) {
    out.varint(x.size());
    out.raw(x.data(), x.size());
  } else if constexpr (optional_field<T>) {
    out.byte(x ? std::byte{1} : std::byte{0});
    if (x)
      write_binary(out, *x);
  } else if constexpr (array_field<T>) {
    write_binary_elements(out, x);
  } else if constexpr (tuple_field<T>) {
    std::apply([&](const auto&... part) { (write_binary(out, part), ...); }, x);
  } else if constexpr (variant_field<T>) {
    if (x.valueless_by_exception())
      out.fail("variant without value");
    out.varint(x.index());
    std::visit([&](const auto& value) { write_binary(out, value); }, x);
  } else if constexpr (map_field<T>) {
    out.varint(x.size());
    for (const auto& [key, value] : x) {
      write_binary(out, key);
      write_binary(out, value);
    }
  } else if constexpr (set_field<T> || sequence_field<T>) {
    out.varint(x.size());
    write_binary_elements(out, x);
  } else if constexpr (has_fields<T>) {
    const auto start = out.used();
    write_binary_fields(out, x);
    out.prefix_length(start);
  }
}

// -- reading ----------------------------------------------------------------------------------------------------------

template <class T>
void read_binary_number(binary_reader& in, T& x) {
  if constexpr (float_field<T>) {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    std::byte from[sizeof(T)];
    in.raw(from, sizeof from);
    bits value = 0;
    for (std::size_t i = 0; i < sizeof from; ++i)
      value |= static_cast<bits>(from[i]) << (8 * i);
    x = std::bit_cast<T>(value);
  } else if constexpr (sizeof(T) == 1) {
    x = static_cast<T>(in.byte());
  } else if constexpr (std::is_signed_v<T>) {
    const auto zigzag = in.varint();
    const auto value = static_cast<std::int64_t>((zigzag >> 1) ^ (~(zigzag & 1) + 1));
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      in.fail("integer out of range");
    x = static_cast<T>(value);
  } else {
    const auto value = in.varint();
    if (value > std::numeric_limits<T>::max())
      in.fail("integer out of range");
    x = static_cast<T>(value);
  }
}

template <has_fields T>
void read_binary_fields(binary_reader& in, T& x) {
  codec_scope scope{in, packet_name<T>()};
  const auto read = [&](const auto& field) {
    if (in.at_end())
      return false; // an older peer does not know this field: it keeps its default
    scope.at(field.name);
    read_binary(in, x.*field.member);
    return true;
  };
  std::apply([&](const auto&... field) { static_cast<void>((read(field) && ...)); }, packet_fields<T>.items);
}

template <class T>
void read_binary_sequence(binary_reader& in, T& x) {
  using element = typename T::value_type;
  static_assert(least_bytes<element>() > 0, "ZLINK_PACKET: elements of a container must take at least one byte");
  const auto n = in.count(least_bytes<element>());
  x.clear();
  if constexpr (is_raw<element> && is_a<T, std::vector>) {
    x.resize(n);
    in.raw(x.data(), n * sizeof(element));
  } else {
    if constexpr (is_a<T, std::vector>) // a few bytes may claim many large elements: reserve only what is plausible
      x.reserve(std::min(n, 1 + 4 * in.left() / sizeof(element)));
    for (std::size_t i = 0; i < n; ++i) {
      element value{};
      read_binary(in, value);
      x.push_back(std::move(value));
    }
  }
}

template <class T>
void read_binary_keyed(binary_reader& in, T& x) {
  using key_type = typename T::key_type;
  static_assert(least_bytes<key_type>() > 0, "ZLINK_PACKET: keys of a container must take at least one byte");
  const auto n = in.count(least_bytes<key_type>());
  x.clear();
  for (std::size_t i = 0; i < n; ++i) {
    key_type key{};
    read_binary(in, key);
    bool added = false;
    if constexpr (map_field<T>) {
      typename T::mapped_type value{};
      read_binary(in, value);
      added = x.emplace(std::move(key), std::move(value)).second;
    } else {
      added = x.insert(std::move(key)).second;
    }
    if (!added)
      in.fail("key occurs twice");
  }
}

template <class T, std::size_t I = 0>
void read_binary_alternative(binary_reader& in, std::size_t index, T& x) {
  if constexpr (I == std::variant_size_v<T>) {
    in.fail("unknown alternative of a variant");
  } else if (index == I) {
    read_binary(in, x.template emplace<I>());
  } else {
    read_binary_alternative<T, I + 1>(in, index, x);
  }
}

inline bool read_binary_flag(binary_reader& in) {
  const auto b = in.byte();
  if (b > std::byte{1})
    in.fail("neither true nor false");
  return b == std::byte{1};
}

template <class T>
void read_binary(binary_reader& in, T& x) {
  if constexpr (std::same_as<T, bool>) {
    x = read_binary_flag(in);
  } else if constexpr (integer_field<T> || float_field<T>) {
    read_binary_number(in, x);
  } else if constexpr (enum_field<T>) {
    std::underlying_type_t<T> number{};
    read_binary(in, number);
    x = static_cast<T>(number);
  } else if constexpr (duration_field<T>) {
    typename T::rep number{};
    read_binary(in, number);
    x = T{number};
  } else if constexpr (std::same_as<T, std::string>) {
    x.resize(in.count(1));
    in.raw(x.data(), x.size());
  } else if constexpr (optional_field<T>) {
    x.reset();
    if (read_binary_flag(in))
      read_binary(in, x.emplace());
  } else if constexpr (array_field<T>) {
    if constexpr (is_raw<typename T::value_type>)
      in.raw(x.data(), x.size() * sizeof(typename T::value_type));
    else
      for (auto& element : x)
        read_binary(in, element);
  } else if constexpr (tuple_field<T>) {
    std::apply([&](auto&... part) { (read_binary(in, part), ...); }, x);
  } else if constexpr (variant_field<T>) {
    read_binary_alternative(in, in.varint(), x);
  } else if constexpr (map_field<T> || set_field<T>) {
    read_binary_keyed(in, x);
  } else if constexpr (sequence_field<T>) {
    read_binary_sequence(in, x);
  } else if constexpr (has_fields<T>) {
    const auto outer_end = in.enter(in.count(1));
    read_binary_fields(in, x);
    in.leave(outer_end);
  }
}

// -- whole packets ----------------------------------------------------------------------------------------------------

template <class T>
void encode_binary(const T& x, bytes& to) {
  binary_writer out{to};
  write_binary_fields(out, x);
  out.finish();
}

template <class T>
void decode_binary(byte_view from, T& into) {
  binary_reader in{from};
  read_binary_fields(in, into);
}

} // namespace zlink::detail
