#include "progress.hpp"

#include <iostream>

#include <unistd.h>

progress::progress(std::size_t total) : total_(total), on_terminal_(isatty(STDERR_FILENO) != 0) {
  steps_ = on_terminal_ ? 100 : 4;
}

void progress::show(std::size_t done) {
  const auto step = total_ == 0 ? steps_ : done * steps_ / total_;
  if (step == shown_)
    return;
  shown_ = step;
  std::cerr << (on_terminal_ ? "\r" : "") << done << " of " << total_ << " lines sent"
            << (on_terminal_ && done != total_ ? "" : "\n") << std::flush;
}
