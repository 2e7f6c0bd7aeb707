#include "conversation.hpp"

#include <stdexcept>

const char* const small_conversation = R"(# name	room	text
Ada	tea	Is anybody here?
Grace	tea	I am. Have you seen the new engine?
Alan	chess	White to move.
Ada	tea	Only on paper.
*	*	The library closes at nine.
Ada	chess	Knight takes bishop!
Alan	chess	A trap, I fear.
Grace	tea	Now I am alone with the biscuits.
Alan	tea	Not any more.
*	*	The library has closed.
Ada	chess	Alan? Alan?
)";

namespace {

[[noreturn]] void refuse(std::size_t number, const std::string& why) {
  throw std::runtime_error{"line " + std::to_string(number) + ": " + why + "; a line is name, room and text with tabs between"};
}

} // namespace

std::vector<line> read_conversation(std::istream& from) {
  std::vector<line> all;
  std::string text;
  for (std::size_t number = 1; std::getline(from, text); ++number) {
    if (!text.empty() && text.back() == '\r')
      text.pop_back();
    if (text.empty() || text.front() == '#')
      continue;
    const auto first = text.find('\t');
    const auto second = first == std::string::npos ? first : text.find('\t', first + 1);
    if (second == std::string::npos)
      refuse(number, "there are not two tabs");
    line one{number, text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
    if (one.name.empty() || one.room.empty() || one.name.size() > 255 || one.room.size() > 255)
      refuse(number, "name and room take 1 to 255 bytes");
    all.push_back(std::move(one));
  }
  return all;
}
