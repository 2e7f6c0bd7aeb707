// User Spots and Actors by explicit order: create, get or create; find and close of Spots (C-58 to C-79, C-112 to C-125).
#pragma once

#include "zlink/manager.hpp"
#include "zlink/objects/hosted_object.hpp"
#include "zlink/messaging/control_calls.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/resolver.hpp"
#include "zlink/placement/directory.hpp"
#include "zlink/placement/records.hpp"
#include "zlink/placement/transitions.hpp"
#include "zlink/task.hpp"

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace zlink::detail {

class host_runtime;
class link_session;
class node_runtime;

/// What a coordinator reserved and the target builds (C-69).
struct reservation {
  placement::object_kind kind = placement::object_kind::user_spot;
  std::string id;
  std::string type;
  unique_id reservation;
  object_generation generation;
  authority_generation authority;
  std::string version;
  operation_id operation;
  placement::node_identity source;
  steady_time due{};
};

class creations {
public:
  explicit creations(host_runtime& host) noexcept : host_(host) {}
  creations(const creations&) = delete;
  creations& operator=(const creations&) = delete;

  /// `ended`: of a `spot_create_result` or `actor_create_result`, as the call says.
  void create(create_call call, counted_ptr<operation_base> ended, turn_use use, std::stop_token cancel);
  task<std::optional<spot_ref>> find(std::string spot_id, std::stop_token cancel);
  task<bool> close(spot_ref spot, std::stop_token cancel);

  /// The target's part: verifies what is stored, builds, commits or aborts (C-70 to C-72). Inside the unit.
  task<result<spot_create_result>> build_here(node_runtime& node, reservation made);
  /// A question from another node (C-69, C-118). Inside the unit.
  task<void> serve(node_runtime& node, counted_ptr<link_session> link, std::uint16_t command, operation_id operation,
                   bytes body);
  /// Closes this incarnation, here or at its owner; throws the caller's error.
  task<bool> close_exactly(spot_ref spot, steady_time due);

  /// The reservation goes if whoever holds it has ended (C-79). Inside the unit.
  task<bool> release_if_dead(std::string address, placement::observed_object seen);

  /// The owner by that row is to end the object: `close_spot` or `destroy_actor`. Throws the caller's error.
  task<bool> ask_owner(placement::observed_object seen, control_command command, std::string id, steady_time due);
  /// The object goes, whose owner has ended: by its exact generation (S-79). Throws the caller's error.
  task<bool> release_dead(std::string address, object_generation generation, placement::observed_object seen);

  /// A question to another node, asked again as long as its link comes and goes (C-75). Always an answer.
  task<std::optional<control_answer>> ask(std::string mesh_name, std::string rid, std::uint16_t command,
                                          operation_id operation, bytes body, steady_time due);

private:
  struct creation;
  task<void> run(std::shared_ptr<creation> c);
  task<std::optional<result<spot_create_result>>> attempt(creation& c);
  task<std::optional<result<spot_create_result>>> reserve(creation& c, const placement::observed_object& seen);
  task<result<placement::live_node>> choose_target(node_runtime& node, creation& c);
  task<std::optional<message>> load_request(const placement::row_record& row);
  task<store_outcome<store_read_result>> task_of_raw_read(std::string key);
  std::optional<placement::kept_terminal> terminal_of(const result<accept_reject_response>& built,
                                                      const placement::row_record& row, const reservation& made);
  task<bool> finish_reservation(placement::observed_object seen, placement::reservation_end end, steady_time due, bool commit);
  task<result<spot_create_result>> ask_target(node_runtime& node, placement::node_identity target, reservation made);
  task<control_answer> serve_create(node_runtime& node, operation_id operation, bytes body, link_session& link);
  task<control_answer> serve_join(node_runtime& node, operation_id operation, bytes body, link_session& link);
  task<control_answer> serve_close(node_runtime& node, operation_id operation, bytes body, link_session& link);
  task<control_answer> serve_destroy(node_runtime& node, operation_id operation, bytes body, link_session& link);
  void note_closed(operation_id operation);
  /// Which question, of whom.
  struct asked {
    std::string rid;
    std::uint64_t lifecycle = 0;
    operation_id operation;
    friend auto operator<=>(const asked&, const asked&) = default;
  };
  struct served {
    std::vector<counted_ptr<operation<control_answer>>> again; ///< asked again meanwhile
    std::optional<control_answer> answer;                      ///< kept for who asks later
  };
  std::optional<task<control_answer>> served_before(const asked& question);
  void tell_all(const asked& question, const control_answer& answer, std::optional<steady_time> kept_until);
  control_answer created_answer(const spot_create_result& built);
  std::string encode_reply(const message& reply);
  task<std::optional<control_answer>> kept_answer(node_runtime& node, const reservation& made);
  task<std::optional<spot_ref>> look_up(std::string id);
  counted_ptr<hosted_object> make_object(node_runtime& node, const reservation& made, const std::string& type);
  task<result<accept_reject_response>> build(hosted_object& object, node_runtime& node, std::optional<message> request);
  void open(hosted_object& object, node_runtime& node);

  host_runtime& host_;
  std::map<asked, served> serving_; ///< creations and Joins for other nodes: each question runs once, however often it comes (C-75)
  std::set<operation_id> closed_; ///< closes that ended well lately, for a question that comes again
};

} // namespace zlink::detail
