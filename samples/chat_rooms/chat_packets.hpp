// What the nodes of the house say to each other.
#pragma once

#include <zlink/zlink.hpp>

#include <string>
#include <vector>

struct newcomer {
  std::string name;
};
struct go_to {
  std::string room;
};
struct knock {
  std::string name;
};
struct say {
  std::string text;
};
struct heard {
  std::string room;
  int listeners = 0;
};
struct announcement {
  std::string text;
};
struct ask_room {};
struct room_report {
  std::vector<std::string> members;
  std::vector<std::string> transcript;
};

ZLINK_PACKET(newcomer, "chat.newcomer", name)
ZLINK_PACKET(go_to, "chat.go_to", room)
ZLINK_PACKET(knock, "chat.knock", name)
ZLINK_PACKET(say, "chat.say", text)
ZLINK_PACKET(heard, "chat.heard", room, listeners)
ZLINK_PACKET(announcement, "chat.announcement", text)
ZLINK_PACKET(ask_room, "chat.ask_room")
ZLINK_PACKET(room_report, "chat.room_report", members, transcript)
