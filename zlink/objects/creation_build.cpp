// What the node does that a creation was reserved on: verify, build, commit or abort (C-70 to C-72).
#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/creations.hpp"
#include "zlink/objects/ready_row.hpp"
#include "zlink/objects/row_change.hpp"
#include "zlink/objects/stored_request.hpp"
#include "zlink/placement/digest.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

constexpr std::chrono::seconds end_patience{9}; // for the end of a reservation; then a later pass over the store ends it

} // namespace

std::string creations::encode_reply(const message& reply) { return encode_request(reply, host_).bytes; }

task<result<spot_create_result>> creations::build_here(node_runtime& node, reservation made) {
  auto reading = host_.repository->read_object(placement::address_of(made.kind, made.id));
  auto read = co_await std::move(reading);
  while (std::holds_alternative<store_failure>(read) && host_.time->now() < made.due) { // nobody else ends what was reserved
    auto pausing = placement::pause_before_retry(*host_.infra, *host_.random);
    co_await std::move(pausing);
    auto again = host_.repository->read_object(placement::address_of(made.kind, made.id));
    read = co_await std::move(again);
  }
  const auto* seen = placement::seen_in(read);
  const auto* row = seen == nullptr ? nullptr : placement::row_in(*seen);
  const bool reserved = row != nullptr && row->pending && row->pending->reservation == made.reservation
                        && row->node == node.identity && seen->version == made.version;
  if (!reserved || row->kind != made.kind || row->generation != made.generation || row->authority != made.authority
      || row->stable_type != made.type)
    co_return error{error_kind::unavailable, "the reservation of \"" + made.id + "\" was lost"};
  auto object = make_object(node, made, row->stable_type);
  auto loading = load_request(*row);
  auto request = co_await std::move(loading);
  placement::reservation_end end{made.id, made.reservation, host_.token(), node.stamp(), std::nullopt};
  if (!object || !request) {
    auto aborting = finish_reservation(*seen, std::move(end), made.due, false);
    co_await std::move(aborting);
    co_return error{error_kind::internal_failure, "the stored request of \"" + made.id + "\" is not what was reserved"};
  }
  if (auto why = host_.refuse(host_work::placement_here)) { // whatever was here has been told to close, or to leave
    auto aborting = finish_reservation(*seen, std::move(end), made.due, false);
    co_await std::move(aborting);
    co_return std::move(*why);
  }
  object->set_generations(row->generation, row->authority);
  if (!host_.objects.insert(object)) {
    auto aborting = finish_reservation(*seen, std::move(end), made.due, false);
    co_await std::move(aborting);
    co_return error{error_kind::unavailable, '"' + made.id + "\" is still ending on this node"};
  }
  auto building = build(*object, node, std::move(request));
  auto built = co_await std::move(building);
  if (built && built->reply) {
    try {
      static_cast<void>(encode_reply(*built->reply)); // before anything is decided by it
    } catch (...) {
      built = error{error_kind::internal_failure, "the reply of the creation callback: " + text_of_current_exception()};
    }
  }
  const auto closed = [&] { return object->application_word().has(admission_word::sealed_bit); }; // by a shutdown
  const error closed_error{error_kind::shutting_down, "the node is shutting down"};
  if (built && closed())
    built = closed_error;
  const bool accepted = built && built->accepted;
  end.terminal = terminal_of(built, *row, made);
  auto finishing = finish_reservation(*seen, std::move(end), made.due, accepted);
  const bool stored = co_await std::move(finishing);
  spot_create_result done{ref_of(made.id, *row), accepted ? spot_create_state::created : spot_create_state::rejected,
                          built ? built->reply : std::nullopt};
  if (accepted && stored && closed()) { // while the row became active: it goes with its Spot (S-117)
    auto removing = host_.closings.remove_row(*object);
    co_await std::move(removing);
    co_return closed_error;
  }
  if (accepted && stored) {
    open(*object, node);
    co_return done;
  }
  const error why = built ? error{error_kind::internal_failure, "the store did not carry out the creation of \"" + made.id + '"'}
                          : built.error();
  const bool declined = built && !built->accepted;
  if (declined)
    host_.activations.reject(*object);
  else
    host_.activations.discard(*object, why);
  // Nothing of the attempt is left when its caller learns of its end, and calls again (C-87).
  auto ending = run_turn<bool>(*object, *host_.infra, [](execution_object&) { return true; });
  co_await std::move(ending);
  if (declined)
    co_return done;
  co_return why;
}

