// What comes for a unit at its target before its dispatch opens (chapter 06, section 9).
#pragma once

#include "relocation/carried_unit.hpp"
#include "zlink/execution/counted.hpp"
#include "zlink/objects/detour.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace zlink::detail {

/// Any thread.
class temporary_queue final : public counted {
public:
  explicit temporary_queue(std::vector<object_generation> parts);
  ~temporary_queue() override;

  /// What is to stand at the address of that part.
  counted_ptr<detour> part(std::uint32_t index);

  /// A record that the source has relayed, before its cutover. A batch begins with the same records in the same order each time
  /// it is sent, so it takes the place of what has come before it by leaving that where it is: what another sending has brought
  /// is not taken twice, and not lost with the link that was to bring it again (L-137). False: the queue has ended, and the record
  /// is the caller's.
  bool relay(std::uint32_t part, std::uint32_t batch, byte_view frame, staged_record& what);
  /// Behind the cutover, or late: in the order of arrival with what comes directly (L-105).
  bool append(std::uint32_t part, staged_record& what);
  struct relayed {
    std::uint32_t batch = 0; ///< the newest
    std::uint64_t records = 0;
    std::uint32_t sum = 0; ///< CRC-32C over their frames
  };
  relayed before_cutover() const;

  /// What waits for that part so far, in the order in which it is to run; more may come.
  std::vector<staged_record> take_part(std::uint32_t part);
  /// All that waits for that part, in the order in which it is to run: relayed, then the rest (L-156). Nothing enters any more.
  std::vector<staged_record> end_part(std::uint32_t part);

  /// Nothing of it runs here: what came directly, or behind the cutover, ends `unavailable` (L-148, L-161, L-185).
  void discard(mesh_links& links);

private:
  class part_detour;
  friend class part_detour;
  struct waiting {
    object_generation generation;
    bool ended = false;
    std::vector<staged_record> relayed;
    std::vector<staged_record> rest;
  };
  detour::answer take(std::uint32_t part, record* r, const passage& how) noexcept;
  static std::vector<staged_record> take(waiting& from);

  mutable std::mutex mutex_;
  std::vector<waiting> parts_;
  relayed relayed_;
  std::map<std::uint32_t, std::uint64_t> came_; ///< of each sending, so many records
  std::uint64_t longest_ = 0;                   ///< of them: so many records have been taken
};

} // namespace zlink::detail
