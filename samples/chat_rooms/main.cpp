// Three nodes in one process: a house with rooms, and two doors through which people speak.
#include "conversation.hpp"
#include "house.hpp"

#include <array>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>

using zlink::sync_wait;

namespace {

/// Two nodes that host nothing: every call of theirs goes to the house by a link.
class doors {
public:
  explicit doors(zlink::embedded_store& store) {
    for (auto& door : doors_) {
      door.use_store(store);
      auto& node = door.add_mesh("chat");
      node.rid_prefix("door");
      node.object_client().add_channel_client(announcements);
      door.start();
      sync_wait(node.until_channel_ready(announcements));
    }
  }
  /// Of that person: always the same one.
  zlink::host& of(const std::string& name) { return doors_[name.size() % doors_.size()]; }
  zlink::host& first() { return doors_[0]; }

private:
  std::array<zlink::host, 2> doors_;
};

class conversation {
public:
  explicit conversation(doors& through) : doors_(through) {}

  void happen(const line& one) {
    if (one.name == "*")
      announce(one.text);
    else
      speak(one);
  }
  void print() {
    for (const auto& room : rooms_) {
      const auto report = look_into(room);
      std::cout << "== " << room << '\n';
      for (const auto& said : report.transcript)
        std::cout << said << '\n';
      std::cout << "-- in the room:";
      for (const auto& name : report.members)
        std::cout << ' ' << name;
      std::cout << (report.members.empty() ? " nobody\n" : "\n");
    }
  }

private:
  void speak(const line& one) {
    auto& door = doors_.of(one.name);
    if (rooms_.insert(one.room).second)
      sync_wait(door.spots().get_or_create(one.room, "room").submit());
    if (!people_.contains(one.name))
      sync_wait(door.actors().get_or_create(one.name, "person").request(newcomer{one.name}).submit());
    if (auto& where = people_[one.name]; where != one.room) {
      sync_wait(door.actors().send_to_actor(one.name, go_to{one.room}).submit()); // done when it is on its way
      where = one.room;
    }
    // Waits behind the Join: it is said in the new room, or in the old one if that did not let the person in.
    const auto answer = sync_wait(door.actors().request_to_actor(one.name, say{one.text}).submit<heard>());
    if (answer.room != one.room)
      std::cerr << "line " << one.number << ": " << one.name << " is in " << answer.room << " still\n";
  }

  /// One event for all rooms. It is on its way when the task ends; a question behind it, by the same door, finds it there.
  void announce(const std::string& text) {
    sync_wait(doors_.first().channels().publish(announcements, everybody, announcement{text}).submit());
    for (const auto& room : rooms_)
      look_into(room);
  }

  room_report look_into(const std::string& room) {
    return sync_wait(doors_.first().spots().request_to_spot(room, ask_room{}).submit<room_report>());
  }

  doors& doors_;
  std::set<std::string> rooms_;
  std::map<std::string, std::string> people_; ///< and where they went last
};

std::vector<line> read(int argc, char** argv) {
  if (argc > 2)
    throw std::runtime_error{"usage: chat_rooms [file, or - for standard input]"};
  if (argc == 2 && std::string{argv[1]} == "-")
    return read_conversation(std::cin);
  if (argc == 2) {
    std::ifstream file{argv[1]};
    if (!file)
      throw std::runtime_error{std::string{argv[1]} + " cannot be read"};
    return read_conversation(file);
  }
  std::istringstream small{small_conversation};
  return read_conversation(small);
}

} // namespace

int main(int argc, char** argv) {
  try {
    const auto lines = read(argc, argv);
    zlink::embedded_store store;
    zlink::host house;
    house.use_store(store);
    register_house(house);
    house.start();
    doors both{store};
    conversation all{both};
    for (const auto& one : lines)
      all.happen(one);
    all.print();
    return 0;
  } catch (const std::exception& what) {
    std::cerr << "chat_rooms: " << what.what() << '\n';
    return 1;
  }
}
