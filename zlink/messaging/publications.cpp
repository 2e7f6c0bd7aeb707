#include "zlink/messaging/publications.hpp"

#include "zlink/host/host_runtime.hpp"
#include "zlink/messaging/body_codec.hpp"
#include "zlink/messaging/call_start.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/mesh_links.hpp"

namespace zlink::detail {

/// What is published, from the call to the start.
struct publications::event {
  record* r;
  std::string channel;
  std::string topic;
  node_runtime* node;

  event(record* content, std::string under, std::string about, node_runtime& from)
    : r(content), channel(std::move(under)), topic(std::move(about)), node(&from) {}
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event() { free_record(r); }
};

/// One publish from its start until each target has taken the event or is skipped: every record on its way refers to it.
/// Holds a place among the publish workers, or the permit of the message that brought it here.
class publications::fan_out final : public counted, public reply_receiver {
public:
  explicit fan_out(fair_limit* slots, record* arrived = nullptr) noexcept : slots_(slots), arrived_(arrived) {}
  ~fan_out() override {
    if (slots_ != nullptr)
      slots_->leave();
    if (arrived_ != nullptr) {
      give_back_permit(*arrived_);
      free_record(arrived_);
    }
  }
  /// `r` is about to wait: its end is reported here. How it ends is nobody's matter (M-122).
  void watch(record& r) noexcept {
    ref();
    r.reply = {this, 0};
  }
  void receive_reply(record* reply) noexcept override { free_record(reply); }
  void ref_receiver() noexcept override { ref(); }
  void unref_receiver() noexcept override { unref(); }

private:
  fair_limit* slots_;
  record* arrived_;
};

/// Waits for a place among the publish workers, until the send timeout. Every decision falls in the infrastructure unit, so
/// that a publish either starts, or touches no target (M-119).
class publications::waiting_publish final : public limit_waiter, public std::enable_shared_from_this<waiting_publish> {
public:
  waiting_publish(publications& owner, std::unique_ptr<event> what, counted_ptr<operation<void>> ended)
    : owner_(owner), what_(std::move(what)), ended_(std::move(ended)) {}

  void enter() {
    owner_.waiting_.insert(shared_from_this());
    in_line_ = shared_from_this();
    if (owner_.slots_.enter(*this))
      on_entered();
  }
  void on_entered() noexcept override {
    owner_.host_.infra->post([self = shared_from_this()] { self->go(); });
  }
  void end(std::optional<error> why) { // nothing: cancelled
    if (what_ == nullptr)
      return;
    leave_line();
    if (why)
      ended_->fail(std::move(*why));
    else
      ended_->cancel();
  }

private:
  void go() {
    in_line_ = nullptr;
    if (what_ == nullptr) { // it ended while it was given the place
      owner_.slots_.leave();
      return;
    }
    owner_.waiting_.erase(shared_from_this());
    auto failed = owner_.start(std::move(what_));
    ended_->set(failed ? result<void>{std::move(*failed)} : result<void>{});
  }
  void leave_line() {
    what_ = nullptr;
    owner_.waiting_.erase(shared_from_this());
    if (owner_.slots_.cancel(*this))
      in_line_ = nullptr; // else the place is on its way, and `go` gives it back
  }

