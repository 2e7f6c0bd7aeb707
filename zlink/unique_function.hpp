// A move-only callable. The standard has none before C++23, and completions own move-only things (tasks, records).
#pragma once

#include "zlink/execution/pooled.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace zlink {

template <class Signature>
class unique_function;

/// Holds one callable, in place up to 48 bytes. Calling an empty one is undefined; test with `operator bool`.
template <class R, class... Args>
class unique_function<R(Args...)> {
public:
  unique_function() = default;
  unique_function(std::nullptr_t) {}
  unique_function(unique_function&& other) noexcept { take(other); }
  unique_function& operator=(unique_function&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, unique_function> && std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
  unique_function(F&& f) {
    using held = std::decay_t<F>;
    if constexpr (fits<held>) {
      ::new (static_cast<void*>(place_)) held(std::forward<F>(f));
      ops_ = &in_place<held>;
    } else {
      ::new (static_cast<void*>(place_)) boxed<held>*(new boxed<held>(std::forward<F>(f)));
      ops_ = &on_heap<held>;
    }
  }
  ~unique_function() { reset(); }

  R operator()(Args... args) { return ops_->call(place_, std::forward<Args>(args)...); }
  explicit operator bool() const noexcept { return ops_ != nullptr; }
  void reset() noexcept {
    if (ops_)
      std::exchange(ops_, nullptr)->destroy(place_);
  }

private:
  static constexpr std::size_t room = 48;
  struct nothing {};
  struct operations {
    R (*call)(void*, Args&&...);
    void (*move)(void*, void*) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <class F>
  struct boxed : std::conditional_t<alignof(F) <= alignof(std::max_align_t), detail::pooled, nothing> {
    template <class G>
    explicit boxed(G&& f) : held(std::forward<G>(f)) {}
    F held;
  };
  template <class F>
  static constexpr bool fits
    = sizeof(F) <= room && alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;
  template <class F>
  static constexpr operations in_place{
    [](void* p, Args&&... args) -> R { return (*static_cast<F*>(p))(std::forward<Args>(args)...); },
    [](void* from, void* to) noexcept {
      ::new (to) F(std::move(*static_cast<F*>(from)));
      static_cast<F*>(from)->~F();
    },
    [](void* p) noexcept { static_cast<F*>(p)->~F(); },
  };
  template <class F>
  static constexpr operations on_heap{
    [](void* p, Args&&... args) -> R { return (*static_cast<boxed<F>**>(p))->held(std::forward<Args>(args)...); },
    [](void* from, void* to) noexcept { ::new (to) boxed<F>*(*static_cast<boxed<F>**>(from)); },
    [](void* p) noexcept { delete *static_cast<boxed<F>**>(p); },
  };
  void take(unique_function& other) noexcept {
    if (other.ops_) {
      other.ops_->move(other.place_, place_);
      ops_ = std::exchange(other.ops_, nullptr);
    }
  }

  alignas(std::max_align_t) unsigned char place_[room];
  const operations* ops_ = nullptr;
};

} // namespace zlink
