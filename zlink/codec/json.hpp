// The JSON profile of M-35 for people, tools and clients of other languages: `application/json`.
//
// A packet is an object whose members are the fields by name. Names are case-sensitive; a member that occurs twice, or
// is missing though its field is no std::optional, is refused; unknown members are ignored; null stands only for an
// empty std::optional or std::monostate.
//
//   bool                     true, false             string               string, UTF-8
//   integer up to 32 bits    number without . or e   bytes                string, base64 with padding
//   integer of 64 bits       string of decimals      pair, tuple, array   array of exactly that length
//   float, double            finite number           variant              [index, value]
//   enum, duration           as their number         vector, set, …       array
//   packet                   object                  map                  object if by string, else array of [key, value]
//
// Enums travel as numbers because C++ does not know their names. A reference (M-36) refuses unknown members.
#pragma once

#include "zlink/codec/fields.hpp"
#include "zlink/codec_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace zlink::detail {

/// Largest JSON text that is read: parsing takes a multiple of it in memory.
inline constexpr std::size_t json_bytes_limit = 64 * 1024 * 1024;
/// Arrays and objects within each other that a JSON text may have: enough for `nesting_limit` packets in containers.
inline constexpr std::size_t json_depth_limit = 4 * nesting_limit;

/// Appends one JSON value to a string, token by token.
class json_writer {
public:
  explicit json_writer(std::string& to) : to_(to) {}

  void begin(char bracket) {
    separate();
    to_ += bracket;
  }
  void end(char bracket) { to_ += bracket; }
  void key(std::string_view name) {
    text(name);
    to_ += ':';
  }
  void null();
  void boolean(bool x);
  void number(std::int64_t x);
  void number(float x);
  void number(double x);
  void decimals(std::int64_t x);
  void decimals(std::uint64_t x);
  void text(std::string_view x);
  void base64(byte_view x);
  [[noreturn]] void fail(const char* why) const { throw encode_error{describe(place, why)}; }

  const codec_place* place = nullptr;
  int depth = 0;

private:
  void separate() {
    if (!to_.empty() && to_.back() != '{' && to_.back() != '[' && to_.back() != ':')
      to_ += ',';
  }
  std::string& to_;
};

/// One value inside a `json_document`; valid as long as that.
class json_value {
public:
  explicit json_value(const void* node) : node_(node) {}
  const void* node() const noexcept { return node_; }

private:
  const void* node_;
};

/// A parsed text with its reading position's context. Members throw `decode_error` if the value is of another kind.
class json_reader {
public:
  /// Parses; `packet` is named in errors of the text itself.
  json_reader(std::string_view packet, std::string_view text);
  ~json_reader();

  json_value root() const noexcept;
  bool is_null(json_value v) const noexcept;
  bool boolean(json_value v) const;
  /// A number without fraction and exponent.
  std::int64_t number(json_value v, std::int64_t least, std::int64_t most) const;
  double floating(json_value v, double most) const;
  std::int64_t signed_decimals(json_value v) const;
  std::uint64_t unsigned_decimals(json_value v) const;
  const std::string& text(json_value v) const;
  bytes base64(json_value v) const;
  std::size_t array_size(json_value v) const;
  json_value element(json_value array, std::size_t i) const;
  std::size_t object_size(json_value v) const;
  /// Null pointer inside if there is no such member.
  json_value member(json_value object, const char* name) const;
  std::vector<std::pair<std::string_view, json_value>> members(json_value object) const;
  [[noreturn]] void fail(const char* why) const { throw decode_error{describe(place, why)}; }

  const codec_place* place = nullptr;
  int depth = 0;

private:
  struct document;
  std::unique_ptr<document> document_;
};

template <class T>
void write_json(json_writer& out, const T& x);
template <class T>
void read_json(json_reader& in, json_value v, T& x);

/// Keys of maps that become member names.
template <class T>
concept string_map_field = map_field<T> && std::same_as<typename T::key_type, std::string>;

// -- writing ----------------------------------------------------------------------------------------------------------

/// References are refused where M-36 would refuse them at the reader.
template <object_reference T, class Coder>
void check_json_reference(const T& x, Coder& coder) {
  if (x.object_generation == 0 || x.object_generation > generation_limit)
    coder.fail("object generation outside 1..9223372036854775807");
}

template <has_fields T>
void write_json_fields(json_writer& out, const T& x) {
  codec_scope scope{out, packet_name<T>()};
  if constexpr (object_reference<T>) {
    scope.at("objectGeneration");
    check_json_reference(x, out);
  }
  const auto write = [&](const auto& field) {
    const auto& member = x.*field.member;
    scope.at(field.name);
    if constexpr (optional_field<std::remove_cvref_t<decltype(member)>>) {
      if (!member)
        return;
    }
    out.key(field.name);
    write_json(out, member);
  };
  out.begin('{');
  std::apply([&](const auto&... field) { (write(field), ...); }, packet_fields<T>.items);
  out.end('}');
}

