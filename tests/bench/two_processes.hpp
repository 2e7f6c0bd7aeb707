// A benchmark's second process: the same program with other arguments, which says on one line where it can be found.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace bench {

class second_process {
public:
  explicit second_process(std::vector<std::string> arguments) {
    int in[2];
    int out[2];
    if (pipe(in) != 0 || pipe(out) != 0)
      std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      close(in[1]);
      close(out[0]);
      std::vector<char*> raw;
      for (auto& one : arguments)
        raw.push_back(one.data());
      raw.push_back(nullptr);
      execv(raw[0], raw.data());
      std::_Exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    FILE* answers = fdopen(out[0], "r");
    char line[4096] = {};
    if (std::fgets(line, sizeof line, answers) == nullptr)
      std::abort();
    said_.str(line);
  }
  /// What it said.
  std::istringstream& said() { return said_; }
  /// Its standard input ends.
  void end() {
    close(to_);
    waitpid(pid_, nullptr, 0);
  }

private:
  pid_t pid_ = 0;
  int to_ = -1;
  std::istringstream said_;
};

} // namespace bench
