// An Instance Spot comes to life on its first message: preserve it, reserve the id, build the instance behind a barrier,
// publish Ready, open (C-89 to C-106).
#pragma once

#include "zlink/messaging/refused_nodes.hpp"
#include "zlink/objects/spot_object.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/task.hpp"

#include <optional>
#include <string>
#include <unordered_map>

namespace zlink::detail {

class host_runtime;
class node_runtime;

class activation final : public spot_observer {
public:
  explicit activation(host_runtime& host) noexcept : host_(host) {}
  activation(const activation&) = delete;
  activation& operator=(const activation&) = delete;

  enum class begun : std::uint8_t {
    yes,         ///< `first` is record 1 of a new Spot on this node
    no,          ///< the id came to be here meanwhile
    unencodable, ///< `first` cannot be preserved: see the error
  };
  /// What is known besides the message itself.
  struct circumstances {
    std::optional<placement::observed_object> seen = {}; ///< what the store showed just now, if it was read
    refused_nodes refused = {};                          ///< had no room
  };
  /// `first` is still the caller's, unless the answer is yes. Any thread.
  begun begin(node_runtime& node, const spot_factory& factory, const std::string& id, record* first,
              circumstances known, std::optional<error>& why);

  /// A staging object, not yet in the table.
  counted_ptr<spot_object> make_object(node_runtime& node, const spot_factory& factory, std::string id);
  /// Ends a staging object that never became Ready: everything that waited gets `why`.
  void discard(hosted_object& object, error why);
  /// As `discard`, for an object whose creation was refused by the application.
  void reject(hosted_object& object);
  /// Ready: messages run. Inside the infrastructure unit.
  void open(spot_object& object);
  /// Factory, configure, on_initialize (and on_create between them for a User Spot) inside the object's lifecycle lane,
  /// holding one of the node's activation permits (C-42).
  task<result<spot_create_response>> build(spot_object& object, node_runtime& node, std::optional<message> request);
  /// One of the node's activation permits, which `node.activations->leave()` gives back (C-42).
  task<void> enter(node_runtime& node);
  /// Retries that a Conflict asks for are paced and end here (S-73).
  bool may_retry(steady_time due) const;
  /// A row of this host with a root that nothing here belongs to: its first activation was interrupted in this process, so
  /// it goes on with the preserved message and the numbers that the row has (C-98). False: that message is lost, and
  /// nothing has happened. Inside the unit.
  task<bool> resume(std::string id, placement::observed_object seen);
  /// This incarnation has ended; its root goes with its row. Inside the unit.
  void forget(object_generation ended) noexcept { unretired_.erase(ended.value); }

  void spot_quiet(spot_object& object) noexcept override;
  void first_record_ended(spot_object& object) noexcept override;

  std::atomic<std::uint64_t> activated{0}; ///< first activations that became Ready

private:
  struct attempt;
  /// What an activation takes from its first message.
  struct beginning {
    std::string envelope;                           ///< its stored form
    steady_time first_until = steady_time::max();   ///< when its caller stops waiting; a send's never does
    circumstances known;
  };
  task<void> finish(attempt& a, std::optional<error> failed);
  task<std::optional<error>> prepare(attempt& a, std::string envelope);
  task<std::optional<error>> become_ready(attempt& a);
  std::optional<error> ended_meanwhile(const attempt& a) const;
  task<record*> load_first(std::string id, placement::row_record row);
  task<std::optional<error>> preserve_first(attempt& a, std::string envelope);
  task<std::optional<error>> reserve(attempt& a);
  task<std::optional<error>> commit(attempt& a);
  task<bool> abort(attempt& a);
  placement::reservation_end end_of(const attempt& a) const;
  void end_staging(hosted_object& object, error why);
  task<void> pass_on(attempt& a);
  std::string stored_form(record& first, const std::string& id, const spot_factory& factory) const;
  task<void> run(counted_ptr<spot_object> object, node_runtime* node, beginning begun);
  task<void> retire_root(counted_ptr<spot_object> object);

  host_runtime& host_;
  /// The rows of those whose first handler has not ended, by generation, as this host wrote them last: so nothing is read
  /// to retire a root.
  std::unordered_map<std::uint64_t, placement::observed_object> unretired_;
};

} // namespace zlink::detail
