#include "samples/shared/child_process.hpp"

#include <zlink/clock.hpp>

#include <cerrno> // program_invocation_short_name
#include <csignal>
#include <ctime>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <utility>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// `fork`. The child gets SIGTERM when its parent ends.
pid_t start() {
  std::cout.flush(); // else the child would print it again
  const auto parent = ::getpid();
  const auto pid = ::fork();
  if (pid < 0)
    throw std::runtime_error{"no new process: the system has no room for it"};
  if (pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) // it ended before the line above
      ::_exit(1);
  }
  return pid;
}

int run_body(const std::string& name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const std::exception& failure) {
    std::cerr << program_invocation_short_name << ": " << name << ": " << failure.what() << '\n';
    return 1;
  }
}

} // namespace

child_process::child_process(std::string name, const std::function<int()>& body) : name_(std::move(name)) {
  pid_ = start();
  if (pid_ != 0)
    return;
  ::prctl(PR_SET_NAME, name_.c_str()); // for ps and top
  const auto code = run_body(name_, body);
  std::cout.flush();
  ::_exit(code); // what the parent had open stays the parent's
}

child_process::child_process(std::string name, std::vector<std::string> words) : name_(std::move(name)) {
  std::vector<char*> pointers;
  for (auto& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_ = start();
  if (pid_ != 0)
    return;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr); // a program expects that signals reach it
  ::execvp(pointers.front(), pointers.data());
  ::_exit(127);
}

child_process::child_process(child_process&& other) noexcept
  : name_(std::move(other.name_)), pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

std::optional<int> child_process::status() {
  int ended = 0;
  if (pid_ > 0 && !status_ && ::waitpid(pid_, &ended, WNOHANG) == pid_)
    status_ = ended;
  return status_;
}

void child_process::send(int signal) {
  if (pid_ > 0 && !status())
    ::kill(pid_, signal);
}

void child_process::end(std::chrono::milliseconds patience) {
  if (pid_ <= 0)
    return;
  ask_to_end();
  const zlink::system_clock time;
  const auto until = time.now() + patience;
  while (!status()) {
    if (time.now() >= until)
      ::kill(pid_, SIGKILL);
    ::poll(nullptr, 0, 10);
  }
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with " + std::to_string(WEXITSTATUS(status));
}

kept_signals::kept_signals() {
  ::sigemptyset(&which_);
  for (const auto one : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD})
    ::sigaddset(&which_, one);
  ::sigprocmask(SIG_BLOCK, &which_, nullptr);
}

void kept_signals::let_through() const { ::sigprocmask(SIG_UNBLOCK, &which_, nullptr); }

int kept_signals::next() const {
  int received = 0;
  ::sigwait(&which_, &received);
  return received;
}

std::optional<int> kept_signals::next_within(std::chrono::milliseconds time) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec limit{seconds.count(), std::chrono::nanoseconds{time - seconds}.count()};
  const int received = ::sigtimedwait(&which_, nullptr, &limit);
  return received > 0 ? std::optional{received} : std::nullopt;
}
