// Intrusive reference counting for the few things that records and threads share.
#pragma once

#include "zlink/execution/pooled.hpp"

#include <atomic>
#include <cassert>
#include <cstdint>
#include <utility>

namespace zlink::detail {

/// Starts with one reference, owned by whoever made it.
class counted : public pooled {
public:
  counted() = default;
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;

  void ref() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void unref() const noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      const_cast<counted*>(this)->destroy();
  }

protected:
  virtual ~counted() = default;
  virtual void destroy() noexcept { delete this; }

private:
  mutable std::atomic<std::uint32_t> references_{1};
};

/// Owns one reference.
template <class T>
class counted_ptr {
public:
  counted_ptr() = default;
  counted_ptr(std::nullptr_t) {}
  /// Takes over the reference that the caller holds.
  static counted_ptr adopt(T* what) noexcept {
    counted_ptr p;
    p.what_ = what;
    return p;
  }
  /// Adds a reference.
  static counted_ptr share(T* what) noexcept {
    if (what != nullptr)
      what->ref();
    return adopt(what);
  }
  counted_ptr(const counted_ptr& other) noexcept : what_(other.what_) {
    if (what_ != nullptr)
      what_->ref();
  }
  counted_ptr(counted_ptr&& other) noexcept : what_(std::exchange(other.what_, nullptr)) {}
  template <class U>
    requires(std::is_convertible_v<U*, T*>)
  counted_ptr(counted_ptr<U> other) noexcept : what_(other.release()) {}
  counted_ptr& operator=(counted_ptr other) noexcept {
    std::swap(what_, other.what_);
    return *this;
  }
  ~counted_ptr() {
    if (what_ != nullptr)
      what_->unref();
  }
  T* get() const noexcept { return what_; }
  T* operator->() const noexcept { return what_; }
  T& operator*() const noexcept { return *what_; }
  explicit operator bool() const noexcept { return what_ != nullptr; }
  /// Gives the reference to the caller.
  T* release() noexcept { return std::exchange(what_, nullptr); }
  friend bool operator==(const counted_ptr& a, const counted_ptr& b) noexcept { return a.what_ == b.what_; }

private:
  T* what_ = nullptr;
};

template <class T, class... Args>
counted_ptr<T> new_counted(Args&&... args) {
  return counted_ptr<T>::adopt(new T(std::forward<Args>(args)...));
}

} // namespace zlink::detail
