#include "zlink/messaging/mesh_links.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/call_start.hpp"
#include "zlink/messaging/control_frames.hpp"
#include "zlink/messaging/ingress.hpp"

namespace zlink::detail {

namespace {

constexpr std::uint32_t connect_timeout_ms = 5'000;
constexpr std::chrono::milliseconds manual_redial{1'000};
constexpr std::chrono::milliseconds redial_pause{1'000};
constexpr std::uint64_t frame_limit_bytes = 64ULL * 1024 * 1024;

object_role on_wire(placement::object_role role) noexcept { return static_cast<object_role>(role); }

} // namespace

mesh_links::mesh_links(node_runtime& node, std::shared_ptr<link_transport> transport)
  : node_(node), transport_(std::move(transport)), replies_(std::make_shared<reply_table>()),
    controls_(*node.host().infra),
    holds_(*node.host().infra, [&node](submission message) { node.host().messages.send_to_ready_node(std::move(message), node); }),
    waits_(node.host()) {}

mesh_links::~mesh_links() { stop(); }

std::string mesh_links::listen() {
  const auto& options = node_.host().options;
  const auto bind = node_.settings.bind_host.value_or(options.bind_host);
  auto bound = transport_->listen(bind, node_.settings.listen_port,
                                  [this](std::shared_ptr<link_connection> connection) { begin(std::move(connection)); });
  if (node_.settings.advertise_host)
    bound.host = *node_.settings.advertise_host;
  else if (!options.advertise_host.empty() && !node_.settings.bind_host)
    bound.host = options.advertise_host;
  return to_string(bound);
}

link_identity mesh_links::self() const {
  link_identity id;
  id.mesh = node_.mesh_name();
  id.rid = node_.identity.node_rid;
  id.lifecycle = node_.identity.lifecycle;
  id.role = on_wire(node_.settings.role);
  id.revision = {node_.channels.revision()};
  id.channels = node_.channels.announced();
  id.frame_limit = frame_limit_bytes;
  id.window_bytes = defaults::outbound_queue_bytes;
  id.entry_spot_id = node_.published_entry_id();
  id.security_identity = transport_->security_identity();
  return id;
}

void mesh_links::follow(const placement::directory::snapshot_ptr& known) {
  std::vector<std::string> to_dial;
  std::vector<counted_ptr<link_session>> gone;
  {
    std::lock_guard guard{mutex_};
    if (stopped_)
      return;
    for (auto& [rid, p] : peers_) {
      const auto* node = known->find(rid);
      p.wanted = node != nullptr;
      if (node == nullptr && p.ready)
        gone.push_back(p.ready);
    }
    for (const auto& node : known->nodes()) {
      const auto& d = *node.descriptor;
      if (d.node.node_rid == node_.identity.node_rid)
        continue;
      const auto where = parse_endpoint(d.endpoint);
      if (!where)
        continue;
      auto& p = peers_[d.node.node_rid];
      p.wanted = true;
      p.where = *where;
      if (p.lifecycle != d.node.lifecycle)
        p.known_since = node_.host().time->now();
      p.lifecycle = d.node.lifecycle;
      if (!p.ready && !p.dialling && !draining_ && node_.identity.node_rid < d.node.node_rid) {
        p.dialling = true;
        to_dial.push_back(d.node.node_rid);
      }
    }
    std::erase_if(peers_, [](const auto& entry) { return !entry.second.wanted && !entry.second.ready; });
  }
  for (auto& link : gone)
    link->close("the node has left the mesh");
  for (const auto& rid : to_dial)
    dial(rid);
}

void mesh_links::dial(const std::string& rid) {
  endpoint where;
  {
    std::lock_guard guard{mutex_};
    where = peers_[rid].where;
  }
  transport_->connect(where, connect_timeout_ms, [this, rid](result<std::shared_ptr<link_connection>> outcome) {
    dialled(rid, std::move(outcome));
  });
}

void mesh_links::dialled(const std::string& rid, result<std::shared_ptr<link_connection>> outcome) {
  {
    std::lock_guard guard{mutex_};
    if (const auto i = peers_.find(rid); i != peers_.end())
      i->second.dialling = false;
  }
  if (outcome)
    begin(std::move(*outcome));
  else
    dial_again_later();
}

/// Discovery tells of changes only, so a peer that stays and could not be reached is tried again from here (S-60).
void mesh_links::dial_again_later() {
  node_.host().infra->post_after(redial_pause, [this] { dial_missing(); });
}

void mesh_links::dial_missing() {
  if (node_.peers_known && !node_.host().ending())
    follow(node_.peers_known->snapshot());
}

void mesh_links::begin(std::shared_ptr<link_connection> connection, std::optional<endpoint> dialled) {
  link_options options;
  options.self = self();
  options.connection = std::move(connection);
  options.owner = this;
  options.infra = node_.host().infra.get();
  options.random = node_.host().random;
  options.codecs = &node_.host().codecs;
  options.system = &node_.host().system;
  options.values = node_.host().values;
  options.replies = replies_;
  auto session = link_session::make(std::move(options));
  bool ending = false;
  {
    std::lock_guard guard{mutex_};
    ending = stopped_ || draining_;
    if (!ending)
      sessions_.emplace(session.get(), open_link{session, std::move(dialled), {}, ++sessions_begun_});
  }
  if (ending) { // outside of the lock: closing reports back to `on_down`
    session->close("the node is shutting down");
    return;
  }
  session->start();
}

void mesh_links::on_hello(link_session& link, const link_identity& peer) {
  // Discovery may show the peer a moment after its hello: the verdict is given in the unit, after a fresh look.
  auto& host = node_.host();
  host.infra->post([this, held = counted_ptr<link_session>::share(&link), peer]() mutable {
    start_coroutine(judge(std::move(held), std::move(peer)), [](result<void>) {});
  });
}

void mesh_links::keep_manual_peers() {
  std::vector<endpoint> to_dial;
  {
    std::lock_guard guard{mutex_};
    if (stopped_ || draining_)
      return;
    for (const auto& where : node_.settings.peers)
      if (std::none_of(sessions_.begin(), sessions_.end(), [&](const auto& open) { return open.second.dialled == where; })
          && !dialling_.contains(to_string(where))) {
        dialling_.insert(to_string(where));
        to_dial.push_back(where);
      }
  }
  for (const auto& where : to_dial)
    transport_->connect(where, connect_timeout_ms, [this, where](result<std::shared_ptr<link_connection>> outcome) {
      {
        std::lock_guard guard{mutex_};
        dialling_.erase(to_string(where));
      }
      if (outcome)
        begin(std::move(*outcome), where);
    });
  node_.host().infra->post_after(manual_redial, [this] { keep_manual_peers(); });
}

/// Both sides may have dialled: the link that the smaller RID dialled stays (S-57).
std::optional<std::string> mesh_links::refuse_manual(link_session& link, const link_identity& peer) {
  std::lock_guard guard{mutex_};
  auto& mine = sessions_[&link];
  mine.rid = peer.rid;
  for (const auto& [other, open] : sessions_) {
    if (other == &link || open.rid != peer.rid)
      continue;
    const bool this_dialled_by_smaller = mine.dialled.has_value() == (node_.identity.node_rid < peer.rid);
    const bool same_direction = mine.dialled.has_value() == open.dialled.has_value();
    if (same_direction || !this_dialled_by_smaller)
      return "there is a link to this node already";
  }
  return std::nullopt;
}

task<void> mesh_links::judge(counted_ptr<link_session> link, link_identity peer) {
  if (!node_.peers_known) {
    if (auto why = refuse_manual(*link, peer))
      link->refuse(std::move(*why));
    else
      link->admit();
    co_return;
  }
  auto known = node_.peers_known->find(peer.rid);
  if (!known || known->descriptor->node.lifecycle != peer.lifecycle) {
    auto refreshing = node_.peers_known->refresh();
    co_await std::move(refreshing);
    known = node_.peers_known->find(peer.rid);
  }
  if (!known)
    link->refuse("this node is not known in the mesh");
  else if (known->descriptor->node.lifecycle != peer.lifecycle)
    link->refuse("another run of this node is registered");
  else if (has_ready_link(peer.rid))
    link->refuse("there is a link to this node already");
  else
    link->admit();
}

bool mesh_links::has_ready_link(std::string_view rid) const {
  std::lock_guard guard{mutex_};
  const auto i = peers_.find(rid);
  return i != peers_.end() && i->second.ready;
}

void mesh_links::on_ready(link_session& link) {
  auto& host = node_.host();
  counted_ptr<link_session> extra;
  {
    std::lock_guard guard{mutex_};
    auto& p = peers_[link.peer().rid];
    if (p.ready) {
      extra = counted_ptr<link_session>::share(&link); // both sides dialled: the first ready one stays
    } else {
      p.ready = counted_ptr<link_session>::share(&link);
      p.wanted = true;
      const auto& source = *names_.insert(link.peer().rid).first;
      if (!p.inbound || p.inbound_of != link.peer().lifecycle)
        p.inbound = std::make_shared<ingress>(
          *host.permits, source,
          [this, &source](link_session& from, byte_view frame, steady_time arrived) { take(from, frame, arrived, source); },
          [&host](unique_function<void()> job) { host.infra->post(std::move(job)); });
      p.inbound_of = link.peer().lifecycle;
      link.inbound = p.inbound;
    }
  }
  if (extra)
    extra->close("there is a link to this node already");
  else
    use(link);
  holds_.release(link.peer().rid);
  waits_.look();
  host.infra->post([this, rid = link.peer().rid] { node_.host().moving.link_changed(node_, rid, false); });
}

void mesh_links::use(link_session& link) {
  const auto now = node_.host().permits->state(); // of a change that comes meanwhile the listener tells, with a newer version
  link.set_pressure(now.paused, now.version);
  node_.channels.peer_ready(link.peer());
  // Changed since this link began; or what the handshake does not say (L-260).
  if (const auto now = node_.channels.state(); now.draining || now.revision != link.self().revision.value)
    tell_channels(link);
}

void mesh_links::tell_channels(link_session& link) {
  link.send_control(static_cast<std::uint16_t>(control_command::channel_state),
                    zlink::encode(control_envelope{0, 0, zlink::encode(node_.channels.state())}));
}

void mesh_links::tell_channels() {
  for (auto& link : ready_links())
    tell_channels(*link);
}

const std::string& mesh_links::name_of(std::string_view rid) {
  std::lock_guard guard{mutex_};
  return *names_.emplace(rid).first;
}

reply_route mesh_links::route_back(std::string_view asking_node, std::uint64_t id) {
  if (asking_node == node_.identity.node_rid)
    return replies_->take(id);
  if (auto link = ready_link(asking_node))
    return {link.release(), id};
  return {}; // the caller's node ended its wait when it lost the link
}

/// A request that another node passed on: its reply goes straight to the node that asked, which may be this one (M-83).
void mesh_links::redirect_reply(record& r, std::string_view asking_node) {
  const auto route = route_back(asking_node, r.reply.id);
  if (route.receiver == nullptr && asking_node != node_.identity.node_rid)
    return;
  if (auto* former = std::exchange(r.reply, route).receiver)
    former->unref_receiver();
}

bool mesh_links::on_message(link_session& link, byte_view frame, std::uint32_t wire_bytes, steady_time arrived) {
  auto* inbound = link.inbound.get();
  if (inbound == nullptr) {
    message_header header;
    if (auto* r = link.open(frame, arrived, header))
      refuse(r, error{error_kind::unavailable, "the link is ending"});
    return true;
  }
  if (inbound->may_deliver_now()) {
    take(link, frame, arrived, inbound->source());
    return true;
  }
  inbound->wait(link, frame, wire_bytes, arrived);
  return false;
}

void mesh_links::take(link_session& link, byte_view frame, steady_time arrived, const std::string& source) {
  auto& host = node_.host();
  message_header header;
  auto* r = link.open(frame, arrived, header);
  if (r == nullptr) {
    host.permits->release();
    return;
  }
  r->permit = host.permits.get(); // given back when its handler starts, or never will
  if (r->kind == record_kind::request && !header.reply_node.empty() && header.reply_node != link.peer().rid)
    redirect_reply(*r, header.reply_node);
  if (header.target == target_kind::node)
    r->source_rid = &source;
  host.messages.deliver(r, header, node_, source);
}

void mesh_links::on_control(link_session& link, std::uint16_t command, byte_view payload) {
  control_envelope envelope;
  try {
    if (command == static_cast<std::uint16_t>(control_command::restore_chunk)) { // large, and in no envelope
      node_.host().moving.arrived(node_, link, control_command::restore_chunk, {}, payload);
      return;
    }
    envelope = decode<control_envelope>(payload);
    if (command == static_cast<std::uint16_t>(control_command::stale_route)) {
      const auto told = decode<stale_route>(envelope.body);
      node_.host().messages.route_failed(told.actor ? actor_address(told.id) : told.id, {{told.object}, {told.authority}});
      return;
    }
    if (command == static_cast<std::uint16_t>(control_command::channel_state)) {
      node_.channels.peer_changed(link.peer().rid, decode<channel_state>(envelope.body));
      waits_.look();
      return;
    }
    if (command == static_cast<std::uint16_t>(control_command::session_relocation_route)) {
      node_.host().infra->post([&host = node_.host(), told = decode_session_route(envelope.body),
                                move = operation_id{envelope.operation_high, envelope.operation_low}] { host.sessions.route(told, move); });
      return;
    }
    if (is_lane_command(command)) {
      node_.host().moving.arrived(node_, link, static_cast<control_command>(command),
                                  {envelope.operation_high, envelope.operation_low}, envelope.body);
      return;
    }
  } catch (const decode_error& what) {
    on_undecodable(link, what.what());
    return;
  }
  node_.host().infra->post([this, held = counted_ptr<link_session>::share(&link), command,
                            envelope = std::move(envelope)]() mutable {
    const operation_id operation{envelope.operation_high, envelope.operation_low};
    if (command == static_cast<std::uint16_t>(control_command::answer))
      controls_.answered(operation, std::move(envelope.body));
    else
      start_coroutine(node_.host().spots.serve(node_, std::move(held), command, operation, std::move(envelope.body)),
                      [](result<void>) {});
  });
}

void mesh_links::on_undecodable(link_session&, const std::string&) {
  node_.host().domain.counters.drop(drop_reason::undecodable);
}

void mesh_links::on_down(link_session& link, const std::string&) {
  auto& host = node_.host();
  auto held = counted_ptr<link_session>::share(&link); // one that came while the node was ending is in no list
  bool was_ready = false;
  {
    std::lock_guard guard{mutex_};
    sessions_.erase(&link);
    if (const auto p = peers_.find(link.peer().rid); p != peers_.end() && p->second.ready.get() == &link) {
      p->second.ready = nullptr;
      was_ready = true;
    }
  }
  if (was_ready)
    node_.channels.peer_gone(link.peer().rid);
  host.infra->post([this, held, was_ready] {
    controls_.link_lost(*held);
    if (was_ready)
      node_.host().moving.link_changed(node_, held->peer().rid, true);
    if (was_ready)
      dial_missing();
    else
      dial_again_later(); // refused, or no handshake in time: not at once, or the two would do nothing else
  });
}

counted_ptr<link_session> mesh_links::ready_link(std::string_view rid) const {
  std::lock_guard guard{mutex_};
  const auto i = peers_.find(rid);
  return i == peers_.end() ? counted_ptr<link_session>{} : i->second.ready;
}

std::vector<counted_ptr<link_session>> mesh_links::ready_links() const {
  std::vector<counted_ptr<link_session>> all;
  std::lock_guard guard{mutex_};
  for (const auto& [rid, p] : peers_)
    if (p.ready)
      all.push_back(p.ready);
  return all;
}

bool mesh_links::is_known(std::string_view rid) const {
  std::lock_guard guard{mutex_};
  const auto i = peers_.find(rid);
  return i != peers_.end() && (i->second.wanted || i->second.ready);
}

bool mesh_links::is_coming(std::string_view rid) const {
  std::lock_guard guard{mutex_};
  const auto i = peers_.find(rid);
  if (i == peers_.end())
    return false;
  const auto& p = i->second;
  const bool was_ready = p.inbound && p.inbound_of == p.lifecycle;
  return p.wanted && !was_ready && node_.host().time->now() - p.known_since < node_.settings.send_timeout;
}

std::size_t mesh_links::ready_count() const {
  std::lock_guard guard{mutex_};
  return static_cast<std::size_t>(std::ranges::count_if(peers_, [](const auto& p) { return bool{p.second.ready}; }));
}

task<void> mesh_links::until_ready(std::size_t count, std::stop_token cancel) {
  return waits_.until("wait for peers of mesh", node_.mesh_name(), [this, count] { return ready_count() >= count; },
                      std::move(cancel));
}

task<void> mesh_links::until_channel_ready(std::string channel, std::stop_token cancel) {
  const auto subject = channel;
  return waits_.until("wait for a server of channel", subject,
                      [this, channel = std::move(channel)] { return node_.channels.has_target(channel); }, std::move(cancel));
}

void mesh_links::drain() {
  std::lock_guard guard{mutex_};
  draining_ = true;
}

void mesh_links::stop() {
  std::map<std::uint64_t, counted_ptr<link_session>> all; // in an order that a run with the same seed repeats
  {
    std::lock_guard guard{mutex_};
    if (std::exchange(stopped_, true))
      return;
    for (auto& [raw, open] : sessions_)
      all.emplace(open.number, open.session);
  }
  for (auto& [number, session] : all)
    session->close("the node is shutting down");
  transport_->stop();
  waits_.end(error{error_kind::shutting_down, "the host is shutting down"});
}

} // namespace zlink::detail
