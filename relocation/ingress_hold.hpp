// What comes for a unit at its source from the seal on: held until the target is ready for it, then sent after it, as long as
// somebody may still ask here (L-63, L-133, L-134, L-180).
#pragma once

#include "relocation/carried_unit.hpp"
#include "zlink/execution/counted.hpp"
#include "zlink/messaging/resolver.hpp"
#include "zlink/objects/detour.hpp"

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zlink::detail {

class link_session;

/// Any thread, unless said otherwise.
class ingress_hold final : public counted {
public:
  struct addressee {
    std::string address;
    object_generation generation;
    authority_generation authority; ///< of this host
    authority_generation owned_since = {}; ///< the first of its ownerships that routes may still know; none: `authority`
  };
  /// `move`: the RelocationId.
  ingress_hold(node_runtime& node, unique_id move, std::vector<addressee> parts);

  /// What is to stand at the address of that part.
  counted_ptr<detour> part(std::uint32_t index);
  const std::vector<addressee>& parts() const noexcept { return parts_; }

  /// Messages that had waited for room when the lane was sealed: they come before all others.
  void put_first(std::uint32_t part, std::vector<submission> waited);
  /// What is held, in order; it is the caller's.
  std::vector<kept_record> take_held();
  /// What is held for that part. Under the lock of the object table: so nothing comes between.
  std::vector<kept_record> take_held(std::uint32_t part);

  /// `cutover` is sent while nothing is held; from then on everything goes behind it by that lane, as control of `link`, for
  /// which `number` stands in the reply table: whoever sees that link end ends what went by it (M-135). False: something is held.
  bool enter_lane(counted_ptr<link_session> link, std::uint64_t number, std::uint64_t attempt, const bytes& cutover);
  /// The lane has another link. What is under way on the former one may be lost.
  void change_link(counted_ptr<link_session> link, std::uint64_t number);
  /// The target is the owner, and all that has gone by the lane has arrived: messages follow as data, those of this host
  /// look for the new owner themselves.
  void follow(std::string target_rid);
  /// Nobody serves it: whoever comes is told so.
  void lose(error why);
  /// It sends nothing on any more, wherever it still stands. Inside the infrastructure unit.
  void end() noexcept { over_ = true; }

private:
  class part_detour;
  friend class part_detour;
  enum class mode : std::uint8_t { holding, lane, following, lost };

  detour::answer take(std::uint32_t part, record* r, const passage& how) noexcept;
  void forward(std::uint32_t part, submission message);
  void send_by_lane(std::uint32_t part, submission message);
  void send_after(std::uint32_t part, submission message, const std::string& target);
  void note_volume(std::uint32_t part, const submission& message, const std::string& target);
  void tell_sender(std::uint32_t part, const std::string& source_rid);

  node_runtime& node_;
  const unique_id move_;
  const std::vector<addressee> parts_;
  bool over_ = false; ///< the unit's
  mutable std::mutex mutex_;
  mode mode_ = mode::holding;
  std::deque<kept_record> held_;
  counted_ptr<link_session> link_;
  std::uint64_t number_ = 0; ///< of that link
  std::uint64_t attempt_ = 0;
  std::string target_rid_;
  std::optional<error> lost_;
  // What has followed since nothing waited on the link, and whether somebody was told that it is much:
  std::uint64_t waiting_records_ = 0;
  std::uint64_t waiting_bytes_ = 0;
  bool warned_ = false;
  std::set<std::pair<std::uint32_t, std::string>> told_; ///< of which part which node has been told (M-85)
};

} // namespace zlink::detail
