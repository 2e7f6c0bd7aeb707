// How many units of a host are on their way at once: as many as leave the application its share of the processors, and as many
// bytes as the budgets allow (L-56, L-93, L-222).
#pragma once

#include "zlink/execution/gate.hpp"
#include "zlink/execution/infrastructure.hpp"
#include "zlink/task.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

namespace zlink::detail {

class host_runtime;

/// Every member inside the infrastructure unit.
class move_pace {
public:
  explicit move_pace(host_runtime& host) noexcept : host_(host) {}
  move_pace(const move_pace&) = delete;
  move_pace& operator=(const move_pace&) = delete;

  /// Ends when the unit may begin, which is to be over at `deadline`. Paired with `leave`.
  task<void> enter(steady_time deadline);
  void leave();
  /// A target has said that its application has to share its processors.
  void target_is_crowded() noexcept { told_crowded_ = true; }

  /// Of one unit, that its target has not taken: whatever others send meanwhile waits behind so much in the socket (L-95).
  static constexpr std::uint64_t most_under_way = 128 * 1024;
  /// Of one chunk (L-92): so that one is on the way while the next is made, and no more than the budgets allow at all.
  std::size_t largest_chunk() const noexcept;
  /// The budgets do not take another chunk: who is not sealed yet stays so (L-56).
  bool is_full(const std::string& peer) const;
  /// Bytes of chunks to that peer that its target has not taken: true if so many more may be sent now.
  bool take_bytes(const std::string& peer, std::uint64_t bytes);
  /// They were taken, or are void. Whoever waits for room finds it when `wants_room` calls him.
  void give_bytes(const std::string& peer, std::uint64_t bytes);
  /// Called once, when there may be room again.
  void wants_room(unique_function<void()> told) { waiting_for_room_.push_back(std::move(told)); }

private:
  struct waiting_unit {
    counted_ptr<operation<void>> may_begin;
    steady_time deadline;
  };
  bool has_room(const std::string& peer, std::uint64_t bytes) const;
  void admit();
  void look();
  void adapt(steady_duration delay);
  bool is_late(steady_time now) const;

  host_runtime& host_;
  std::deque<waiting_unit> waiting_;
  std::size_t inside_ = 0;
  std::size_t window_ = 16; ///< grows while the application gets the processors that it needs, shrinks while it does not
  bool looking_ = false;
  bool told_crowded_ = false;
  steady_time careful_until_{};
  std::size_t ended_ = 0; ///< since the last look
  double ended_a_look_ = 0;
  counted_ptr<gate> probe_;
  std::map<std::string, std::uint64_t> bytes_; ///< to each peer
  std::uint64_t all_bytes_ = 0;
  std::deque<unique_function<void()>> waiting_for_room_;
};

} // namespace zlink::detail
