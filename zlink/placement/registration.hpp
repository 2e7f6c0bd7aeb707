// The records of one mesh node lifecycle: its identity claim, its descriptor and its Entry Spot's claim, from the first
// write to the last (S-27, S-44, S-47 to S-49, C-7, C-54).
#pragma once

#include "zlink/placement/ownership.hpp"
#include "zlink/placement/publication.hpp"
#include "zlink/placement/transitions.hpp"

#include <deque>
#include <optional>
#include <string>

namespace zlink::placement {

enum class registration_outcome : std::uint8_t {
  done,        ///< stored, or it was there already
  rid_taken,   ///< the RID is another live owner's: configuration error (C-7)
  entry_taken, ///< the Entry Spot id is in use: configuration error of kind `already_exists` (C-54)
  refused,     ///< the content changes an immutable field, or its revision is not larger (S-27, S-48); nothing written
  exhausted,   ///< no revision left: the host goes to Error and publishes no more (S-48)
  not_held,    ///< the host's lease is not held: nothing was sent, or nothing changed (S-40). Again after `regained`
  gone,        ///< the own records are no longer there or belong to others: nothing changed
  corrupt,     ///< a record that this layer cannot use stands in the way (S-21)
  late,        ///< the store did not settle it in time: it may be applied, and a later call finds out (S-156)
};

const char* to_string(registration_outcome outcome) noexcept;

/// One per mesh node lifecycle. Every member is called inside the infrastructure unit. Calls wait for each other in order.
/// Await what was begun before destroying it; `stop()` makes that short.
class node_registration {
public:
  node_registration(detail::infrastructure& unit, repository& records, const ownership& owner);
  node_registration(const node_registration&) = delete;
  node_registration& operator=(const node_registration&) = delete;

  /// Claims RID and Entry Spot id in one batch, with an empty capacity record (S-47). `entry_spot_id` empty: the node has no
  /// objects. A claim of this lifecycle that got through before counts. The record of a dead owner without Entry Spot is
  /// replaced: only a caller-chosen RID can meet one (C-9).
  task<registration_outcome> claim(node_identity node, std::string entry_spot_id, steady_time until);

  /// Stores the content under the next revision, or under its own if it has one. Node, owner, Entry Spot id and update time
  /// are filled in. The first publication replaces the claim; later ones may change what S-27 lists.
  task<registration_outcome> publish(descriptor_record content, steady_time until);

  /// Applies `edit` to what is published and publishes it inside this call (S-49), unless only counts changed: those go with
  /// the next publication. Edits do not overtake each other.
  task<registration_outcome> change(unique_function<void(descriptor_record&)> edit, steady_time until);

  /// As `change`, but written in any case: what was given up before cannot come through after it (L-221).
  task<registration_outcome> change_for_sure(unique_function<void(descriptor_record&)> edit, steady_time until);

  /// After `ownership_events::regained`: the same records with the new token, in one batch conditioned on the own former ones
  /// (S-44). In an emptied store they are written anew (S-142). Does nothing before the claim.
  task<registration_outcome> register_again(steady_time until);

  /// Removes descriptor, Entry claim and capacity record in one batch, only for this lifecycle and lease (C-54, S-117).
  /// `done` also if they are gone.
  task<registration_outcome> withdraw(steady_time until);

  /// Reads what is published: a write that was given up may have got through later. Changes nothing in the store.
  task<void> look_at_own(steady_time until);

  /// Ends every wait for the store at once.
  void stop() { calls_.stop(); }

  const node_identity& node() const noexcept { return node_; }
  const std::string& entry_spot_id() const noexcept { return entry_spot_id_; }
  /// What was stored last, with counts that were not published yet; state `claimed` before the first publication.
  const descriptor_record& descriptor() const noexcept { return current_; }
  /// For reservations on this node (S-72); nothing before the first publication and after `withdraw`.
  std::optional<descriptor_stamp> stamp() const;

private:
  enum class phase : std::uint8_t { idle, claimed, published, withdrawn };

  /// What the store shows under the keys of this node.
  struct sight {
    observed_descriptor descriptor;
    observed_object entry;
    observed<capacity_record> capacity;
  };
  struct look_result {
    std::optional<sight> seen; ///< nothing: the store does not answer
    bool corrupt = false;
  };
  struct claim_judgement {
    std::optional<registration_outcome> end;
    bool may_repeat = false;
  };

  task<registration_outcome> in_turn(task<registration_outcome> step);
  task<void> take_turn();
  void end_turn();
  task<look_result> look(steady_time until);
  bool is_own(const descriptor_record& record) const noexcept;
  bool is_own(const observed_object& entry) const noexcept;
  bool may_go_on(steady_time until) const noexcept;
  task<void> pause(steady_time until);

  task<registration_outcome> write_claim(steady_time until);
  task<claim_judgement> judge_claim(const sight& seen, std::optional<observed_descriptor>& replaced, steady_time until);
  store_batch claim_batch(const owner_token& token, const std::optional<observed_descriptor>& replaced) const;
  void note_claimed(const owner_token& token, std::string version);

  enum class writing : std::uint8_t { if_changed, always };
  task<registration_outcome> publish_in_turn(descriptor_record content, steady_time until, writing how = writing::if_changed);
  task<registration_outcome> change_in_turn(unique_function<void(descriptor_record&)> edit, steady_time until, writing how);
  task<registration_outcome> store_publication(descriptor_record content, steady_time until);
  task<registration_outcome> look_in_turn(steady_time until);
  void note_published(descriptor_record content, std::string version);
  std::uint64_t wall_clock_ms() const;

  task<registration_outcome> write_again(steady_time until);
  store_batch rewriting_batch(const sight& seen, const descriptor_record& content) const;
  void note_rewritten(descriptor_record content, std::string version);
  task<registration_outcome> remove_records(steady_time until);

  const ownership& owner_;
  store_calls calls_;
  node_identity node_;
  std::string entry_spot_id_;
  phase phase_ = phase::idle;
  descriptor_record current_;
  std::string version_;                       ///< of the stored descriptor as last known
  detail::descriptor_revision sent_revision_; ///< never sent again with other content (C-11)
  bool busy_ = false;
  std::deque<detail::counted_ptr<detail::operation<void>>> waiting_;
};

} // namespace zlink::placement
