// One link to one peer: handshake, ordered and bounded sending, credit, pressure, liveness, and the requests under way.
#pragma once

#include "zlink/codec.hpp"
#include "zlink/defaults.hpp"
#include "zlink/execution/counted.hpp"
#include "zlink/execution/decoding.hpp"
#include "zlink/execution/gathering.hpp"
#include "zlink/execution/infrastructure.hpp"
#include "zlink/execution/lane.hpp"
#include "zlink/execution/operation.hpp"
#include "zlink/execution/record.hpp"
#include "zlink/link.hpp"
#include "zlink/messaging/inbound_batches.hpp"
#include "zlink/messaging/link_timer.hpp"
#include "zlink/messaging/outbound_queue.hpp"
#include "zlink/messaging/reply_table.hpp"
#include "zlink/messaging/wire.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace caf {
class actor_system;
}

namespace zlink::detail {

class ingress;
class link_session;

/// What the owner of a session (the mesh node) hears. Except where stated, calls come from the transport's thread, one
/// at a time for a session, without any lock held; they must do little and not throw. The owner outlives its sessions'
/// `on_down`.
class link_owner {
public:
  /// The peer has said who it is. The owner calls `admit()` or `refuse()` on the session, here or later from any thread
  /// (S-58). A peer of another protocol version, another mesh or this node's own RID is refused without asking.
  virtual void on_hello(link_session& link, const link_identity& peer) = 0;
  /// Both sides have admitted each other: the link may be used (S-59). Comes before any message, once, on the
  /// transport's thread or inside `admit()`.
  virtual void on_ready(link_session& link) = 0;
  /// A message from the peer, not looked into yet. The owner gives the frame to `link.open()`, now or a copy of it later.
  /// True: taken, and the peer gets credit for it now. False: the owner calls `consumed(wire_bytes)` when it has taken it
  ///
  virtual bool on_message(link_session& link, byte_view frame, std::uint32_t wire_bytes, steady_time arrived) = 0;
  virtual void on_control(link_session& link, std::uint16_t command, byte_view payload) = 0;
  /// The peer's host paused or runs again.
  virtual void on_peer_pressure(link_session& link, bool paused) = 0;
  /// Something from the peer could not be understood; it was dropped and counted. Also from inside of `open()`.
  virtual void on_undecodable(link_session& link, const std::string& why) = 0;
  /// The link has ended, or never became ready; once, from any thread. Everything that waited has been told already.
  virtual void on_down(link_session& link, const std::string& reason) = 0;

protected:
  ~link_owner() = default;
};

struct link_options {
  link_identity self;
  std::shared_ptr<link_connection> connection;
  link_owner* owner = nullptr;
  infrastructure* infra = nullptr;               ///< outlives the session
  std::shared_ptr<random_source> random;         ///< probe ids
  const codec_registry* codecs = nullptr;        ///< outlives the session
  caf::actor_system* system = nullptr;           ///< for CAF messages (D-13); null: they cannot be sent
  std::shared_ptr<const decoding> values;        ///< with which callers decode replies; null: the built-in codecs
  std::shared_ptr<reply_table> replies;          ///< of the node
  std::uint64_t outbound_bytes = defaults::outbound_queue_bytes; ///< X-107
  std::uint32_t encoded_waiters = defaults::send_waiters;        ///< X-98
};

struct link_counters {
  std::atomic<std::uint64_t> messages_out{0}; ///< data messages admitted
  std::atomic<std::uint64_t> messages_in{0};
  std::atomic<std::uint64_t> batches_out{0};
  std::atomic<std::uint64_t> bytes_out{0};
  std::atomic<std::uint64_t> bytes_in{0};
  std::atomic<std::uint64_t> undecodable{0};       ///< frames dropped because nobody could read them
  std::atomic<std::uint64_t> unmatched_replies{0}; ///< M-146
  std::atomic<std::uint64_t> lost_replies{0};      ///< replies of ours to a link that had ended
};

/// Fixed by S-64.
inline constexpr std::chrono::seconds probe_interval{5};
inline constexpr std::chrono::seconds liveness_deadline{15};
/// From the start of the connection to readiness; then it is given up.
inline constexpr std::chrono::seconds handshake_deadline{15};
/// How long an orderly close waits for what is queued.
inline constexpr std::chrono::seconds close_linger{1};

/// Any thread may call every public member. A session is made for an open connection, lives by reference count, and
/// ends for good: a new connection gets a new session (S-61).
class link_session final : public gatherer, public reply_receiver {
public:
  static counted_ptr<link_session> make(link_options options);

