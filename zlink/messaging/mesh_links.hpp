// The links of one mesh node: who is dialled, who is admitted, which link to a peer counts (S-57 to S-61).
#pragma once

#include "zlink/link.hpp"
#include "zlink/messaging/control_calls.hpp"
#include "zlink/messaging/link_session.hpp"
#include "zlink/messaging/link_waits.hpp"
#include "zlink/messaging/node_holds.hpp"
#include "zlink/placement/directory.hpp"
#include "zlink/task.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zlink::detail {

class ingress;
class node_runtime;

class mesh_links final : public link_owner {
public:
  mesh_links(node_runtime& node, std::shared_ptr<link_transport> transport);
  ~mesh_links();
  mesh_links(const mesh_links&) = delete;
  mesh_links& operator=(const mesh_links&) = delete;

  /// Binds the listener; the advertised endpoint as text. Throws `configuration_error`.
  std::string listen();
  /// The nodes that discovery knows now: links to those that are gone are closed, missing ones are dialled by the side with
  /// the smaller RID (S-57, S-60). Inside the infrastructure unit.
  void follow(const placement::directory::snapshot_ptr& known);
  /// Dials the endpoints that were configured by hand, now and whenever one of them has no link (S-60, S-62).
  void keep_manual_peers();
  /// The one ready link to that peer, or null. Any thread.
  counted_ptr<link_session> ready_link(std::string_view rid) const;
  std::vector<counted_ptr<link_session>> ready_links() const;
  /// True if discovery names that node now, ready or not. Any thread.
  bool is_known(std::string_view rid) const;
  /// Its first link is on its way: discovery has shown that run of it within the send timeout, and it was never ready. Any thread.
  bool is_coming(std::string_view rid) const;
  std::size_t ready_count() const;
  /// Ends when at least `count` peers are ready.
  task<void> until_ready(std::size_t count, std::stop_token cancel);
  /// Ends when there is a ready node that serves the channel and takes new work.
  task<void> until_channel_ready(std::string channel, std::stop_token cancel);
  /// Tells every ready peer what this node says of its channels now. Any thread.
  void tell_channels();
  /// No new admission; links stay until `stop()` (L-246).
  void drain();
  /// Closes every link and the transport. Not inside the infrastructure unit.
  void stop();

  control_calls& controls() noexcept { return controls_; }
  /// The RID as a text that stays as long as the host.
  const std::string& name_of(std::string_view rid);
  reply_table& replies() noexcept { return *replies_; }
  /// To the operation of that number at that node, which may be this one: to where its caller waits. Empty: he does no more
  /// (M-83). Any thread.
  reply_route route_back(std::string_view asking_node, std::uint64_t id);
  node_holds& holds() noexcept { return holds_; }
  node_runtime& node() const noexcept { return node_; }

  void on_hello(link_session& link, const link_identity& peer) override;
  void on_ready(link_session& link) override;
  bool on_message(link_session& link, byte_view frame, std::uint32_t wire_bytes, steady_time arrived) override;
  void on_control(link_session& link, std::uint16_t command, byte_view payload) override;
  void on_peer_pressure(link_session&, bool) override {}
  void on_undecodable(link_session& link, const std::string& why) override;
  void on_down(link_session& link, const std::string& reason) override;

private:
  struct peer {
    counted_ptr<link_session> ready;
    bool wanted = false;  ///< discovery names it: a connect intent (S-60)
    bool dialling = false;
    endpoint where;
    lifecycle_generation lifecycle;
    steady_time known_since{}; ///< that run of it
    std::shared_ptr<ingress> inbound; ///< of that run of the peer
    lifecycle_generation inbound_of;
  };

  /// With a permit for it. Any thread.
  void take(link_session& link, byte_view frame, steady_time arrived, const std::string& source);
  void redirect_reply(record& r, std::string_view asking_node);
  void dial(const std::string& rid);
  void dialled(const std::string& rid, result<std::shared_ptr<link_connection>> outcome);
  void dial_again_later();
  void dial_missing();
  void begin(std::shared_ptr<link_connection> connection, std::optional<endpoint> dialled = std::nullopt);
  std::optional<std::string> refuse_manual(link_session& link, const link_identity& peer);
  task<void> judge(counted_ptr<link_session> link, link_identity peer);
  bool has_ready_link(std::string_view rid) const;
  void use(link_session& link);
  void tell_channels(link_session& link);
  link_identity self() const;

  node_runtime& node_;
  std::shared_ptr<link_transport> transport_;
  std::shared_ptr<reply_table> replies_;
  control_calls controls_;
  node_holds holds_;
  mutable std::mutex mutex_;
  std::map<std::string, peer, std::less<>> peers_;
  struct open_link {
    counted_ptr<link_session> session;
    std::optional<endpoint> dialled; ///< by this node, and where
    std::string rid;                 ///< once the peer has said it
    std::uint64_t number = 0;        ///< in the order in which they began
  };
  std::unordered_map<link_session*, open_link> sessions_;
  std::uint64_t sessions_begun_ = 0;
  std::set<std::string> names_;    ///< RIDs of all peers there ever were: messages refer to them
  std::set<std::string> dialling_; ///< endpoints configured by hand that are being dialled
  link_waits waits_;
  bool draining_ = false;
  bool stopped_ = false;
};

} // namespace zlink::detail
