// What stands at an address while its object moves: messages for it are kept, or sent after it (L-63, L-100, L-180).
#pragma once

#include "zlink/execution/counted.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/identity.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace zlink::detail {

class submission;

/// What is known of a message besides its record.
struct passage {
  object_generation known = {};        ///< the incarnation that its sender believes in; none: any
  authority_generation authority = {}; ///< and its ownership; of a followed message that of the last owner it passed
  std::uint8_t hops = 0;               ///< how many former owners have sent it on (L-182)
  bool arrival = false;                ///< it came from another node
};

class detour : public counted {
public:
  enum class answer : std::uint8_t {
    pass,   ///< not its matter: as if it were not there
    taken,  ///< kept; the record is its own now
    follow, ///< `forward` takes the message, when no lock is held
  };
  /// Under the lock of the object table, so that what it takes never meets the object as well (L-157). Never calls out.
  virtual answer take(record* r, const passage& how) noexcept = 0;
  virtual void forward(submission message) = 0;
  /// What it sends on was once owned here: the oldest ownership whose routes may still lead here; none: it sends nothing on.
  virtual authority_generation owned_since() const noexcept { return former_ ? former_->owned_since() : authority_generation{}; }

  /// It stands where that one stood, which may have sent on. Before anybody asks `lasting`.
  void note_former(counted_ptr<detour> former) noexcept { former_ = std::move(former); }
  /// What is to send on when this one goes and nothing has come in its place; none: nothing. Inside the infrastructure unit.
  virtual counted_ptr<detour> lasting() noexcept { return former_ ? former_->lasting() : counted_ptr<detour>{}; }

private:
  counted_ptr<detour> former_;
};

} // namespace zlink::detail