  /// Begins the handshake. Once.
  void start();
  /// The owner's verdict on the peer; the first of the two counts, later ones and those after the end do nothing.
  void admit();
  void refuse(std::string reason);
  /// Orderly end: waiting sends and outstanding requests end in `unavailable` and `on_down` is called before this
  /// returns; what was admitted is still sent, then the peer learns the reason (S-64).
  void close(std::string reason);

  // -- sending --------------------------------------------------------------------------------------------------------

  /// Sends a one-way message if it is admitted at once (M-2): then `r` is freed. Otherwise `r` stays with the caller:
  /// `no_room` (also while the peer is paused, or others wait already), `sealed` for a link that is not ready or has
  /// ended. Throws `encode_error`, and `r` stays, if the value has no encoding. Metadata is read from `r->extra`, the
  /// remaining time from `r->deadline`.
  admission try_send(record* r, const message_header& header);
  /// Takes `r` in any case, and waits for room until `due`, behind those that wait already (M-151).
  /// A request: its reply route is answered by the peer's reply, or with `deadline_exceeded` (no room until `due`),
  /// `unavailable` (link lost before or after admission, M-135, S-63; never sent again, M-5) or an error of encoding.
  /// One-way: a reply route, if it has one, is answered empty at admission, or as above.
  /// A request that came by a link is passed on as it is: the reply goes to where it came from (M-83).
  /// `call`: whose end takes the message back while it waits; null: nobody's.
  void send(record* r, const message_header& header, steady_time due, counted_ptr<operation_base> call = {});
  /// Not held back by a full or paused data queue, in order among control and reply frames.
  void send_control(std::uint16_t command, byte_view payload);
  /// A reply of this node to a request of the peer: encoded on the calling thread (M-141); what cannot be encoded
  /// becomes `internal_failure`.
  void receive_reply(record* reply) noexcept override;

  // -- receiving ------------------------------------------------------------------------------------------------------

  /// Looks into a message's frame. What it returns is the caller's: a send or request with `from_link` set, its body an
  /// `encoded_value`, its reply route this link (or the caller's business, see `header.reply_node`), its deadline in
  /// this node's time; the views of `header` are parts of `frame`. Null: unreadable, dropped and counted, and the caller of a
  /// request was told. Any thread.
  record* open(byte_view frame, steady_time arrived, message_header& header);
  /// The owner has taken messages of that size which `on_message` left open.
  void consumed(std::uint64_t wire_bytes);
  /// Tells the peer the state of this host's permits; an equal value is not sent again. Of two calls that meet the
  /// one with the larger version counts, whichever comes last; 0 is the beginning, without pressure.
  void set_pressure(bool paused, std::uint64_t version);

  /// The owner's: what arrives here, set at the latest in `on_ready`. Only the transport's thread looks at it then.
  std::shared_ptr<ingress> inbound;

  // -- state ----------------------------------------------------------------------------------------------------------

  bool ready() const noexcept;
  bool peer_paused() const noexcept;
  /// Only from `on_hello` on.
  const link_identity& peer() const noexcept { return peer_; }
  const link_identity& self() const noexcept { return options_.self; }
  const link_counters& counters() const noexcept { return counters_; }
  /// Bytes of data that are charged: queued, under way, or not consumed by the peer.
  std::uint64_t charged_bytes() const noexcept;
  std::size_t waiting_sends() const noexcept;
  std::string peer_address() const { return options_.connection->peer_address(); }

  void ref_receiver() noexcept override { ref(); }
  void unref_receiver() noexcept override { unref(); }

  void send_gathered() noexcept override;

  /// From the session's timer, inside the infrastructure unit.
  void on_alarm() noexcept;

private:
  class events; ///< what the connection calls
  friend class events;
  using lock = std::unique_lock<std::mutex>;

  enum class phase : std::uint8_t {
    idle,     ///< not started
    greeting, ///< until both sides have admitted each other
    ready,
    closing,  ///< down to its owner; last frames go out
    ended,
  };
  enum class verdict : std::uint8_t { none, admitted, refused };

  /// A send that waits for room.
  struct waiter {
    record* r;
    bytes header;
    bytes frame; ///< empty: not encoded yet (X-98)
    steady_time due;
    counted_ptr<operation_base> call;
    /// It must not be sent any more.
    bool over(steady_time now) const noexcept { return due <= now || (call && call->done()); }
  };

  explicit link_session(link_options options);
  ~link_session() override;

