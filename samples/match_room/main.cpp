// Matches that move between nodes while they are played: a rolling deploy that no player notices.
#include "commands.hpp"

#include <exception>
#include <iostream>

namespace {

int run(const options& chosen) {
  const arena where{.redis_url = chosen.redis, .key_prefix = "match_room", .secret = chosen.secret};
  switch (chosen.what) {
    case command::show: return show(chosen);
    case command::serve: return serve(where, chosen);
    case command::open: return open_matches(where, chosen);
    case command::play: return play(where, chosen);
    case command::nodes: return nodes(where);
    case command::drain: return drain(where, chosen);
  }
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  try {
    const auto parsed = parse_options(argc, argv);
    const auto* chosen = std::get_if<options>(&parsed);
    return chosen ? run(*chosen) : std::get<int>(parsed);
  } catch (const std::exception& failure) {
    std::cerr << "match_room: " << failure.what() << '\n';
    return 1;
  }
}
