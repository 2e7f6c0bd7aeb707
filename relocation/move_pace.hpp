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

  /// Ends when the unit may begin. Paired with `leave`.
  task<void> enter();
  void leave();

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
  bool has_room(const std::string& peer, std::uint64_t bytes) const;
  void admit();
  void look();

  host_runtime& host_;
  std::deque<counted_ptr<operation<void>>> waiting_;
  std::size_t inside_ = 0;
  std::size_t window_ = 32; ///< grows while a worker is found at once, shrinks while it is not
  bool looking_ = false;
  counted_ptr<gate> probe_;
  std::map<std::string, std::uint64_t> bytes_; ///< to each peer
  std::uint64_t all_bytes_ = 0;
  std::deque<unique_function<void()>> waiting_for_room_;
};

} // namespace zlink::detail
