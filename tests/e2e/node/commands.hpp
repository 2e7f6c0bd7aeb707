// What the driver may ask of a node: one command on a line of stdin, one answer on a line of stdout.
#pragma once

#include "tests/e2e/node/load.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>

namespace zlink::test {

class commands {
public:
  commands(process_log& log, load& work, host& served);
  ~commands() { end(); }
  commands(const commands&) = delete;
  commands& operator=(const commands&) = delete;

  /// Says "ready" when the host serves, then answers until stdin or this ends.
  void begin();
  void end();

private:
  using words = std::istringstream;

  void run();
  bool wait_until_serving();
  std::string answer(const std::string& line);

  std::string state(words& in);
  std::string peers(words& in);
  std::string start_load(words& in);
  std::string rest(words& in);
  std::string ask(words& in);
  std::string start_holds(words& in);
  std::string holds(words& in);
  std::string hail_node(words& in);
  std::string ring(words& in);
  std::string nodes(words& in);
  std::string where(words& in);
  std::string release(words& in);
  std::string placement_weight(words& in);
  std::string channel_weight(words& in);
  std::string make_room(words& in);
  std::string relocate_all(words& in);
  std::string count_objects(words& in);
  std::string tallies(words& in);

  process_log& log_;
  load& load_;
  host& host_;
  std::map<std::string, std::string (commands::*)(words&)> known_;
  std::uint64_t asked_ = 0;
  std::atomic<int> holds_{0};
  int ending_;
  std::thread runner_;
};

} // namespace zlink::test
