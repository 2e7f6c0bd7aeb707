// Tells on standard error how far the replay is: in place on a terminal, a line for every quarter elsewhere.
#pragma once

#include <cstddef>

class progress {
public:
  explicit progress(std::size_t total);
  /// `done` of the total; call it as often as you like.
  void show(std::size_t done);

private:
  std::size_t total_;
  std::size_t steps_;
  std::size_t shown_ = 0;
  bool on_terminal_;
};
