// Counts peers that were not let in, and tells of each at most once a minute, however many come.
#pragma once

#include "adapters/tcp/handshake.hpp"
#include "zlink/clock.hpp"
#include "zlink/mesh_transport.hpp"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>

namespace zlink::detail {

class refusals {
public:
  /// `log` null: a line on stderr.
  refusals(std::string mesh, link_refusal_log log, std::shared_ptr<const clock> time);

  /// `peer`: its address without port, or where it was dialled. `detail` is added to the reason. One thread.
  void note(const std::string& peer, refusal why, const std::string& detail = {});

  /// Any thread.
  std::uint64_t count(refusal why) const noexcept;
  std::uint64_t total() const noexcept;

private:
  struct told {
    steady_time last;
    std::uint64_t further = 0; ///< not told since
  };
  told* place_for(const std::string& peer, steady_time now);
  void tell(const link_refusal& what) const noexcept;

  const std::string mesh_;
  const link_refusal_log log_;
  const std::shared_ptr<const clock> time_;
  std::array<std::atomic<std::uint64_t>, refusal_kinds> counts_{};
  std::map<std::string, told> peers_; ///< bounded: those that nobody needs are forgotten
  steady_time looked_;
  told others_{};                     ///< when there are too many to tell them apart
};

} // namespace zlink::detail
