// Server-side scripts and the commands that run them, as bytes of the Redis protocol.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace zlink::adapters {

/// Appends one element of a command.
void append_element(std::string& command, std::string_view element);
/// A whole command.
template <class... Elements>
std::string make_command(const Elements&... elements) {
  std::string command = "*" + std::to_string(sizeof...(elements)) + "\r\n";
  (append_element(command, elements), ...);
  return command;
}

class redis_script {
public:
  /// The parts follow each other.
  redis_script(std::initializer_list<std::string_view> parts);
  const std::string& text() const noexcept { return text_; }
  /// SHA-1 in hexadecimal digits, by which the server knows it.
  const std::string& digest() const noexcept { return digest_; }

private:
  std::string text_;
  std::string digest_;
};

/// Keys and arguments of one script, kept as they go over the wire.
class redis_arguments {
public:
  /// The only key that is declared; scripts form all others from it, in the same slot (S-131).
  explicit redis_arguments(std::string_view key) {
    add("1");
    add(key);
  }
  void add(std::string_view argument) {
    append_element(bytes_, argument);
    ++count_;
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  std::size_t size() const noexcept { return bytes_.size(); }
  /// Appends EVALSHA, or EVAL with the whole script.
  void append_call(std::string& out, const redis_script& script, bool whole) const;

private:
  std::string bytes_;
  std::size_t count_ = 0;
};

} // namespace zlink::adapters
