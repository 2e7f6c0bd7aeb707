#include "tests/e2e/evidence.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace zlink::test {

namespace {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

template <class Read>
void for_each_line(const std::string& text, Read read) {
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    char what = 0;
    std::int64_t at = 0;
    if (!(words >> what >> at) || !read(words, what, steady_time{steady_duration{at}}))
      throw std::runtime_error{"a line that nobody writes: " + line};
  }
}

/// A message is known by whom it is for, who sent it, and its number.
using message_key = std::tuple<std::string, std::string, std::uint64_t>;

} // namespace

std::string to_string(const incarnation& one) {
  return std::to_string(one.generation) + '@' + one.process + '#' + std::to_string(one.tag);
}

log_file::log_file(const std::filesystem::path& file)
  : file_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
  if (file_ < 0)
    throw std::runtime_error{"cannot write " + file.string()};
}

log_file::~log_file() { ::close(file_); }

void log_file::append(const std::string& line) const {
  if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    std::abort();
}

void read_turns(process_history& into, const std::string& text) {
  std::map<std::pair<message_key, incarnation>, std::size_t> open;
  for_each_line(text, [&](std::istringstream& words, char what, steady_time at) {
    std::string id;
    incarnation in{0, into.name, 0};
    if (!(words >> id >> in.generation >> in.tag))
      return false;
    if (what == 'n') {
      into.births.push_back({at, id, in});
      return true;
    }
    std::string sender;
    std::uint64_t number = 0;
    if (!(words >> sender >> number))
      return false;
    const std::pair key{message_key{id, sender, number}, in};
    if (what == 'b') {
      open[key] = into.turns.size();
      into.turns.push_back({at, std::nullopt, id, in, sender, number});
      return true;
    }
    const auto begun = open.find(key);
    if (what != 'e' || begun == open.end())
      return false;
    into.turns[begun->second].end = at;
    open.erase(begun);
    return true;
  });
}

void read_calls(process_history& into, const std::string& text) {
  std::map<message_key, std::size_t> known;
  for_each_line(text, [&](std::istringstream& words, char what, steady_time at) {
    call one;
    if (!(words >> one.id >> one.sender >> one.number))
      return false;
    const message_key key{one.id, one.sender, one.number};
    if (what == 's') {
      char kind = 0;
      std::int64_t timeout = 0;
      if (!(words >> kind >> timeout) || !known.emplace(key, into.calls.size()).second)
        return false;
      one.start = at;
      one.one_way = kind == 'o';
      one.timeout = std::chrono::milliseconds{timeout};
      into.calls.push_back(std::move(one));
      return true;
    }
    const auto started = known.find(key);
    if (what != 'd' || started == known.end())
      return false;
    auto& ended = into.calls[started->second];
    ++ended.ends;
    ended.end = at;
    return static_cast<bool>(words >> ended.outcome >> ended.served_by);
  });
}

void read_files(process_history& into, const std::filesystem::path& directory) {
  read_turns(into, content_of(directory / (into.name + ".turns")));
  read_calls(into, content_of(directory / (into.name + ".calls")));
}

} // namespace zlink::test
