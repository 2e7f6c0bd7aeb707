// Creating and closing User Spots on other nodes: the coordinator's questions and the target's answers (C-69 to C-77, C-118).
#include "zlink/codec.hpp"
#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/mesh_links.hpp"
#include "zlink/objects/creations.hpp"
#include "zlink/objects/stored_request.hpp"
#include "zlink/placement/pause.hpp"

namespace zlink::detail {

namespace {

question_route route_between(const placement::node_identity& source, const placement::node_identity& target,
                             steady_duration left) {
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  return {source.node_rid, source.lifecycle.value, target.node_rid, target.lifecycle.value, std::max<std::int64_t>(0, whole)};
}

/// Why a question that came over this link is none for this node, or nothing.
std::optional<error> misdirected(const question_route& route, const node_runtime& node, const link_session& link) {
  if (route.source_rid != link.peer().rid || route.source_lifecycle != link.peer().lifecycle.value)
    return error{error_kind::protocol_error, "the question names another source than its link"};
  if (route.target_rid != node.identity.node_rid || route.target_lifecycle != node.identity.lifecycle.value)
    return error{error_kind::unavailable, "the question is for another run of a node"};
  return std::nullopt;
}

std::optional<std::vector<std::byte>> bytes_of(const std::optional<std::string>& text) {
  if (!text)
    return std::nullopt;
  const auto* first = reinterpret_cast<const std::byte*>(text->data());
  return std::vector<std::byte>(first, first + text->size());
}

std::optional<message> message_in(const std::optional<std::vector<std::byte>>& joined, const host_runtime& host) {
  if (!joined)
    return std::nullopt;
  return split_request({reinterpret_cast<const char*>(joined->data()), joined->size()}, host.values);
}

constexpr std::chrono::milliseconds resend_pause{20};

/// What another node says is left of a deadline, as far as a call can last.
steady_duration left_of(std::int64_t left_ms) {
  return std::clamp(std::chrono::milliseconds{left_ms}, std::chrono::milliseconds{0}, defaults::longest_timeout);
}

} // namespace

task<std::optional<control_answer>> creations::ask(std::string mesh_name, std::string rid, std::uint16_t command,
                                                    operation_id operation, bytes body, steady_time due) {
  auto& node = *host_.find_node(mesh_name);
  bool admitted = false;
  bool looked = false;
  while (host_.time->now() < due) {
    if (auto link = node.links->ready_link(rid)) {
      admitted = true;
      auto asking = node.links->controls().ask(*link, static_cast<control_command>(command), operation, body, due);
      const auto answered = co_await std::move(asking);
      if (answered) {
        try {
          co_return decode<control_answer>(*answered);
        } catch (const decode_error& what) {
          co_return failed_answer({error_kind::protocol_error, what.what()});
        }
      }
    } else if (!node.links->is_known(rid) && !std::exchange(looked, true)) { // the store may show it, and this node not know it yet
      auto looking = node.peers_known->refresh();
      co_await std::move(looking);
      continue;
    } else if (!node.links->is_known(rid)) {
      co_return failed_answer({error_kind::unavailable, "the node that was asked has gone"}); // its lifecycle ended (C-76)
    } else if (!admitted && host_.time->now() + resend_pause >= due) {
      break; // told before the caller's own deadline says something else
    }
    auto pausing = placement::pause(*host_.infra, resend_pause);
    co_await std::move(pausing);
  }
  co_return failed_answer(admitted ? error{error_kind::deadline_exceeded, "the other node did not answer in time"}
                               : error{error_kind::unavailable, "no link to the other node"});
}

task<result<spot_create_result>> creations::ask_target(node_runtime& node, placement::node_identity target,
                                                        reservation made) {
  create_question question;
  question.kind = static_cast<std::uint8_t>(made.kind);
  question.id = made.id;
  question.type = made.type;
  question.reservation_high = made.reservation.high;
  question.reservation_low = made.reservation.low;
  question.generation = made.generation.value;
  question.authority = made.authority.value;
  question.version = made.version;
  question.route = route_between(node.identity, target, made.due - host_.time->now());
  auto asking = ask(node.mesh_name(), target.node_rid, static_cast<std::uint16_t>(control_command::create_spot), made.operation,
                    encode(question), made.due);
  const auto answer = co_await std::move(asking);
  if (auto failed = failure_in(*answer))
    co_return *failed;
  if (answer->state > static_cast<std::uint8_t>(spot_create_state::rejected))
    co_return error{error_kind::protocol_error, "the other node answered with an unknown state"};
  spot_create_result done;
  done.spot = {made.id, made.generation.value, node.mesh_name(), target.node_rid};
  done.state = static_cast<spot_create_state>(answer->state);
  done.reply = message_in(answer->reply, host_);
  co_return done;
}

task<bool> creations::ask_owner(placement::observed_object seen, control_command command, std::string id, steady_time due) {
  const auto& row = *placement::row_in(seen);
  const auto* node = host_.find_node(row.node.mesh_name);
  if (node == nullptr)
    throw operation_failed{error{error_kind::unavailable, "this host has no node in the mesh of \"" + id + '"'}};
  close_question question;
  question.id = std::move(id);
  question.generation = row.generation.value;
  question.authority = row.authority.value;
  question.version = seen.version;
  question.route = route_between(node->identity, row.node, due - host_.time->now());
  auto asking = ask(row.node.mesh_name, row.node.node_rid, static_cast<std::uint16_t>(command), host_.random->next_id(), encode(question), due);
  const auto answer = co_await std::move(asking);
  if (auto failed = failure_in(*answer))
    throw operation_failed{std::move(*failed)};
  co_return answer->closed;
}

task<void> creations::serve(node_runtime& node, counted_ptr<link_session> link, std::uint16_t command,
                             operation_id operation, bytes body) {
  control_answer answer;
  try {
    if (command == static_cast<std::uint16_t>(control_command::seal_session)) {
      answer.state = static_cast<std::uint8_t>(host_.sessions.seal(decode<seal_question>(body))); // also while this host ends: the Actor moves between others
    } else if (auto why = host_.refuse(host_work::control)) {
      answer = failed_answer(*why);
    } else if (command == static_cast<std::uint16_t>(control_command::create_spot)) {
      auto serving = serve_create(node, operation, std::move(body), *link);
      answer = co_await std::move(serving);
    } else if (command == static_cast<std::uint16_t>(control_command::close_spot)) {
      auto serving = serve_close(node, operation, std::move(body), *link);
      answer = co_await std::move(serving);
    } else if (command == static_cast<std::uint16_t>(control_command::destroy_actor)) {
      auto serving = serve_destroy(node, operation, std::move(body), *link);
      answer = co_await std::move(serving);
    } else if (command == static_cast<std::uint16_t>(control_command::ask_join)) {
      auto serving = serve_join(node, operation, std::move(body), *link);
      answer = co_await std::move(serving);
    } else {
      answer = failed_answer({error_kind::protocol_error, "an unknown question"});
    }
  } catch (const operation_failed& failed) {
    answer = failed_answer(failed.details());
  } catch (const decode_error& what) {
    host_.domain.counters.drop(drop_reason::undecodable);
    answer = failed_answer({error_kind::protocol_error, what.what()});
  } catch (...) { // whatever it is, who asks is answered
    answer = failed_answer({error_kind::internal_failure, text_of_current_exception()});
  }
  control_envelope envelope{operation.high, operation.low, encode(answer)};
  link->send_control(static_cast<std::uint16_t>(control_command::answer), encode(envelope));
}

task<control_answer> creations::serve_create(node_runtime& node, operation_id operation, bytes body, link_session& link) {
  const auto question = decode<create_question>(body);
  reservation made;
  if (question.kind != static_cast<std::uint8_t>(placement::object_kind::actor)
      && question.kind != static_cast<std::uint8_t>(placement::object_kind::user_spot))
    co_return failed_answer({error_kind::protocol_error, "the question asks for an object that nobody creates by order"});
  made.kind = static_cast<placement::object_kind>(question.kind);
  made.id = question.id;
  made.type = question.type;
  made.reservation = {question.reservation_high, question.reservation_low};
  made.generation = {question.generation};
  made.authority = {question.authority};
  made.version = question.version;
  made.operation = operation;
  made.source.node_rid = question.route.source_rid;
  made.source.lifecycle = {question.route.source_lifecycle};
  made.due = host_.time->now() + left_of(question.route.left_ms);
  if (auto why = misdirected(question.route, node, link))
    co_return failed_answer(*why);
  const asked same{question.route.source_rid, question.route.source_lifecycle, operation};
  if (auto before = served_before(same))
    co_return co_await std::move(*before);
  auto looking = kept_answer(node, made);
  auto kept = co_await std::move(looking);
  control_answer answer;
  if (kept) {
    answer = std::move(*kept);
  } else {
    auto building = build_here(node, made);
    auto built = co_await std::move(building);
    answer = built ? created_answer(*built) : failed_answer(built.error());
  }
  tell_all(same, answer, std::nullopt); // the store has it from now on
  co_return answer;
}

/// The gate decides once (J-91): who asks again, since the answer was lost, hears the same as long as the Actor may come.
task<control_answer> creations::serve_join(node_runtime& node, operation_id operation, bytes body, link_session& link) {
  auto question = decode<join_question>(body);
  if (auto why = misdirected(question.route, node, link))
    co_return failed_answer(*why);
  const asked same{question.route.source_rid, question.route.source_lifecycle, operation};
  if (auto before = served_before(same))
    co_return co_await std::move(*before);
  const auto due = host_.time->now() + left_of(question.route.left_ms);
  outcome_of<control_answer> deciding{host_.actors.serve_join(node, std::move(question), due)};
  auto decided = co_await deciding;
  auto answer = decided                  ? std::move(*decided)
                : decided.is_cancelled() ? failed_answer({error_kind::internal_failure, "cancelled"})
                                         : failed_answer(decided.error());
  tell_all(same, answer, due + memberships::stays_expected);
  co_return answer;
}

/// The same question again: it waits for the run that is under way, or has its answer. Nothing: this is the first time, and
/// `tell_all` follows.
std::optional<task<control_answer>> creations::served_before(const asked& question) {
  const auto [at, is_first] = serving_.try_emplace(question);
  if (is_first)
    return std::nullopt;
  if (at->second.answer)
    return make_ready_task(result<control_answer>{*at->second.answer});
  auto waiting = new_counted<operation<control_answer>>();
  waiting->dispatcher = host_.infra->unit();
  at->second.again.push_back(waiting);
  return task<control_answer>{std::move(waiting)};
}

void creations::tell_all(const asked& question, const control_answer& answer, std::optional<steady_time> kept_until) {
  const auto at = serving_.find(question);
  const auto again = std::move(at->second.again);
  if (kept_until) {
    at->second.answer = answer;
    host_.infra->post_after(*kept_until - host_.time->now(), [this, question] { serving_.erase(question); });
  } else {
    serving_.erase(at);
  }
  for (const auto& waiting : again)
    waiting->set(result<control_answer>{answer});
}

control_answer creations::created_answer(const spot_create_result& built) {
  control_answer answer;
  answer.state = static_cast<std::uint8_t>(built.state);
  answer.generation = built.spot.object_generation;
  answer.mesh_name = built.spot.mesh_name;
  answer.node_rid = built.spot.node_rid;
  if (built.reply)
    answer.reply = bytes_of(encode_reply(*built.reply));
  return answer;
}

/// The outcome of the same operation, if it had one (C-74).
task<std::optional<control_answer>> creations::kept_answer(node_runtime& node, const reservation& made) {
  const auto key = placement::terminal_key(made.source.node_rid, made.source.lifecycle, made.operation);
  auto reading = host_.repository->read<placement::creation_terminal>(key);
  const auto outcome = co_await std::move(reading);
  const auto* seen = placement::seen_in(outcome);
  if (seen == nullptr || !seen->record)
    co_return std::nullopt;
  control_answer answer;
  switch (seen->record->result) {
    case placement::creation_result::created: answer.state = static_cast<std::uint8_t>(spot_create_state::created); break;
    case placement::creation_result::rejected: answer.state = static_cast<std::uint8_t>(spot_create_state::rejected); break;
    case placement::creation_result::failed:
      co_return failed_answer({error_kind::internal_failure, "the creation of \"" + made.id + "\" failed"});
  }
  answer.generation = made.generation.value;
  answer.mesh_name = node.mesh_name();
  answer.node_rid = node.identity.node_rid;
  answer.reply = bytes_of(seen->record->reply);
  co_return answer;
}

task<control_answer> creations::serve_close(node_runtime& node, operation_id operation, bytes body, link_session& link) {
  const auto question = decode<close_question>(body);
  if (auto why = misdirected(question.route, node, link))
    co_return failed_answer(*why);
  const auto due = host_.time->now() + left_of(question.route.left_ms);
  auto reading = host_.repository->read_object(question.id);
  const auto read = co_await std::move(reading);
  auto object = host_.objects.find(question.id);
  control_answer answer;
  if (!object || object->generation().value != question.generation) {
    if (!object && host_.recovery.keeps(question.id, {question.generation})) { // lost on its way to another node (L-164)
      auto releasing = host_.recovery.release(question.id, {question.generation}, due);
      answer.closed = co_await std::move(releasing);
      if (answer.closed)
        note_closed(operation);
      co_return answer;
    }
    // A resend after the close ended: nothing is here any more, and the row tells what became of it.
    answer.closed = closed_.contains(operation);
    co_return answer;
  }
  if (object->factory().kind == spot_kind::instance)
    co_return failed_answer({error_kind::invalid_operation, "an Instance Spot closes itself, from its own context"});
  if (object->factory().kind != spot_kind::user)
    co_return failed_answer({error_kind::invalid_operation, '"' + question.id + "\" is no User Spot"});
  // Unchanged since it was read, except that somebody has begun to close it: that close is joined.
  const auto* seen = placement::seen_in(read);
  const auto* row = seen == nullptr ? nullptr : placement::row_in(*seen);
  if (row != nullptr
      && (row->authority.value != question.authority || row->generation.value != question.generation
          || (seen->version != question.version && !row->closing)))
    co_return failed_answer({error_kind::unavailable, "the ownership of \"" + question.id + "\" has changed"});
  auto closing = host_.closings.close(std::move(object), spot_close_reason::explicit_close, due, nullptr);
  answer.closed = co_await std::move(closing);
  if (answer.closed)
    note_closed(operation);
  co_return answer;
}

task<control_answer> creations::serve_destroy(node_runtime& node, operation_id operation, bytes body, link_session& link) {
  const auto question = decode<close_question>(body);
  if (auto why = misdirected(question.route, node, link))
    co_return failed_answer(*why);
  const auto due = host_.time->now() + left_of(question.route.left_ms);
  const auto who = host_.objects.find_actor(question.id);
  control_answer answer;
  if (const auto address = actor_address(question.id); !who && host_.recovery.keeps(address, {question.generation})) { // L-164
    auto releasing = host_.recovery.release(address, {question.generation}, due);
    answer.closed = co_await std::move(releasing);
    if (answer.closed)
      note_closed(operation);
    co_return answer;
  }
  if (!who || who->generation().value != question.generation) { // a resend after it ended
    answer.closed = closed_.contains(operation);
    co_return answer;
  }
  if (who->authority().value != question.authority)
    co_return failed_answer({error_kind::unavailable, "the ownership of actor \"" + question.id + "\" has changed"});
  auto destroying = host_.actors.destroy_here(who, due, {});
  answer.closed = co_await std::move(destroying);
  if (answer.closed)
    note_closed(operation);
  co_return answer;
}

/// For a question that comes again.
void creations::note_closed(operation_id operation) {
  closed_.insert(operation);
  host_.infra->post_after(std::chrono::minutes{5}, [this, operation] { closed_.erase(operation); });
}

} // namespace zlink::detail
