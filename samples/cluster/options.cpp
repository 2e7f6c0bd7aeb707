#include "options.hpp"

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <getopt.h>

namespace {

constexpr const char* usage = R"(cluster COMMAND [options]: device twins on the nodes of several machines

  serve     a node that holds twins; until SIGTERM or Ctrl-C
  feed      sends readings of some devices to their twins, a round each second, and shows what the twins know
  show      shows the nodes, whom each of them reaches, and which node owns which twin
  release   gives up the twins of nodes that died, so that they can come to life elsewhere

This machine:
  --name NAME        1 to 64 of A-Z a-z 0-9 . _ -; default node. Routing ids begin with it
  --bind ADDRESS     where to listen; default 127.0.0.1
  --advertise HOST   how other machines reach this one: a name or address that its certificate holds; default: --bind
  --port PORT        where to listen; default 0: the system picks. Fix it where a firewall stands
  --tls DIR          holds ca.crt, NAME.crt and NAME.key, see make_certificates; needed beyond loopback

All machines alike:
  --redis SOURCE     the URL of the Redis; default env:CLUSTER_REDIS_URL
  --secret SOURCE    a shared secret of 16 to 1,024 bytes, a second lock beside certificates; default: none
  A SOURCE is env:NAME (from the environment) or file:PATH (the first line of a file), never the text itself, which
  every user of the machine could read in the list of processes.

feed only:
  --devices N        1 to 1,000; default 8
  --rounds N         0 to 1,000,000; default 10; 0: until it is told to stop

Ends with 0; 1 if something did not work; 2 if it was asked for something that makes no sense.
)";

struct misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What stands at a SOURCE. Nothing of it appears in an error.
std::string read_source(const std::string& option, const std::string& source) {
  std::string text;
  if (source.starts_with("env:")) {
    const char* value = std::getenv(source.c_str() + 4);
    if (value == nullptr || *value == '\0')
      throw misuse{option + ": the environment has no " + source.substr(4) + "; set it, or name another place by "
                   + option};
    text = value;
  } else if (source.starts_with("file:")) {
    std::ifstream file{source.substr(5)};
    if (!std::getline(file, text) || text.empty())
      throw misuse{option + ": " + source.substr(5) + " cannot be read, or its first line is empty"};
  } else {
    throw misuse{option + " takes env:NAME or file:PATH, since a secret has no place on the command line"};
  }
  return text;
}

std::size_t read_number(const std::string& option, std::string_view text, std::size_t least, std::size_t most) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number < least || number > most)
    throw misuse{option + ": \"" + std::string{text} + "\" is no number from " + std::to_string(least) + " to "
                 + std::to_string(most)};
  return number;
}

command read_command(const std::string& word) {
  static const std::map<std::string, command> known{
    {"serve", command::serve}, {"feed", command::feed}, {"show", command::show}, {"release", command::release}};
  const auto found = known.find(word);
  if (found == known.end())
    throw misuse{'"' + word + "\" is no command; there are serve, feed, show and release"};
  return found->second;
}

/// Options by name as they were written.
std::map<std::string, std::string> read_words(int argc, char** argv) {
  static const option known[] = {
    {"name", required_argument, nullptr, 0},      {"bind", required_argument, nullptr, 0},
    {"advertise", required_argument, nullptr, 0}, {"port", required_argument, nullptr, 0},
    {"tls", required_argument, nullptr, 0},       {"redis", required_argument, nullptr, 0},
    {"secret", required_argument, nullptr, 0},    {"devices", required_argument, nullptr, 0},
    {"rounds", required_argument, nullptr, 0},    {nullptr, 0, nullptr, 0}};
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
  const auto text = [&given](const char* name, std::string otherwise) {
    const auto at = given.find(name);
    return at == given.end() ? std::move(otherwise) : at->second;
  };
  options chosen;
  chosen.what = what;
  chosen.name = text("name", chosen.name);
  if (chosen.name.starts_with("client-"))
    throw misuse{"--name " + chosen.name
                 + ": routing ids that begin with client- are those of clients; choose another"};
  chosen.bind = text("bind", chosen.bind);
  chosen.advertise = text("advertise", chosen.bind);
  chosen.tls_directory = text("tls", "");
  chosen.port = static_cast<std::uint16_t>(read_number("--port", text("port", "0"), 0, 65'535));
  chosen.devices = read_number("--devices", text("devices", "8"), 1, 1000);
  chosen.rounds = read_number("--rounds", text("rounds", "10"), 0, 1'000'000);
  for (const auto* name : {"devices", "rounds"})
    if (what != command::feed && given.contains(name))
      throw misuse{std::string{"--"} + name + " goes with feed only"};
  chosen.redis_url = read_source("--redis", text("redis", "env:CLUSTER_REDIS_URL"));
  if (given.contains("secret"))
    chosen.secret = read_source("--secret", given.at("secret"));
  return chosen;
}

} // namespace

std::variant<options, int> parse_options(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "--help";
  if (word == "--help" || word == "-h" || (argc > 2 && std::string_view{argv[2]} == "--help")) {
    std::cout << usage;
    return 0;
  }
  try {
    const auto what = read_command(word);
    return read_options(what, read_words(argc - 1, argv + 1));
  } catch (const misuse& wrong) {
    std::cerr << "cluster: " << wrong.what() << "; --help tells more\n";
    return 2;
  }
}