template <class T>
void write_json_map(json_writer& out, const T& x) {
  constexpr bool by_name = string_map_field<T>;
  out.begin(by_name ? '{' : '[');
  for (const auto& [key, value] : x) {
    if constexpr (by_name) {
      out.key(key);
      write_json(out, value);
    } else {
      out.begin('[');
      write_json(out, key);
      write_json(out, value);
      out.end(']');
    }
  }
  out.end(by_name ? '}' : ']');
}

template <class T>
void write_json_number(json_writer& out, T x) {
  if constexpr (float_field<T>) {
    if (!std::isfinite(x))
      out.fail("a number that is not finite has no JSON form");
    out.number(x);
  } else if constexpr (sizeof(T) < 8) {
    out.number(static_cast<std::int64_t>(x));
  } else if constexpr (std::is_signed_v<T>) {
    out.decimals(static_cast<std::int64_t>(x));
  } else {
    out.decimals(static_cast<std::uint64_t>(x));
  }
}

template <class T>
void write_json(json_writer& out, const T& x) {
  if constexpr (std::same_as<T, bool>) {
    out.boolean(x);
  } else if constexpr (integer_field<T> || float_field<T>) {
    write_json_number(out, x);
  } else if constexpr (enum_field<T>) {
    write_json(out, static_cast<std::underlying_type_t<T>>(x));
  } else if constexpr (duration_field<T>) {
    write_json(out, x.count());
  } else if constexpr (std::same_as<T, std::string>) {
    out.text(x);
  } else if constexpr (std::same_as<T, std::monostate>) {
    out.null();
  } else if constexpr (blob_field<T>) {
    out.base64(x);
  } else if constexpr (optional_field<T>) {
    static_assert(!optional_field<typename T::value_type> && !std::same_as<typename T::value_type, std::monostate>,
                  "ZLINK_PACKET: null would not tell an empty optional from one that holds nothing");
    if (x)
      write_json(out, *x);
    else
      out.null();
  } else if constexpr (tuple_field<T>) {
    out.begin('[');
    std::apply([&](const auto&... part) { (write_json(out, part), ...); }, x);
    out.end(']');
  } else if constexpr (variant_field<T>) {
    if (x.valueless_by_exception())
      out.fail("variant without value");
    out.begin('[');
    out.number(static_cast<std::int64_t>(x.index()));
    std::visit([&](const auto& value) { write_json(out, value); }, x);
    out.end(']');
  } else if constexpr (map_field<T>) {
    write_json_map(out, x);
  } else if constexpr (array_field<T> || set_field<T> || sequence_field<T>) {
    out.begin('[');
    for (const auto& element : x)
      write_json<typename T::value_type>(out, element);
    out.end(']');
  } else if constexpr (has_fields<T>) {
    write_json_fields(out, x);
  }
}

// -- reading ----------------------------------------------------------------------------------------------------------

template <has_fields T>
void read_json_fields(json_reader& in, json_value v, T& x) {
  codec_scope scope{in, packet_name<T>()};
  const auto size = in.object_size(v);
  if constexpr (object_reference<T>) {
    if (size > decltype(zlink_packet_fields(packet_tag<T>{}))::size)
      in.fail("unknown member");
  }
  const auto read = [&](const auto& field) {
    auto& member = x.*field.member;
    scope.at(field.name);
    const auto found = in.member(v, field.name);
    if (found.node() != nullptr)
      read_json(in, found, member);
    else if constexpr (optional_field<std::remove_cvref_t<decltype(member)>>)
      member.reset();
    else
      in.fail("missing");
  };
  std::apply([&](const auto&... field) { (read(field), ...); }, packet_fields<T>.items);
  if constexpr (object_reference<T>) {
    scope.at("objectGeneration");
    check_json_reference(x, in);
  }
}

/// The elements of an array that must have exactly `size`.
inline void check_json_size(json_reader& in, json_value v, std::size_t size) {
  if (in.array_size(v) != size)
    in.fail("array of another length");
}

template <class T>
void read_json_sequence(json_reader& in, json_value v, T& x) {
  const auto n = in.array_size(v);
  x.clear();
  for (std::size_t i = 0; i < n; ++i) {
    typename T::value_type value{};
    read_json(in, in.element(v, i), value);
    if constexpr (set_field<T>) {
      if (!x.insert(std::move(value)).second)
        in.fail("element occurs twice");
    } else {
      x.push_back(std::move(value));
    }
  }
}