  // Handshake and end (link_session.cpp).
  void on_hello_frame(byte_view body);
  void on_answer_frame(byte_view body);
  std::optional<std::string> refusal_of(const hello_frame& hello) const;
  void become_ready();
  /// Once; the first reason counts. `last` is sent behind everything else if the end is orderly.
  void end(const std::string& reason, bool orderly, bytes last = {});
  void on_writable();
  void on_closed(const std::string& reason);
  /// Writes if there is something to write, or when this thread has done with its jobs (`gathering`). Returns unlocked.
  void flush(lock& held);
  void flush_now(lock& held);
  void go_on(lock& held);
  bool may_write() const noexcept;
  /// The next batch, if there is one; empty otherwise. Returns unlocked.
  bytes take_batch(lock& held);
  void add_due_credit();
  void set_alarm(steady_time due);
  void probe(steady_time now);

  // Sending (link_send.cpp).
  std::span<std::byte> encode(frame_buffer& to, record& r, const message_header& header) const;
  std::span<std::byte> encode(frame_buffer& to, record& r, byte_view encoded_header) const;
  bool may_enter(std::size_t frame_bytes) const noexcept;
  /// Charges and queues a frame that fits. A request's route moves to the table.
  void admit_frame(record& r, std::span<std::byte> frame);
  void add_waiter(waiter w);
  /// Returns unlocked.
  void admit_waiters(lock& held);
  bool encode_waiter(lock& held, waiter& w);
  std::deque<waiter> take_expired(steady_time now, steady_time& next_due);
  void ask_credit();
  void note_waiters() noexcept;
  void push_reply_frame(byte_view frame);
  error lost(const std::string& reason) const;
  error no_room_in_time() const;

  // Receiving (link_receive.cpp): the transport's thread only.
  bool receive(byte_view batch);
  bool receive_more();
  template <class F>
  bool receive_slice(F frames);
  void dispatch(const frame& f);
  void dispatch_ready(const frame& f);
  void on_message_frame(const frame& f);
  void on_reply_frame(const frame& f);
  void on_probe_answer(std::uint64_t id);
  void on_credit_frame(const credit_frame& credit);
  void on_pressure_frame(const pressure_frame& pressure);
  record* make_inbound(const message_frame& message, steady_time arrived);
  void drop_frame(const std::string& why);

  const link_options options_;
  const std::uint64_t number_; ///< in the reply table
  const counted_ptr<link_timer> timer_;
  link_counters counters_;
  link_identity peer_;         ///< written once, before `on_hello`

  mutable std::mutex mutex_;
  phase phase_ = phase::idle;
  std::atomic<bool> usable_{false}; ///< phase is ready
  std::atomic<bool> peer_paused_{false};
  bool hello_seen_ = false;
  verdict own_verdict_ = verdict::none;
  bool peer_admitted_ = false;
  bool writable_ = false;
  std::atomic<steady_time> last_write_{};
  bool held_back_ = false;     ///< nothing is written until `on_ready` has returned
  outbound_queue out_;
  std::deque<waiter> waiters_;
  bool admitting_ = false;     ///< somebody works on `waiters_`; nobody overtakes
  bool admit_again_ = false;
  std::atomic<std::size_t> waiting_{0}; ///< for those who do not lock
  bool credit_asked_ = false;
  bytes last_frame_;           ///< behind everything else, before an orderly end

  // What the peer is told.
  credit_frame consumed_;
  credit_frame announced_;
  bool credit_wanted_ = false; ///< at once, not only when much has been consumed
  bool more_to_receive_ = false;
  pressure_frame pressure_;
  std::uint64_t pressure_version_ = 0;
  std::uint64_t peer_pressure_sequence_ = 0;

  // Deadlines; `alarm_` is when the timer comes next.
  steady_time alarm_ = steady_time::max();
  steady_time give_up_ = steady_time::max();  ///< handshake, liveness or linger, by phase
  steady_time next_probe_ = steady_time::max();
  std::uint64_t probe_id_ = 0;                ///< outstanding, 0: none

  // The transport's thread only.
  inbound_batches inbound_;
  std::uint64_t received_data_ = 0;
  credit_frame slice_;          ///< consumed in this slice
  steady_time slice_now_{};
};

/// Who is expected behind an endpoint; what is absent is not compared (S-58, S-62).
struct link_expectation {
  std::optional<std::string> rid;
  std::optional<lifecycle_generation> lifecycle;
  std::optional<std::string> security_identity;
};

/// Why `peer` is not the one expected, or nothing.
std::optional<std::string> unexpected_peer(const link_identity& peer, const link_expectation& expected);

} // namespace zlink::detail
