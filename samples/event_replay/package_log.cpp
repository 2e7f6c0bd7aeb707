#include "package_log.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <variant>

namespace {

using fields = std::vector<std::string_view>;

/// What a well-formed line can be, or why it is none.
struct no_package {};
using parsed_line = std::variant<log_entry, no_package, malformed_line>;

constexpr std::size_t longest_spot_id = 255; // bytes

constexpr std::array<std::string_view, 7> actions{"install",   "upgrade", "configure", "trigproc",
                                                  "disappear", "remove",  "purge"};

fields split(std::string_view line) {
  fields parts;
  for (std::size_t begin = 0; begin <= line.size();) {
    const auto end = std::min(line.find(' ', begin), line.size());
    parts.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// True if every '9' of the shape is a digit in `text` and everything else is equal.
bool has_shape(std::string_view text, std::string_view shape) {
  return std::ranges::equal(text, shape, [](unsigned char c, char wanted) {
    return wanted == '9' ? std::isdigit(c) != 0 : c == static_cast<unsigned char>(wanted);
  });
}

/// "name" or "name:architecture" in the letters that Debian allows.
bool is_package(std::string_view name) {
  const auto is_allowed = [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '+' || c == '-' || c == '.' || c == ':';
  };
  return !name.empty() && name.size() <= longest_spot_id && std::ranges::all_of(name, is_allowed);
}

parsed_line parse(std::string_view line, std::uint64_t number) {
  const auto wrong = [number](const char* why) { return malformed_line{number, why}; };
  const auto parts = split(line);
  if (parts.size() < 4)
    return wrong("too few words");
  if (!has_shape(parts[0], "9999-99-99") || !has_shape(parts[1], "99:99:99"))
    return wrong("does not begin with date and time");

  const auto action = parts[2];
  if (action == "startup" || action == "conffile")
    return no_package{};
  const bool is_status = action == "status";
  if (!is_status && std::ranges::find(actions, action) == actions.end())
    return wrong("unknown action");
  if (parts.size() != 6)
    return wrong("an action and a status take three words each");
  const auto package = parts[is_status ? 4 : 3];
  if (!is_package(package))
    return wrong("not a package name");

  log_entry entry;
  entry.package = package;
  entry.event.line = number;
  entry.event.when = line.substr(0, parts[0].size() + 1 + parts[1].size());
  entry.event.action = action;
  entry.event.status = is_status ? parts[3] : std::string_view{};
  entry.event.version = parts[5];
  return entry;
}

} // namespace

package_log read_package_log(std::istream& from) {
  package_log log;
  for (std::string line; std::getline(from, line);) {
    auto parsed = parse(line, ++log.lines);
    if (auto* entry = std::get_if<log_entry>(&parsed))
      log.entries.push_back(std::move(*entry));
    else if (auto* wrong = std::get_if<malformed_line>(&parsed))
      log.malformed.push_back(std::move(*wrong));
    else
      ++log.without_package;
  }
  return log;
}