template <class T>
void read_json_map(json_reader& in, json_value v, T& x) {
  x.clear();
  const auto add = [&](typename T::key_type key, json_value from) {
    typename T::mapped_type value{};
    read_json(in, from, value);
    if (!x.emplace(std::move(key), std::move(value)).second)
      in.fail("key occurs twice");
  };
  if constexpr (string_map_field<T>) {
    for (const auto& [name, value] : in.members(v))
      add(std::string{name}, value);
  } else {
    const auto n = in.array_size(v);
    for (std::size_t i = 0; i < n; ++i) {
      const auto pair = in.element(v, i);
      check_json_size(in, pair, 2);
      typename T::key_type key{};
      read_json(in, in.element(pair, 0), key);
      add(std::move(key), in.element(pair, 1));
    }
  }
}

template <class T>
void read_json_tuple(json_reader& in, json_value v, T& x) {
  check_json_size(in, v, std::tuple_size_v<T>);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (read_json(in, in.element(v, I), std::get<I>(x)), ...);
  }(std::make_index_sequence<std::tuple_size_v<T>>{});
}

template <class T, std::size_t I = 0>
void read_json_alternative(json_reader& in, std::size_t index, json_value v, T& x) {
  if constexpr (I == std::variant_size_v<T>) {
    in.fail("unknown alternative of a variant");
  } else if (index == I) {
    read_json(in, v, x.template emplace<I>());
  } else {
    read_json_alternative<T, I + 1>(in, index, v, x);
  }
}

template <class T>
void read_json_number(json_reader& in, json_value v, T& x) {
  using limits = std::numeric_limits<T>;
  if constexpr (float_field<T>)
    x = static_cast<T>(in.floating(v, limits::max()));
  else if constexpr (sizeof(T) < 8)
    x = static_cast<T>(in.number(v, std::int64_t{limits::min()}, std::int64_t{limits::max()}));
  else if constexpr (std::is_signed_v<T>)
    x = static_cast<T>(in.signed_decimals(v));
  else
    x = static_cast<T>(in.unsigned_decimals(v));
}

template <class T>
void read_json_blob(json_reader& in, json_value v, T& x) {
  auto found = in.base64(v);
  if constexpr (is_std_array<T>) {
    if (found.size() != x.size())
      in.fail("bytes of another length");
    std::copy(found.begin(), found.end(), x.begin());
  } else {
    x = std::move(found);
  }
}

template <class T>
void read_json(json_reader& in, json_value v, T& x) {
  if constexpr (std::same_as<T, bool>) {
    x = in.boolean(v);
  } else if constexpr (integer_field<T> || float_field<T>) {
    read_json_number(in, v, x);
  } else if constexpr (enum_field<T>) {
    std::underlying_type_t<T> number{};
    read_json(in, v, number);
    x = static_cast<T>(number);
  } else if constexpr (duration_field<T>) {
    typename T::rep number{};
    read_json(in, v, number);
    x = T{number};
  } else if constexpr (std::same_as<T, std::string>) {
    x = in.text(v);
  } else if constexpr (std::same_as<T, std::monostate>) {
    if (!in.is_null(v))
      in.fail("not null");
  } else if constexpr (blob_field<T>) {
    read_json_blob(in, v, x);
  } else if constexpr (optional_field<T>) {
    x.reset();
    if (!in.is_null(v))
      read_json(in, v, x.emplace());
  } else if constexpr (array_field<T>) {
    check_json_size(in, v, x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      read_json(in, in.element(v, i), x[i]);
  } else if constexpr (tuple_field<T>) {
    read_json_tuple(in, v, x);
  } else if constexpr (variant_field<T>) {
    check_json_size(in, v, 2);
    read_json_alternative(in, static_cast<std::size_t>(in.number(in.element(v, 0), 0, 1 << 20)), in.element(v, 1), x);
  } else if constexpr (map_field<T>) {
    read_json_map(in, v, x);
  } else if constexpr (set_field<T> || sequence_field<T>) {
    read_json_sequence(in, v, x);
  } else if constexpr (has_fields<T>) {
    read_json_fields(in, v, x);
  }
}

// -- whole packets ----------------------------------------------------------------------------------------------------

template <class T>
void encode_json(const T& x, std::string& to) {
  std::string text; // on its own: a failure leaves `to` as it was, and commas depend on what stands before
  json_writer out{text};
  write_json_fields(out, x);
  to += text;
}

template <class T>
void decode_json(std::string_view from, T& into) {
  json_reader in{packet_name<T>(), from};
  read_json_fields(in, in.root(), into);
}

} // namespace zlink::detail
