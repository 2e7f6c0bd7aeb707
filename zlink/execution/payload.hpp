// The value a record carries: nothing, a typed value, encoded bytes, a CAF message or an error. Inside a node it is never
// encoded (D-9).
#pragma once

#include "zlink/caf/packet_ops.hpp"
#include "zlink/error.hpp"
#include "zlink/execution/encoded_value.hpp"
#include "zlink/packet.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace zlink {
class message;
}

namespace zlink::detail {

/// A packet decoded by name only, where no C++ type is at hand (behaviours fed from another node).
class dynamic_value {
public:
  /// Value-initialised.
  explicit dynamic_value(const packet_type& type);
  /// Takes over a constructed value whose place came from `raw_value`.
  dynamic_value(const packet_type& type, void* place) noexcept : type_(&type), place_(place) {}
  dynamic_value(dynamic_value&& other) noexcept
    : type_(std::exchange(other.type_, nullptr)), place_(std::exchange(other.place_, nullptr)) {}
  dynamic_value& operator=(dynamic_value&&) = delete;
  ~dynamic_value();
  const packet_type& type() const noexcept { return *type_; }
  void* address() const noexcept { return place_; }

private:
  const packet_type* type_;
  void* place_;
};

/// A place for a packet that somebody else constructs.
class raw_value {
public:
  explicit raw_value(const packet_type& type);
  raw_value(const raw_value&) = delete;
  raw_value& operator=(const raw_value&) = delete;
  ~raw_value();
  void* place() const noexcept { return place_; }
  /// The value is there now.
  dynamic_value constructed() && { return dynamic_value{*type_, std::exchange(place_, nullptr)}; }

private:
  const packet_type* type_;
  void* place_;
};

/// `shared`: an immutable `message` that many records refer to.
enum class payload_kind : std::uint8_t { empty, value, dynamic, encoded, caf_message, error, shared };

/// What can be done with the held type.
struct value_ops {
  payload_kind kind;
  const std::type_info* type;
  const packet_type* (*packet)() noexcept; ///< null: not a packet
  const caf_packet_ops* caf;               ///< null: CAF does not know it
  std::size_t size;
  void* (*address)(void* place) noexcept;
  void (*move)(void* to, void* from) noexcept; ///< and destroy `from`
  void (*destroy)(void* place) noexcept;
};

class payload {
public:
  static constexpr std::size_t room = 104;

  payload() = default;
  payload(const payload&) = delete;
  payload(payload&& other) noexcept { take(other); }
  payload& operator=(payload&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~payload() { reset(); }

  template <class T, class... Args>
  T& emplace(Args&&... args);
  /// The held value if it is a `T`, else null.
  template <class T>
  T* get() noexcept;

  void reset() noexcept {
    if (ops_ != nullptr)
      std::exchange(ops_, nullptr)->destroy(place_);
  }
  payload_kind kind() const noexcept { return ops_ == nullptr ? payload_kind::empty : ops_->kind; }
  bool empty() const noexcept { return ops_ == nullptr; }
  const value_ops* ops() const noexcept { return ops_; }
  void* address() noexcept { return ops_->address(place_); }
  /// The registered packet held as value, typed or dynamic; null otherwise.
  const packet_type* packet() noexcept;
  /// sizeof of the held value, or the bytes of an encoded one: what a lane charges beside the fixed 256 (X-80, D-9).
  std::size_t size() noexcept {
    switch (kind()) {
      case payload_kind::empty: return 0;
      case payload_kind::encoded: return get<encoded_value>()->data().size();
      case payload_kind::dynamic: return get<dynamic_value>()->type().size;
      case payload_kind::shared: return shared_size();
      default: return ops_->size;
    }
  }

private:
  std::size_t shared_size() noexcept;
  void take(payload& other) noexcept {
    if (other.ops_ != nullptr) {
      other.ops_->move(place_, other.place_);
      ops_ = std::exchange(other.ops_, nullptr);
    }
  }

  const value_ops* ops_ = nullptr;
  alignas(16) unsigned char place_[room];
};

static_assert(sizeof(encoded_value) <= payload::room, "what comes from other nodes needs no allocation of its own");

/// What the body is called in reports; "(none)" for an empty one.
std::string packet_name_of(payload& body);

template <class T>
struct value_ops_for {
  static constexpr bool in_place
    = sizeof(T) <= payload::room && alignof(T) <= 16 && std::is_nothrow_move_constructible_v<T>;

  static void* address(void* place) noexcept {
    if constexpr (in_place)
      return place;
    else
      return *static_cast<T**>(place);
  }
  static void move(void* to, void* from) noexcept {
    if constexpr (in_place) {
      ::new (to) T(std::move(*static_cast<T*>(from)));
      static_cast<T*>(from)->~T();
    } else {
      ::new (to) T*(*static_cast<T**>(from));
    }
  }
  static void destroy(void* place) noexcept {
    if constexpr (in_place)
      static_cast<T*>(place)->~T();
    else
      delete *static_cast<T**>(place);
  }
  static constexpr payload_kind kind() {
    if constexpr (std::is_same_v<T, encoded_value>)
      return payload_kind::encoded;
    else if constexpr (std::is_same_v<T, dynamic_value>)
      return payload_kind::dynamic;
    else if constexpr (std::is_same_v<T, caf::message>)
      return payload_kind::caf_message;
    else if constexpr (std::is_same_v<T, error>)
      return payload_kind::error;
    else if constexpr (std::is_same_v<T, zlink::message>)
      return payload_kind::shared;
    else
      return payload_kind::value;
  }
  static constexpr bool is_packet = zlink::packet<T>;
  static const packet_type* packet() noexcept {
    if constexpr (is_packet)
      return &packet_type_of<T>();
    else
      return nullptr;
  }
  static constexpr const caf_packet_ops* caf_ops() {
    if constexpr (is_packet)
      return &caf_packet_ops_of<T>;
    else
      return nullptr;
  }
  static constexpr value_ops ops{kind(), &typeid(T), &packet, caf_ops(), sizeof(T), &address, &move, &destroy};
};

template <class T, class... Args>
T& payload::emplace(Args&&... args) {
  reset();
  using ops = value_ops_for<T>;
  T* made = nullptr;
  if constexpr (ops::in_place)
    made = ::new (static_cast<void*>(place_)) T(std::forward<Args>(args)...);
  else
    made = *::new (static_cast<void*>(place_)) T*(new T(std::forward<Args>(args)...));
  ops_ = &ops::ops;
  return *made;
}

template <class T>
T* payload::get() noexcept {
  if (ops_ == nullptr || (ops_ != &value_ops_for<T>::ops && *ops_->type != typeid(T)))
    return nullptr;
  return static_cast<T*>(ops_->address(place_));
}

} // namespace zlink::detail
