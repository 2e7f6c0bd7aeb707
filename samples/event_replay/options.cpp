#include "options.hpp"

#include <charconv>
#include <fstream>
#include <iostream>
#include <optional>
#include <string_view>

#include <getopt.h>

namespace {

constexpr const char* machine_log = "/var/log/dpkg.log";
constexpr std::size_t most_nodes = 16;
constexpr std::size_t most_outstanding = 4096; // operations that a host admits at the same time

constexpr const char* usage = R"(event_replay [options] [file]: replays a package log into Spots, checks what they know

  file               a log in the format of dpkg; default /var/log/dpkg.log, else the small log
  --small            the small log that comes with the program
  --nodes N          nodes of the mesh, 1 to 16; default 4
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

} // namespace

std::variant<options, int> parse_options(int argc, char** argv) {
  static const option known[] = {{"nodes", required_argument, nullptr, 'n'},
                                 {"outstanding", required_argument, nullptr, 'o'},
                                 {"small", no_argument, nullptr, 's'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {nullptr, 0, nullptr, 0}};
  options chosen;
  bool small = false;
  for (int c = 0; (c = getopt_long(argc, argv, "n:o:h", known, nullptr)) != -1;) {
    if (c == 'h') {
      std::cout << usage;
      return 0;
    }
    if (c == 's') {
      small = true;
      continue;
    }
    if (c != 'n' && c != 'o')
      return refuse("unknown option or missing value"); // getopt has named it
    const auto most = c == 'n' ? most_nodes : most_outstanding;
    const auto number = parse_number(optarg, most);
    if (!number)
      return refuse(std::string{"\""} + optarg + "\" is no number from 1 to " + std::to_string(most));
    (c == 'n' ? chosen.nodes : chosen.outstanding) = *number;
  }
  if (argc - optind > 1 || (small && argc != optind))
    return refuse("one log at a time");
  if (argc != optind)
    chosen.file = argv[optind];
  else if (!small && std::ifstream{machine_log}.good())
    chosen.file = machine_log;
  return chosen;
}
