// What a thread has ready for other nodes while it works through many jobs: sent together when it has done with them. Whoever
// gathers sees to it that a job which takes long does not hold it up.
#pragma once

#include "zlink/execution/counted.hpp"

#include <array>
#include <cstddef>

namespace zlink::detail {

/// Something that has gathered what it will send.
class gatherer : public counted {
public:
  virtual void send_gathered() noexcept = 0;

protected:
  ~gatherer() override = default;
};

/// Alive while its thread works through jobs; what was added is sent at its end.
class gathering {
public:
  gathering() noexcept;
  ~gathering();
  gathering(const gathering&) = delete;
  gathering& operator=(const gathering&) = delete;

  /// Another job of this thread follows the one that begins now. Without one there is nothing to wait for.
  static void expect(bool more) noexcept {
    if (here_ != nullptr)
      here_->more_ = more;
  }
  /// This thread gathers: more follows, or something waits already.
  static bool here() noexcept { return here_ != nullptr && (here_->more_ || here_->count_ != 0); }
  /// `what` sends at the end of this thread's gathering. False: there is none, or no place in it.
  static bool add(gatherer& what) noexcept;

private:
  static constinit thread_local gathering* here_;
  gathering* const outer_;
  std::array<counted_ptr<gatherer>, 8> waiting_;
  std::size_t count_ = 0;
  bool more_ = false;
};

} // namespace zlink::detail