/// Not in the table yet; null for a type that this node does not register.
counted_ptr<hosted_object> creations::make_object(node_runtime& node, const reservation& made, const std::string& type) {
  if (made.kind == placement::object_kind::actor) {
    const auto* factory = node.find_actor_factory(type);
    if (factory == nullptr || !node.hosts_actors(*factory))
      return {};
    return new_counted<actor_object>(node.home, host_.domain, new_counted<gate>(host_.domain), *factory, made.id);
  }
  const auto* factory = node.find_factory(spot_kind::user, type);
  return factory == nullptr ? counted_ptr<hosted_object>{} : host_.activations.make_object(node, *factory, made.id);
}

task<result<accept_reject_response>> creations::build(hosted_object& object, node_runtime& node, std::optional<message> request) {
  return object.is_actor() ? host_.actors.build(static_cast<actor_object&>(object), node, std::move(*request))
                           : host_.activations.build(static_cast<spot_object&>(object), node, std::move(request));
}

void creations::open(hosted_object& object, node_runtime& node) {
  if (object.is_actor())
    host_.actors.open(static_cast<actor_object&>(object), node);
  else
    host_.activations.open(static_cast<spot_object&>(object));
}

task<std::optional<message>> creations::load_request(const placement::row_record& row) {
  const auto content = row.pending->request;
  const auto reservation = row.pending->reservation;
  if (!content)
    co_return std::nullopt;
  std::string stored = content->bytes;
  if (content->is_apart()) {
    auto reading = task_of_raw_read(placement::content_key(reservation));
    auto answer = co_await std::move(reading);
    if (!answer || !answer->found)
      co_return std::nullopt;
    stored = answer->found->bytes;
  }
  if (stored.size() != content->size || placement::sha256(stored) != content->digest)
    co_return std::nullopt;
  co_return split_request(stored, host_.values);
}

task<store_outcome<store_read_result>> creations::task_of_raw_read(std::string key) {
  return placement::task_of<store_outcome<store_read_result>>(
    *host_.infra, [&](auto done) { host_.location->read(std::move(key), std::move(done)); });
}

std::optional<placement::kept_terminal> creations::terminal_of(const result<accept_reject_response>& built,
                                                                const placement::row_record& row,
                                                                const reservation& made) {
  placement::kept_terminal kept;
  kept.key = placement::terminal_key(made.source.node_rid, made.source.lifecycle, made.operation);
  kept.retention = placement::terminal_retention(
    std::chrono::duration_cast<std::chrono::milliseconds>(made.due - host_.time->now()));
  kept.record.result = !built           ? placement::creation_result::failed
                       : built->accepted ? placement::creation_result::created
                                         : placement::creation_result::rejected;
  if (built && built->accepted) {
    kept.record.generation = row.generation;
    kept.record.node = row.node;
  }
  if (built && built->reply) {
    try {
      kept.record.reply = encode_request(*built->reply, host_).bytes;
      kept.record.digest = placement::sha256(*kept.record.reply);
    } catch (const std::invalid_argument&) {
      kept.record.reply.reset(); // a reply that has no encoding is answered to a local caller only
    }
  }
  return kept;
}

// A row that nobody ends would occupy its id as long as this host lives (C-72, S-156).
task<bool> creations::finish_reservation(placement::observed_object seen, placement::reservation_end end, steady_time due,
                                          bool commit) {
  row_change change;
  const auto kind = placement::row_in(seen)->kind;
  change.id = placement::address_of(kind, end.id);
  change.judge = [this, &end, commit, kind, generation = placement::row_in(seen)->generation](const placement::observed_object& now) {
    const auto* row = placement::row_in(now);
    if (row != nullptr && row->generation == generation && row->state == placement::allocation_state::active)
      return row_judgement{row_end::settled}; // an earlier attempt got through late
    std::optional<placement::spot_membership> first; // of an Actor: the Entry Spot of this node (J-11, J-15)
    if (auto* node = host_.find_node(end.target.node.mesh_name)) {
      end.target = node->stamp(); // the node may have published another revision meanwhile (C-39)
      if (kind == placement::object_kind::actor)
        first = placement::spot_membership{node->entry_id, {}};
    }
    return judged(commit ? placement::commit(now, end, std::move(first)) : placement::abort(now, end));
  };
  change.give_up = [this, until = std::max(due, host_.time->now() + end_patience)](bool) { return host_.time->now() >= until; };
  change.seen = std::move(seen);
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  co_return outcome.how == row_end::applied || (commit && outcome.how == row_end::settled);
}

} // namespace zlink::detail
