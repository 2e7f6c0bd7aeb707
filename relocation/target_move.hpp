// One unit on its way in: the state machine of its target (chapter 06, sections 9, 10, 12, 13).
#pragma once

#include "relocation/carried_unit.hpp"
#include "relocation/lane_frames.hpp"
#include "relocation/moves.hpp"
#include "relocation/target_record.hpp"
#include "relocation/temporary_queue.hpp"
#include "relocation/wakeup.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace zlink::detail {

class target_move final : public std::enable_shared_from_this<target_move> {
public:
  /// `source`: RID, which stays as long as the host.
  target_move(host_runtime& host, node_runtime& node, const std::string& source, unique_id move, restore_request request);
  ~target_move();

  const unique_id id;
  std::uint64_t attempt() const noexcept { return request_.attempt; }
  const std::string& address() const noexcept { return addresses_.front(); }
  const std::vector<std::string>& addresses() const noexcept { return addresses_; }
  const std::string& source() const noexcept { return source_; }

  // -- on the transport's thread ---------------------------------------------------------------------------------------

  /// The temporary queue stands at every address of the unit: before anything else is looked at (L-100).
  void register_queue();
  bool same(const restore_request& again) const noexcept;
  void repeated();
  /// Another content under the same identity: an explicit conflict, as long as this can be refused at all (L-97).
  void contradicted();
  void chunk(const chunk_view& part);
  void relayed(const relayed_message& what);
  void cutover(const cutover_mark& mark);
  void abandoned();

  // -- in the unit -------------------------------------------------------------------------------------------------------

  task<void> run();
  /// `run` has ended.
  bool over() const noexcept { return over_; }
  void set_over() noexcept { over_ = true; }
  void link_changed(const std::string& rid);
  /// A newer attempt takes the place of this one, or the host ends.
  void give_up();

private:
  using refusal = move_refusal;
  using failure = std::optional<refusal>;

  task<bool> assemble();
  failure check_payload();
  bool answer_ready();
  void answer_refused(const refusal& why);
  task<void> wait_for_cutover();
  void send(control_command command, const bytes& body);

  // From the payload to objects (target_build.cpp).
  task<failure> prepare();
  bool void_by_now() const;
  task<failure> rebuild();
  task<failure> rebuild_spot(std::uint32_t index);
  task<failure> rebuild_actor(std::uint32_t index);
  counted_ptr<spot_object> spot_of(std::uint32_t index) const;
  counted_ptr<spot_object> spot_of_join() const;
  task<void> await_room(std::uint32_t index);
  placement::spot_membership membership_of(std::uint32_t index) const;
  task<failure> restore(std::uint32_t index);
  task<void> restore_in_turn(std::uint32_t index, hosted_object& object);
  task<void> restore_state(hosted_object& object, byte_view state) const;

  // The commit and what follows it, or the end without one (target_open.cpp).
  task<bool> commit();
  void take_events(bool from_now_on);
  void merge();
  void merge_part(std::uint32_t index);
  task<void> open();
  task<void> finish_join(counted_ptr<actor_object> actor);
  void take_members_in(hosted_object& lead);
  void open_in_turn(hosted_object& lead);
  void tell_sessions();
  task<void> dispose_all();
  task<void> remove_staging();

  host_runtime& host_;
  node_runtime& node_;
  const std::string& source_;
  const restore_request request_;
  const steady_time arrived_;
  const steady_time valid_until_;
  std::vector<std::string> addresses_;
  std::vector<counted_ptr<detour>> detours_;
  std::vector<authority_generation> owned_since_; ///< of objects that come back
  counted_ptr<temporary_queue> queue_;
  wakeup wake_;

  mutable std::mutex mutex_;
  bytes payload_;           ///< as far as it has come
  std::uint32_t next_chunk_ = 0;
  bool broken_ = false;     ///< a chunk came out of order, or another content under the same identity
  std::optional<cutover_mark> cutover_;
  bool abandoned_ = false;
  bool ready_sent_ = false;
  bool decided_ = false;    ///< by the mark, or without it: no mark changes anything any more

  // The unit's.
  carried_unit content_;
  struct member {
    counted_ptr<hosted_object> object;
    std::vector<staged_record> work; ///< of ticks the timer stands in the record
  };
  std::vector<member> members_;
  std::shared_ptr<target_record> record_;
  authority_generation authority_; ///< of the commit
  bool given_up_ = false;
  bool over_ = false;
};

} // namespace zlink::detail
