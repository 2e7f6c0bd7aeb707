#include "options.hpp"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <string_view>

#include <getopt.h>

namespace {

constexpr const char* machine_log = "/var/log/dpkg.log";
constexpr std::size_t most_nodes = 16;
constexpr std::size_t most_outstanding = 4096; // operations that a host admits at the same time

constexpr const char* usage = R"(event_replay [options] [file]: replays a package log into Spots, checks what they know

  file               a log in the format of dpkg; default /var/log/dpkg.log, else the small log
  --small            the small log that comes with the program
  --nodes N          nodes of the mesh, all in this process, 1 to 16; default 4
  --processes N      instead: N node processes, which share their stores through Redis
  --redis URL        a Redis that is there; default for --processes: one is started for the run and ended with it.
                     env:NAME takes the URL from the environment, for one with a password
  --rolling          with --processes 2 or more: each node in turn is emptied and replaced while the log is replayed
  --outstanding N    lines sent and not answered at most, 1 to 4096; default 256
  --help             this text

Ends with 0 if every Spot agrees with a sequential fold of the file, 1 if one does not, 2 if there is nothing to replay.
)";

std::optional<std::size_t> parse_number(std::string_view text, std::size_t most) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number < 1 || number > most)
    return std::nullopt;
  return number;
}

int refuse(const std::string& why) {
  std::cerr << "event_replay: " << why << "; --help tells more\n";
  return 2;
}

/// The text itself, or what the environment holds under NAME for "env:NAME"; nothing if it holds nothing.
std::optional<std::string> from_environment(const std::string& text) {
  if (!text.starts_with("env:"))
    return text;
  const char* value = std::getenv(text.c_str() + 4);
  return value != nullptr && *value != '\0' ? std::optional<std::string>{value} : std::nullopt;
}

/// What is wrong with options that are each right by themselves; null: nothing.
const char* contradiction(const std::set<int>& given) {
  if (given.contains('n') && given.contains('p'))
    return "--nodes puts all nodes into this process, --processes each into one of its own: leave out one";
  if (given.contains('r') && !given.contains('p'))
    return "--redis needs --processes: nodes of one process share a store in memory";
  if (given.contains('R') && !given.contains('p'))
    return "--rolling needs --processes: what it replaces are processes";
  return nullptr;
}

} // namespace

std::variant<options, int> parse_options(int argc, char** argv) {
  static const option known[] = {{"nodes", required_argument, nullptr, 'n'},
                                 {"processes", required_argument, nullptr, 'p'},
                                 {"redis", required_argument, nullptr, 'r'},
                                 {"rolling", no_argument, nullptr, 'R'},
                                 {"outstanding", required_argument, nullptr, 'o'},
                                 {"small", no_argument, nullptr, 's'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {nullptr, 0, nullptr, 0}};
  options chosen;
  std::set<int> given;
  for (int c = 0; (c = getopt_long(argc, argv, "n:p:r:o:h", known, nullptr)) != -1;) {
    given.insert(c);
    if (c == 'h') {
      std::cout << usage;
      return 0;
    }
    if (c == 's' || c == 'R')
      continue;
    if (c == 'r') {
      const auto url = from_environment(optarg);
      if (!url || url->empty())
        return refuse(std::string{"there is no URL in \""} + optarg + '"');
      chosen.redis = *url;
      continue;
    }
    if (c != 'n' && c != 'p' && c != 'o')
      return refuse("unknown option or missing value"); // getopt has named it
    const auto most = c == 'o' ? most_outstanding : most_nodes;
    const auto number = parse_number(optarg, most);
    if (!number)
      return refuse(std::string{"\""} + optarg + "\" is no number from 1 to " + std::to_string(most));
    (c == 'o' ? chosen.outstanding : chosen.nodes) = *number;
  }
  if (const auto* wrong = contradiction(given))
    return refuse(wrong);
  chosen.processes = given.contains('p');
  chosen.rolling = given.contains('R');
  if (chosen.rolling && chosen.nodes < 2)
    return refuse("--rolling needs a second node, where the Spots of the first can go");
  const bool small = given.contains('s');
  if (argc - optind > 1 || (small && argc != optind))
    return refuse("one log at a time");
  if (argc != optind)
    chosen.file = argv[optind];
  else if (!small && std::ifstream{machine_log}.good())
    chosen.file = machine_log;
  return chosen;
}
