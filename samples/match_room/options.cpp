#include "options.hpp"

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string_view>

#include <getopt.h>

namespace {

constexpr const char* usage = R"(match_room [COMMAND] [options]: matches that move to other nodes between two rounds, and only then

  show      the default: starts three nodes, keeps matches going, and replaces every node by one of the next version
  serve     a node that holds matches; until SIGTERM or Ctrl-C
  open      opens the matches and seats their players
  play      plays in them until SIGTERM or Ctrl-C, then tells where they were, and checks everything
  nodes     shows what the nodes say about themselves
  drain     tells a node to hand over all it has, and waits until it has

All:
  --redis URL        where the nodes meet; default: env:MATCH_ROOM_REDIS. env:NAME takes it from the environment, for one
                     with a password. show: default is one that is started for the run
  The environment also has MATCH_ROOM_SECRET, 16 to 1,024 bytes that all nodes share; without it there is none

serve, drain:
  --name NAME        of the node, 1 to 64 of A-Z a-z 0-9 . _ -; default node
serve:
  --version N        of the application, 1 to 1,000,000; default 1
drain:
  --to-version N     to nodes of exactly this version, which is greater; default: of the node's own
  --seconds N        it may take, 1 to 3,600; default 30
open:
  --nodes N          to wait for, 1 to 100; default 1
show, open, play:
  --matches N        1 to 200; default 6
  --players N        of each match, 1 to 20; default 4
show:
  --deploys N        how many times all nodes are replaced, 1 to 100; default 1

Ends with 0; 1 if something was lost, interrupted or left behind, or did not work; 2 if it was asked for nonsense.
)";

struct misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::size_t read_number(const std::string& option, std::string_view text, std::size_t most) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number < 1 || number > most)
    throw misuse{"--" + option + ": \"" + std::string{text} + "\" is no number from 1 to " + std::to_string(most)};
  return number;
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

command read_command(const std::string& word) {
  static const std::map<std::string, command> known{{"show", command::show},
                                                    {"serve", command::serve},
                                                    {"open", command::open},
                                                    {"play", command::play},
                                                    {"nodes", command::nodes},
                                                    {"drain", command::drain}};
  const auto found = known.find(word);
  if (found == known.end())
    throw misuse{'"' + word + "\" is no command; there are show, serve, open, play, nodes and drain"};
  return found->second;
}

/// Options by name as they were written.
std::map<std::string, std::string> read_words(int argc, char** argv) {
  static const option known[] = {
    {"redis", required_argument, nullptr, 0},   {"name", required_argument, nullptr, 0},
    {"version", required_argument, nullptr, 0}, {"to-version", required_argument, nullptr, 0},
    {"seconds", required_argument, nullptr, 0}, {"nodes", required_argument, nullptr, 0},
    {"matches", required_argument, nullptr, 0}, {"players", required_argument, nullptr, 0},
    {"deploys", required_argument, nullptr, 0}, {nullptr, 0, nullptr, 0}};
  std::map<std::string, std::string> given;
  int at = 0;
  for (int c = 0; (c = getopt_long(argc, argv, "", known, &at)) != -1;) {
    if (c != 0)
      throw misuse{"unknown option or missing value"}; // getopt has named it
    if (!given.emplace(known[at].name, optarg).second)
      throw misuse{std::string{"--"} + known[at].name + " is given twice"};
  }
  if (optind != argc)
    throw misuse{std::string{"\""} + argv[optind] + "\" belongs to no option"};
  return given;
}

options read_options(command what, const std::map<std::string, std::string>& given) {
  const auto number = [&given](const char* name, std::size_t otherwise, std::size_t most) {
    const auto at = given.find(name);
    return at == given.end() ? otherwise : read_number(name, at->second, most);
  };
  options chosen;
  chosen.what = what;
  if (const auto at = given.find("name"); at != given.end())
    chosen.name = at->second;
  chosen.version = number("version", chosen.version, 1'000'000);
  chosen.to_version = number("to-version", 0, 1'000'000);
  chosen.seconds = number("seconds", chosen.seconds, 3'600);
  chosen.nodes = number("nodes", chosen.nodes, 100);
  chosen.matches = number("matches", chosen.matches, 200);
  chosen.players = number("players", chosen.players, 20);
  chosen.deploys = number("deploys", chosen.deploys, 100);
  if (const auto at = given.find("redis"); at != given.end() || what != command::show) {
    chosen.redis = at != given.end() ? at->second : "env:MATCH_ROOM_REDIS";
    if (chosen.redis.starts_with("env:"))
      chosen.redis = from_environment(chosen.redis.c_str() + 4);
    if (chosen.redis.empty())
      throw misuse{"no Redis is named: set MATCH_ROOM_REDIS, or say --redis URL"};
  }
  chosen.secret = from_environment("MATCH_ROOM_SECRET");
  return chosen;
}

} // namespace

std::variant<options, int> parse_options(int argc, char** argv) {
  const bool named = argc > 1 && argv[1][0] != '-';
  for (int i = 1; i < argc; ++i)
    if (const std::string_view word = argv[i]; word == "--help" || word == "-h") {
      std::cout << usage;
      return 0;
    }
  try {
    const auto what = named ? read_command(argv[1]) : command::show;
    return read_options(what, named ? read_words(argc - 1, argv + 1) : read_words(argc, argv));
  } catch (const misuse& wrong) {
    std::cerr << "match_room: " << wrong.what() << "; --help tells more\n";
    return 2;
  }
}
