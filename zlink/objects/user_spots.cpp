#include "zlink/objects/user_spots.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/body_codec.hpp"
#include "zlink/messaging/call_start.hpp"
#include "zlink/objects/build_step.hpp"
#include "zlink/objects/row_change.hpp"
#include "zlink/placement/digest.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink {

const char* to_string(spot_create_state state) noexcept {
  switch (state) {
    case spot_create_state::existing: return "existing";
    case spot_create_state::created: return "created";
    case spot_create_state::rejected: return "rejected";
  }
  return "unknown";
}

namespace detail {

namespace {

constexpr std::chrono::seconds end_patience{9}; // for the end of a reservation; then a later pass over the store ends it

placement::request_content encode_request(const message& request, host_runtime& host) {
  auto body = request.to_payload();
  bytes data;
  std::string name;
  std::string type;
  if (!body.empty()) {
    body_encoder encoder{body, host.codecs, &host.system};
    encoder.encode(data);
    name = encoder.packet_name();
    type = encoder.content_type();
  }
  placement::request_content content;
  content.bytes = join_request(name, type, data);
  if (content.bytes.size() > placement::request_content::size_limit)
    throw std::invalid_argument{"a creation request of " + std::to_string(content.bytes.size())
                                + " bytes; 1 MiB is the most (encoded)"};
  content.size = static_cast<std::uint32_t>(content.bytes.size());
  content.digest = placement::sha256(content.bytes);
  return content;
}

spot_ref ref_of(std::string id, const placement::row_record& row) {
  return {std::move(id), row.generation.value, row.node.mesh_name, row.node.node_rid};
}

error type_error(const std::string& id, const placement::row_record& row, const std::string& wanted) {
  return {error_kind::type_mismatch, '"' + id + "\" is a "
                                       + (row.kind == placement::object_kind::user_spot ? "user" : "instance")
                                       + " spot of type \"" + row.stable_type + "\", asked for was user spot type \"" + wanted
                                       + '"'};
}

} // namespace

// -- the stored form of a request ---------------------------------------------------------------------------------------

std::string join_request(std::string_view name, std::string_view content_type, byte_view data) {
  std::string joined;
  for (auto part : {name, content_type}) {
    joined += static_cast<char>(part.size() & 0xff);
    joined += static_cast<char>(part.size() >> 8);
    joined += part;
  }
  joined.append(reinterpret_cast<const char*>(data.data()), data.size());
  return joined;
}

std::optional<message> split_request(std::string_view joined, std::shared_ptr<const decoding> by) {
  std::string_view name;
  std::string_view content_type;
  for (auto* part : {&name, &content_type}) {
    if (joined.size() < 2)
      return std::nullopt;
    const std::size_t length = static_cast<unsigned char>(joined[0]) | static_cast<unsigned char>(joined[1]) << 8;
    joined.remove_prefix(2);
    if (joined.size() < length)
      return std::nullopt;
    *part = joined.substr(0, length);
    joined.remove_prefix(length);
  }
  if (name.empty())
    return message{};
  payload body;
  body.emplace<encoded_value>(name, content_type,
                              byte_view{reinterpret_cast<const std::byte*>(joined.data()), joined.size()}, std::move(by));
  return message{std::move(body)};
}

std::string user_spots::encode_reply(const message& reply) { return encode_request(reply, host_).bytes; }

// -- create -------------------------------------------------------------------------------------------------------------

struct user_spots::creation {
  std::string id;
  bool issued = false; ///< by `create`: a collision is no reason to take what is there
  std::string type;
  std::optional<std::string> mesh;
  placement::request_content request;
  steady_time due{};
  counted_ptr<operation_base> ended;
  operation_id operation;
  std::vector<placement::node_identity> excluded;
  reply_route route;
};

task<spot_create_result> user_spots::create(create_call call, turn_use use, std::stop_token cancel) {
  auto ended = new_counted<operation<spot_create_result>>();
  ended->verb = "creation of spot";
  std::optional<error> mistake;
  if (call.started_)
    mistake = error{error_kind::invalid_operation, "this call was started before; make a new one"};
  else if (call.twice_)
    mistake = error{error_kind::invalid_operation, "an option was set twice on one create call"};
  else if (call.id_ && is_entry_spot_format(*call.id_))
    mistake = error{error_kind::invalid_operation, '"' + *call.id_ + "\" has the form of an Entry Spot id, which only the layer issues"};
  auto c = std::make_shared<creation>();
  if (!mistake)
    c->request = encode_request(call.request_.value_or(message{}), host_);
  call_start starting{host_, *ended, use, std::move(cancel)};
  if (!starting.allowed(std::move(mistake), true))
    return task<spot_create_result>{std::move(ended)};
  c->issued = !call.id_;
  c->id = call.id_ ? std::move(*call.id_) : format_uuid_v4(host_.random->next_id());
  c->type = std::move(call.type_);
  c->mesh = std::move(call.mesh_);
  c->operation = host_.random->next_id();
  const auto timeout = call.timeout_.value_or(host_.default_request_timeout());
  c->due = host_.time->now() + timeout;
  ended->subject = c->id;
  c->ended = ended;
  c->route = starting.enter_operation(timeout);
  starting.launch([this, c] { host_.infra->post([this, c] { start_coroutine(run(c), [](result<void>) {}); }); });
  return task<spot_create_result>{std::move(ended)};
}

task<void> user_spots::run(std::shared_ptr<creation> c) {
  std::chrono::milliseconds pause{2};
  std::optional<result<spot_create_result>> outcome;
  while (!outcome && !c->ended->done()) {
    auto trying = attempt(*c);
    outcome = co_await std::move(trying);
    if (outcome || c->ended->done())
      break;
    if (host_.time->now() >= c->due)
      break; // the operation's own deadline tells the caller
    auto pausing = placement::pause(*host_.infra, pause);
    co_await std::move(pausing);
    pause = std::min(pause * 2, std::chrono::milliseconds{50});
  }
  auto* r = make_record(record_kind::completion);
  r->reply.id = c->route.id;
  if (!outcome)
    r->body.emplace<error>(c->ended->timeout_error());
  else if (!*outcome)
    r->body.emplace<error>(outcome->error());
  else
    r->body.emplace<spot_create_result>(std::move(**outcome));
  c->route.receiver->receive_reply(r);
  c->route.receiver->unref_receiver();
}

/// One look at the id: an outcome, or nothing if it is to be looked at again.
task<std::optional<result<spot_create_result>>> user_spots::attempt(creation& c) {
  using outcome = result<spot_create_result>;
  if (auto why = host_.refuse_owned_work())
    co_return outcome{std::move(*why)}; // nothing is reserved past the deadline (S-40, S-41)
  auto reading = host_.repository->read_spot(c.id);
  auto read = co_await std::move(reading);
  const auto* seen = placement::seen_in(read);
  if (seen == nullptr)
    co_return outcome{error{error_kind::internal_failure, "the Location Store does not tell who owns \"" + c.id + '"'}};
  if (placement::claim_in(*seen) != nullptr)
    co_return outcome{error{error_kind::type_mismatch, '"' + c.id + "\" is an entry spot"}};
  host_.messages.routes.cache.row_seen(c.id, placement::row_in(*seen));
  if (const auto* row = placement::row_in(*seen)) {
    if (c.issued)
      co_return outcome{error{error_kind::already_exists, "the issued id \"" + c.id + "\" is taken"}};
    if (row->kind != placement::object_kind::user_spot || row->stable_type != c.type)
      co_return outcome{type_error(c.id, *row, c.type)};
    if (row->state == placement::allocation_state::reserved) {
      auto releasing = release_if_dead(c.id, *seen);
      co_await std::move(releasing);
      co_return std::nullopt;
    }
    const auto existing = ref_of(c.id, *row);
    auto judging = host_.messages.routes.judge_row(*seen);
    const auto found = co_await std::move(judging);
    if (found.what == resolved::closing)
      co_return std::nullopt;
    if (found.what == resolved::ready)
      co_return outcome{spot_create_result{existing, spot_create_state::existing, std::nullopt}};
    if (found.what == resolved::unavailable)
      co_return outcome{error{error_kind::unavailable, "spot \"" + c.id + "\" cannot be used: " + found.why}};
    co_return outcome{error{error_kind::internal_failure, found.why}};
  }
  auto reserving = reserve(c, *seen);
  co_return co_await std::move(reserving);
}

task<void> user_spots::release_if_dead(std::string id, placement::observed_object seen) {
  const auto& row = *placement::row_in(seen);
  const auto lease_of = placement::lease_key(row.owner.owner);
  const auto descriptor_of = placement::descriptor_key(row.node);
  placement::lifecycle_evidence evidence;
  auto reading_lease = host_.repository->read<placement::lease_record>(lease_of);
  auto lease = co_await std::move(reading_lease);
  auto reading_descriptor = host_.repository->read<placement::descriptor_record>(descriptor_of);
  auto descriptor = co_await std::move(reading_descriptor);
  const auto* seen_lease = placement::seen_in(lease);
  const auto* seen_descriptor = placement::seen_in(descriptor);
  if (seen_lease == nullptr || seen_descriptor == nullptr)
    co_return;
  evidence.lease = *seen_lease;
  evidence.descriptor = *seen_descriptor;
  auto releasing = host_.repository->apply_if(placement::release(seen, id, evidence));
  co_await std::move(releasing);
}

task<std::optional<result<spot_create_result>>> user_spots::reserve(creation& c, const placement::observed_object& seen) {
  using outcome = result<spot_create_result>;
  auto chosen = host_.node_for(c.mesh);
  if (auto* why = std::get_if<error>(&chosen))
    co_return outcome{std::move(*why)};
  auto& node = *std::get<node_runtime*>(chosen);
  auto choosing = choose_target(node, c);
  auto target = co_await std::move(choosing);
  if (!target)
    co_return outcome{target.error()};
  placement::reserve_request wish;
  wish.kind = placement::object_kind::user_spot;
  wish.id = c.id;
  wish.stable_type = c.type;
  wish.reservation = host_.random->next_id();
  wish.patience = std::chrono::duration_cast<std::chrono::milliseconds>(c.due - host_.time->now());
  wish.target_owner = target->descriptor->owner;
  wish.target = target->stamp();
  wish.limits = placement::limits_of(*target->descriptor, placement::slots_of(wish.kind, c.type));
  wish.content = c.request;
  if (c.request.is_apart()) {
    auto request = c.request;
    wish.request_apart = std::exchange(request.bytes, {});
    wish.content = std::move(request);
  }
  auto decided = placement::reserve(seen, wish);
  auto* step = std::get_if<placement::fragment>(&decided);
  if (step == nullptr)
    co_return std::nullopt;
  auto applying = host_.repository->apply(std::move(*step));
  const auto applied = co_await std::move(applying);
  switch (applied.what) {
    case placement::fragment_outcome::applied: break;
    case placement::fragment_outcome::no_capacity:
      c.excluded.push_back(target->descriptor->node);
      co_return std::nullopt;
    case placement::fragment_outcome::conflict: co_return std::nullopt;
    case placement::fragment_outcome::exhausted:
      co_return outcome{error{error_kind::internal_failure, "no generation is left for the id \"" + c.id + '"'}};
    default:
      co_return outcome{error{error_kind::internal_failure, "the store did not carry out the reservation of \"" + c.id + '"'}};
  }
  reservation made{c.id, c.type, wish.reservation, applied.numbers.object, applied.numbers.authority, applied.row_version, c.operation,
                   node.identity, c.due};
  if (target->descriptor->node.node_rid == node.rid()) {
    auto building = build_here(node, std::move(made));
    co_return co_await std::move(building);
  }
  auto asking = ask_target(node, target->descriptor->node, std::move(made));
  co_return co_await std::move(asking);
}

task<result<placement::live_node>> user_spots::choose_target(node_runtime& node, creation& c) {
  auto refreshed = placement::refresh_outcome::complete;
  for (bool fresh = false;; fresh = true) {
    const auto snapshot = node.peers_known->snapshot();
    placement::placement_wish wish{node.mesh_name(), placement::object_kind::user_spot, c.type,
                                   placement::slots_of(placement::object_kind::user_spot, c.type), c.excluded};
    auto choice = placement::choose_node(snapshot->candidates(host_.time->now()), wish, *host_.random);
    if (const auto* chosen = std::get_if<const placement::descriptor_record*>(&choice))
      co_return *snapshot->find((*chosen)->node.node_rid);
    if (fresh) {
      const auto& none = std::get<placement::no_candidate>(choice);
      // Without an answer an old list does not show that nobody is there (S-68).
      if (refreshed == placement::refresh_outcome::unavailable && none.kind() == error_kind::not_found)
        co_return error{error_kind::unavailable, "the Location Store does not tell which nodes there are"};
      co_return error{none.kind(), "user spot type \"" + c.type + "\": " + placement::to_string(none.cause)};
    }
    auto refreshing = node.peers_known->refresh();
    refreshed = co_await std::move(refreshing);
  }
}

// -- the reserving target's part ------------------------------------------------------------------------------------------

task<result<spot_create_result>> user_spots::build_here(node_runtime& node, reservation made) {
  auto reading = host_.repository->read_spot(made.id);
  auto read = co_await std::move(reading);
  const auto* seen = placement::seen_in(read);
  const auto* row = seen == nullptr ? nullptr : placement::row_in(*seen);
  const bool reserved = row != nullptr && row->pending && row->pending->reservation == made.reservation
                        && row->node == node.identity && seen->version == made.version;
  if (!reserved || row->generation != made.generation || row->authority != made.authority || row->stable_type != made.type)
    co_return error{error_kind::unavailable, "the reservation of \"" + made.id + "\" was lost"};
  const auto* factory = node.find_factory(spot_kind::user, row->stable_type);
  auto loading = load_request(*row);
  auto request = co_await std::move(loading);
  placement::reservation_end end{made.id, made.reservation, host_.token(), node.stamp(), std::nullopt};
  if (factory == nullptr || !request) {
    auto aborting = finish_reservation(*seen, std::move(end), made.due, false);
    co_await std::move(aborting);
    co_return error{error_kind::internal_failure, "the stored request of \"" + made.id + "\" is not what was reserved"};
  }
  if (host_.ending()) { // its Spots have been told to close, and maybe all of them have
    auto aborting = finish_reservation(*seen, std::move(end), made.due, false);
    co_await std::move(aborting);
    co_return error{error_kind::shutting_down, "the node is shutting down"};
  }
  auto object = host_.activations.make_object(node, *factory, made.id);
  object->set_generations(row->generation, row->authority);
  if (!host_.objects.insert(object)) {
    auto aborting = finish_reservation(*seen, std::move(end), made.due, false);
    co_await std::move(aborting);
    co_return error{error_kind::unavailable, '"' + made.id + "\" is still ending on this node"};
  }
  auto building = host_.activations.build(*object, node, std::move(request));
  auto built = co_await std::move(building);
  if (built && built->reply) {
    try {
      static_cast<void>(encode_reply(*built->reply)); // before anything is decided by it
    } catch (...) {
      built = error{error_kind::internal_failure, "the reply of on_create: " + text_of_current_exception()};
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
    host_.activations.open(*object);
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

task<std::optional<message>> user_spots::load_request(const placement::row_record& row) {
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

task<store_outcome<store_read_result>> user_spots::task_of_raw_read(std::string key) {
  return placement::task_of<store_outcome<store_read_result>>(
    *host_.infra, [&](auto done) { host_.location->read(std::move(key), std::move(done)); });
}

std::optional<placement::kept_terminal> user_spots::terminal_of(const result<spot_create_response>& built,
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
task<bool> user_spots::finish_reservation(placement::observed_object seen, placement::reservation_end end, steady_time due,
                                          bool commit) {
  row_change change;
  change.id = end.id;
  change.judge = [this, &end, commit, generation = placement::row_in(seen)->generation](const placement::observed_object& now) {
    const auto* row = placement::row_in(now);
    if (row != nullptr && row->generation == generation && row->state == placement::allocation_state::active)
      return row_judgement{row_end::settled}; // an earlier attempt got through late
    if (auto* node = host_.find_node(end.target.node.mesh_name))
      end.target = node->stamp(); // the node may have published another revision meanwhile (C-39)
    return judged(commit ? placement::commit(now, end, std::nullopt) : placement::abort(now, end));
  };
  change.give_up = [this, until = std::max(due, host_.time->now() + end_patience)](bool) { return host_.time->now() >= until; };
  change.seen = std::move(seen);
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  co_return outcome.how == row_end::applied || (commit && outcome.how == row_end::settled);
}

} // namespace detail
} // namespace zlink
