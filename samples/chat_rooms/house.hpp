// The house: people, the rooms in which they talk, the lobby that they come through.
#pragma once

#include "chat_packets.hpp"

#include <string>
#include <vector>

/// Belongs to one person in whichever room that is.
class person final : public zlink::actor {
public:
  using actor::actor;

  std::string name;

  zlink::task<void> on_join_completed(const zlink::join_completion& join) override;
};

/// A SpotWide User Spot: the room and everybody in it share one gate, so nothing here is locked.
class room final : public zlink::spot<person> {
public:
  using spot::spot;

  void configure() override;
  zlink::task<zlink::actor_join_response> on_actor_join(std::string actor_id, const zlink::message& request) override;
  zlink::task<void> on_joined_actor(person& who) override;
  zlink::task<void> on_leave_actor(person& who) override;

private:
  heard on_say(person& who, const zlink::message_context& context, const say& m);
  void on_go(person& who, const zlink::message_context& context, const go_to& m);
  void on_announcement(const announcement& m, const zlink::message_context& context);
  room_report on_ask(const ask_room& m, const zlink::message_context& context) const;

  std::vector<std::string> transcript_;
};

/// The Entry Spot: everybody comes into being here, and nobody talks.
class lobby final : public zlink::entry_spot<person> {
public:
  using entry_spot::entry_spot;

  void configure() override;
  zlink::task<zlink::actor_create_response> on_create_actor(person& who, const zlink::message& request) override;
  zlink::task<void> on_joined_actor(person& who) override;
  zlink::task<void> on_leave_actor(person& who) override;

private:
  void on_go(person& who, const zlink::message_context& context, const go_to& m);
};

inline constexpr const char* announcements = "announcements"; ///< the channel
inline constexpr const char* everybody = "everybody";         ///< its topic

/// The node that all people and rooms live on.
void register_house(zlink::host& host);