  publications& owner_;
  std::unique_ptr<event> what_; ///< null: started or ended
  counted_ptr<operation<void>> ended_;
  std::shared_ptr<waiting_publish> in_line_; ///< itself, while the limit knows it
};

publications::publications(host_runtime& host) : host_(host), slots_(std::max<std::uint32_t>(host.options.publish_workers, 1)) {}

publications::~publications() {
  for (auto& waiting : std::set{waiting_})
    waiting->end(error{error_kind::shutting_down, "the host has ended"});
}

task<void> publications::publish(std::optional<error> mistake, record* r, std::string channel, std::string topic,
                                 std::stop_token cancel) {
  auto ended = new_counted<operation<void>>();
  ended->verb = "publish to channel";
  ended->subject = channel;
  auto* node = host_.channel_node(channel);
  if (!mistake && node == nullptr)
    mistake = error{error_kind::not_found, "no mesh node of this host takes part in channel \"" + channel + '"'};
  call_start starting{host_, *ended, turn_use::submit, cancel};
  if (!starting.allowed(std::move(mistake), false)) {
    if (r != nullptr)
      free_record(r);
    return task<void>{std::move(ended)};
  }
  auto what = std::make_unique<event>(r, std::move(channel), std::move(topic), *node);
  if (slots_.try_enter()) {
    auto failed = start(std::move(what));
    ended->set(failed ? result<void>{std::move(*failed)} : result<void>{});
    return task<void>{std::move(ended)};
  }
  if (const auto* t = current_turn())
    ended->hold_owner(*t->object);
  const auto patience = host_.default_send_timeout();
  auto waiting = std::make_shared<waiting_publish>(*this, std::move(what), ended);
  host_.infra->post([waiting] { waiting->enter(); });
  host_.infra->post_after(patience, [ended, weak = std::weak_ptr{waiting}] {
    if (auto late = weak.lock())
      late->end(ended->timeout_error());
  });
  ended->watch(std::move(cancel), [this, weak = std::weak_ptr{waiting}] {
    host_.infra->post([weak] {
      if (auto cancelled = weak.lock())
        cancelled->end(std::nullopt);
    });
  });
  return task<void>{std::move(ended)};
}

void publications::refuse_waiting() {
  for (auto& waiting : std::set{waiting_})
    waiting->end(error{error_kind::shutting_down, "the host is shutting down"});
}

// -- the start ------------------------------------------------------------------------------------------------------------

namespace {

record* record_like(const record& like, std::string_view channel, std::string_view topic) {
  auto* made = make_record(record_kind::send);
  auto& extra = made->more();
  extra.channel = channel;
  extra.topic = topic;
  if (like.extra)
    extra.metadata = like.extra->metadata;
  return made;
}

} // namespace

/// Inside a place among the workers, which the fan-out gives back. An error: no target was touched.
std::optional<error> publications::start(std::unique_ptr<event> what) {
  const auto under_way = counted_ptr<fan_out>::adopt(new fan_out{&slots_});
  if (auto why = host_.refuse(host_work::placement_away))
    return why;
  auto& node = *what->node;
  const auto rids = node.channels.targets(what->channel);
  if (!rids.empty()) {
    bytes encoded;
    try {
      body_encoder encoder{what->r->body, host_.codecs, &host_.system};
      encoder.encode(encoded); // once for all of them
      to_nodes(*under_way, *what, rids, encoded, encoder.content_type(), encoder.packet_name());
    } catch (const encode_error& failed) {
      return error{error_kind::invalid_operation, failed.what()};
    }
  }
  const message content{std::move(what->r->body)};
  to_spots(*under_way, node, content, *what->r, what->channel, what->topic, nullptr);
  return std::nullopt;
}

void publications::to_nodes(fan_out& under_way, event& what, const std::vector<std::string>& rids, const bytes& encoded,
                            std::string_view content_type, std::string_view packet_name) {
  const auto due = host_.time->now() + what.node->settings.send_timeout;
  for (const auto& rid : rids) {
    const auto link = what.node->links->ready_link(rid);
    if (!link)
      continue; // unreachable: skipped (M-122)
    auto* r = record_like(*what.r, what.channel, what.topic);
    r->body.emplace<encoded_value>(packet_name, content_type, byte_view{encoded});
    message_header header;
    header.target = target_kind::publish;
    header.target_id = what.channel;
    header.topic = what.topic;
    header.operation = host_.random->next_id();
    under_way.watch(*r);
    link->send(r, header, due);
  }
}

void publications::to_spots(fan_out& under_way, node_runtime& node, const message& content, const record& like,
                            std::string_view channel, std::string_view topic, const codec* decoded_by) {
  const bool owned_work = !host_.refuse_owned_work();
  const auto due = host_.time->now() + node.settings.send_timeout;
  for (const auto& object : node.subscribed.match(channel, topic)) {
    if (!owned_work && object->factory().kind != spot_kind::entry)
      continue; // nothing is queued for a Spot that this host may have lost (S-41)
    auto* r = record_like(like, channel, topic);
    r->body.emplace<message>(content);
    r->decoded_by = decoded_by;
    to_spot(under_way, *object, r, due);
  }
}

/// Without room it waits there until the send timeout, beside all others (M-123).
void publications::to_spot(fan_out& under_way, spot_object& object, record* r, steady_time due) {
  switch (object.submit(r, false)) {
    case admission::admitted: return;
    case admission::no_room:
      under_way.watch(*r);
      host_.waiting->wait(object, submission{r, object.id(), nullptr, nullptr, due});
      return;
    default: break;
  }
  const auto held = host_.objects.deliver(object.address(), r, false, {}, [](hosted_object&) { return true; });
  if (held.follow) // it moves: the event goes with it
    held.follow->forward(submission{r, object.id(), nullptr, nullptr, due});
  else if (held.verdict != admission::admitted)
    free_record(r); // it is about to end (M-125)
}

void publications::arrived(record* r, std::string_view channel, std::string_view topic, node_runtime& node) {
  const std::string under{channel};
  const std::string about{topic};
  auto& encoded = *r->body.get<encoded_value>();
  encoded.decode_by(host_.values);
  const auto* decoded_by = host_.codecs.for_content_type(encoded.content_type());
  const message content{std::move(r->body)};
  const auto under_way = counted_ptr<fan_out>::adopt(new fan_out{nullptr, r});
  to_spots(*under_way, node, content, *r, under, about, decoded_by);
}

} // namespace zlink::detail
