// One accepted unit of work: a pooled node that carries its value inline and, as a request, turns round as its own reply.
#pragma once

#include "zlink/clock.hpp"
#include "zlink/execution/counted.hpp"
#include "zlink/execution/payload.hpp"
#include "zlink/execution/pooled.hpp"
#include "zlink/metadata.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace zlink {
class codec;
}

namespace zlink::detail {

class execution_object;
class job_permits;
struct record;

enum class node_kind : std::uint8_t { record, object };

/// What an inbox holds: a record, or (in a gate's inbox) an object that became ready.
struct inbox_node {
  inbox_node* next = nullptr;
  const node_kind node;
  explicit inbox_node(node_kind kind) noexcept : node(kind) {}
};

enum class record_kind : std::uint8_t {
  send,       ///< application lane: one-way message
  request,    ///< application lane: owes one reply
  tick,       ///< application lane: a timer's pending tick
  resume,     ///< application lane: continues a yielded run or runs a `.then` callback; uncharged (X-26)
  caf_event,  ///< application lane: something that CAF delivered to the object's face; uncharged
  pull,       ///< application lane: the object asks whether there is work for it; uncharged
  lifecycle,  ///< lifecycle lane: a step of the layer
  completion, ///< gate inbox: the end of an operation in the gate's table
  answered,   ///< gate inbox: the answer to a parked request, which `about` leads to
  wake,       ///< gate inbox: a run waiting for something outside the gate may go on
  sweep,      ///< gate inbox: some operation of the gate may be past its deadline
  call,       ///< gate inbox: a function of the layer, also while a handler holds the gate
};

/// Whoever waits for a reply: a gate (operation table), an outside operation, a link. Takes the record.
class reply_receiver {
public:
  virtual void receive_reply(record* reply) noexcept = 0;
  virtual void ref_receiver() noexcept = 0;
  virtual void unref_receiver() noexcept = 0;

protected:
  ~reply_receiver() = default;
};

/// Where the reply to a request goes; owns a reference to the receiver.
struct reply_route {
  reply_receiver* receiver = nullptr;
  std::uint64_t id = 0; ///< the receiver's entry
};

/// Fields that only some records need; allocated on demand.
struct record_extra : pooled {
  message_metadata metadata;
  std::string channel;
  std::string topic;
  std::string packet_name; ///< it travelled under, where its handler takes another type (M-29)
  std::string correlation; ///< as text, once somebody has asked for it
};

/// Ordered so that a small message inside a node touches two cache lines: they move from the sender's to the receiver's
/// core with every message.
struct alignas(64) record : inbox_node {
  record_kind kind = record_kind::send;
  bool from_link = false;       ///< came from another node
  std::uint32_t charged = 0;    ///< bytes reserved in the target's lane, 0: none
  execution_object* target = nullptr;
  job_permits* permit = nullptr; ///< held until the handler starts, or never will (X-101)
  reply_route reply;            ///< request: where to; completion: `reply.id` names the entry
  steady_time deadline{};       ///< of the operation; zero: none
  std::unique_ptr<record_extra> extra;
  const codec* decoded_by = nullptr; ///< of a message whose body was bytes
  counted_ptr<counted> about;   ///< tick: its timer; answered: its `late_answer`
  const std::string* source_rid = nullptr; ///< node direct: the sender; names of nodes stay as long as the host
  payload body;
  union {
    unique_id operation; ///< only if `from_link` (M-132)
  };

  record() noexcept : inbox_node(node_kind::record) {}
  ~record() = default;
  record_extra& more() {
    if (!extra)
      extra = std::make_unique<record_extra>();
    return *extra;
  }
};

/// A fresh record from this thread's pool.
record* make_record(record_kind kind);
/// Gives it back. A request must have been answered: its reply route must be empty.
void free_record(record* r) noexcept;
/// Records alive in this process; zero when everything has ended (M-46).
std::int64_t live_records() noexcept;

/// Turns a request, whose `body` already is the answer, round to its receiver; frees a record that owes no reply.
void send_reply(record* r) noexcept;
/// Its handler starts now, or never will.
void give_back_permit(record& r) noexcept;
/// Answers a request with an error; a one-way record that nobody waits for is freed.
void refuse(record* r, error what) noexcept;

} // namespace zlink::detail
