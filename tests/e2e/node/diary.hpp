// What an object under test writes down about its turns, and what of it travels when it moves.
#pragma once

#include "tests/e2e/node/process_log.hpp"
#include "tests/e2e/tally.hpp"
#include "zlink/zlink.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace zlink::test {

struct stroke_done {
  std::uint64_t generation = 0;
  std::string process;
  std::uint64_t tag = 0;
};
ZLINK_PACKET(stroke_done, "e2e.stroke_done", generation, process, tag)
ZLINK_PACKET(tally, "e2e.tally", turns, fingerprint)

class diary {
public:
  /// An instance of that id was built here.
  diary(process_log& log, const std::string& id, std::uint64_t generation)
    : log_(log), generation_(generation), tag_(log.next_tag()),
      identity_(id + ' ' + std::to_string(generation) + ' ' + std::to_string(tag_)) {
    log_.turns.append("n " + log_.now() + ' ' + identity_ + '\n');
  }

  void begin(const std::string& sender, std::uint64_t number) const { append('b', sender, number); }
  stroke_done end(const std::string& sender, std::uint64_t number) {
    kept.take(sender, number);
    append('e', sender, number);
    return {generation_, log_.name(), tag_};
  }
  stroke_done whole_turn(const std::string& sender, std::uint64_t number) {
    begin(sender, number);
    return end(sender, number);
  }

  tally kept; ///< of all turns so far, those of former incarnations included where the state travels

private:
  void append(char what, const std::string& sender, std::uint64_t number) const {
    log_.turns.append(std::string{what} + ' ' + log_.now() + ' ' + identity_ + ' ' + sender + ' ' + std::to_string(number)
                      + '\n');
  }

  process_log& log_;
  const std::uint64_t generation_;
  const std::uint64_t tag_;
  const std::string identity_;
};

/// For every class with a public `diary notes`.
template <class Base, class Owner>
class diary_adapter final : public Base {
public:
  task<bytes> capture(Owner& from, std::stop_token) const override { co_return encode(from.notes.kept); }
  task<void> restore(Owner& into, byte_view state, std::stop_token) const override {
    into.notes.kept = decode<tally>(state);
    co_return;
  }
};

} // namespace zlink::test
