// A message on its way from its call to its target, as far as the origin has to remember it.
#pragma once

#include "zlink/execution/operation.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/messaging/refused_nodes.hpp"
#include "zlink/messaging/wire.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace zlink::detail {

class gate;
class node_runtime;

/// "Prepare an Instance Spot if the id is missing" (M-58).
struct instance_intent {
  std::optional<std::string> type;
  std::optional<std::string> mesh;
  refused_nodes refused = {};
};

/// What is known about a message that another node sent.
struct arrival {
  node_runtime* node = nullptr; ///< it came to
  const std::string* source_rid = nullptr;
  std::optional<message_fence> fence; ///< what its sender believed about ownership (M-63)
};

/// Owns its record. A request's reply route leads to its operation; so does a one-way message's once it has to wait:
/// answered empty when the message is admitted, or with the error that ended it.
class submission {
public:
  submission(record* r, std::string id, std::unique_ptr<instance_intent> intent, counted_ptr<operation_base> operation,
             steady_time room_due)
    : record_(r), id_(std::move(id)), intent_(std::move(intent)), operation_(std::move(operation)),
      room_due_(room_due) {}
  submission(submission&& other) noexcept
    : record_(std::exchange(other.record_, nullptr)), id_(std::move(other.id_)), intent_(std::move(other.intent_)),
      operation_(std::move(other.operation_)), arrived_(other.arrived_), forbidden_(other.forbidden_),
      room_due_(other.room_due_), looked_again_(other.looked_again_) {}
  submission& operator=(submission&& other) noexcept {
    std::swap(record_, other.record_);
    std::swap(id_, other.id_);
    std::swap(intent_, other.intent_);
    std::swap(operation_, other.operation_);
    std::swap(arrived_, other.arrived_);
    std::swap(forbidden_, other.forbidden_);
    std::swap(room_due_, other.room_due_);
    std::swap(looked_again_, other.looked_again_);
    return *this;
  }
  ~submission() {
    if (record_ != nullptr)
      refuse(record_, error{error_kind::shutting_down, "the host has ended"});
  }

  const std::string& id() const noexcept { return id_; }
  const instance_intent* intent() const noexcept { return intent_.get(); }
  /// Until when it may wait for room.
  steady_time room_due() const noexcept { return room_due_; }
  /// The caller has its outcome already: the message must not be submitted any more.
  bool over() const noexcept { return operation_ && operation_->done(); }
  /// Nobody waits for its reply any more. What is one-way has been accepted when it waits without a call.
  bool expired(steady_time now) const noexcept {
    const bool limited = record_->kind == record_kind::request && record_->deadline != steady_time{};
    return over() || (limited && record_->deadline <= now);
  }
  /// Of the call that is told how it went, or null.
  const counted_ptr<operation_base>& operation() const noexcept { return operation_; }
  record* peek() const noexcept { return record_; }
  /// Null for a message of this node.
  const arrival* arrived() const noexcept { return arrived_.node == nullptr ? nullptr : &arrived_; }
  void arrive(const arrival& from) noexcept { arrived_ = from; }
  /// This node cannot take it, whoever chose it: another one is chosen for a Spot like the one that has ended (C-117).
  /// From now on it is this node's own message; `relay` passes the reply on to who asked.
  void choose_again(const std::string& type, std::string_view mesh, reply_route relay) {
    arrived_ = {};
    intent_->type = type;
    intent_->mesh = std::string{mesh};
    record_->reply = relay;
  }
  /// That node has no room for the Spot.
  void refused_by(const std::string& rid) { intent_->refused.add(rid); }
  /// The gate that its caller holds while it waits, or null.
  const gate* forbidden() const noexcept { return forbidden_; }
  void forbid(const gate* held) noexcept { forbidden_ = held; }
  /// True once: what the store said did not hold any more, so it is asked again.
  bool may_look_again() noexcept { return !std::exchange(looked_again_, true); }

  /// Ends it with an error.
  void fail(error what) noexcept { refuse(std::exchange(record_, nullptr), std::move(what)); }
  /// The record, about to be admitted.
  record* take() noexcept { return std::exchange(record_, nullptr); }
  void put_back(record* r) noexcept { record_ = r; }

private:
  record* record_;
  std::string id_;
  std::unique_ptr<instance_intent> intent_;
  counted_ptr<operation_base> operation_;
  arrival arrived_;
  const gate* forbidden_ = nullptr;
  steady_time room_due_;
  bool looked_again_ = false;
};

/// The notice that a one-way message's call waits for: taken off before the record is admitted, sent afterwards.
class admission_notice {
public:
  explicit admission_notice(record& r) noexcept
    : route_(r.kind == record_kind::request ? reply_route{} : std::exchange(r.reply, reply_route{})) {}
  admission_notice(const admission_notice&) = delete;
  admission_notice& operator=(const admission_notice&) = delete;
  ~admission_notice() {
    if (route_.receiver == nullptr)
      return;
    auto* done = make_record(record_kind::completion);
    done->reply.id = route_.id;
    route_.receiver->receive_reply(done);
    route_.receiver->unref_receiver();
  }
  /// The record was not admitted after all.
  void put_back(record& r) noexcept {
    if (route_.receiver != nullptr)
      r.reply = std::exchange(route_, reply_route{});
  }

private:
  reply_route route_;
};

} // namespace zlink::detail
