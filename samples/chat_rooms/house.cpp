#include "house.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>

using namespace std::chrono_literals;

namespace {

// defer() only registers: the Join begins when the handler has ended, and what was sent to the person meanwhile waits.
void send_to(person& who, const std::string& place) {
  who.context().join_spot(place, knock{who.name}).timeout(5s).defer();
}

} // namespace

zlink::task<void> person::on_join_completed(const zlink::join_completion& join) {
  if (join.error)
    std::cerr << name << " stays: " << join.error->message() << '\n';
  co_return;
}

// -- a room -----------------------------------------------------------------------------------------------------------

void room::configure() {
  context()
    .handlers()
    .add_packet<&room::on_ask>()
    .add_actor_handler<&room::on_say>()
    .add_actor_handler<&room::on_go>()
    .add_subscribe<&room::on_announcement>(announcements, everybody);
}

zlink::task<zlink::actor_join_response> room::on_actor_join(std::string, const zlink::message&) {
  co_return zlink::accept(); // an open house
}

zlink::task<void> room::on_joined_actor(person& who) {
  transcript_.push_back("* " + who.name + " comes in");
  co_return;
}

// The goodbye stands in the transcript already: this comes when the person is elsewhere, beside what happens here.
zlink::task<void> room::on_leave_actor(person&) { co_return; }

heard room::on_say(person& who, const zlink::message_context&, const say& m) {
  transcript_.push_back(who.name + ": " + m.text);
  return heard{context().spot_id(), static_cast<int>(members().size()) - 1};
}

void room::on_go(person& who, const zlink::message_context&, const go_to& m) {
  if (m.room == context().spot_id())
    return;
  transcript_.push_back("* " + who.name + " goes to " + m.room);
  send_to(who, m.room);
}

void room::on_announcement(const announcement& m, const zlink::message_context&) { transcript_.push_back("! " + m.text); }

room_report room::on_ask(const ask_room&, const zlink::message_context&) const {
  room_report report;
  for (const person* who : members())
    report.members.push_back(who->name);
  std::ranges::sort(report.members);
  report.transcript = transcript_;
  return report;
}

// -- the lobby --------------------------------------------------------------------------------------------------------

void lobby::configure() { context().handlers().add_actor_handler<&lobby::on_go>(); }

zlink::task<zlink::actor_create_response> lobby::on_create_actor(person& who, const zlink::message& request) {
  who.name = request.as<newcomer>().name;
  co_return zlink::accept();
}

zlink::task<void> lobby::on_joined_actor(person&) { co_return; }
zlink::task<void> lobby::on_leave_actor(person&) { co_return; }

void lobby::on_go(person& who, const zlink::message_context&, const go_to& m) { send_to(who, m.room); }

// -- the node ---------------------------------------------------------------------------------------------------------

void register_house(zlink::host& host) {
  auto& node = host.add_mesh("chat");
  node.rid_prefix("house");
  node.add_channel_server(announcements); // its rooms hear what is published
  node.object_server()
    .add_entry_spot<lobby>()
    .add_spot_factory<room>("room", [](auto& factory) { factory.disable_relocation(); })
    .add_actor_factory<person>("person", [](auto& factory) { factory.disable_relocation(); });
}
