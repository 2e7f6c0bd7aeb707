#include "tests/e2e/node_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace zlink::test {

using namespace std::chrono_literals;

void pause_a_moment() { ::poll(nullptr, 0, 20); }

void wait_until(steady_time when) {
  const system_clock time;
  while (time.now() < when)
    pause_a_moment();
}

node_process::node_process(std::string name, std::filesystem::path directory, const std::string& redis_url,
                           bool client)
  : name_(std::move(name)), directory_(std::move(directory)) {
  kept_.name = name_;
  launch(redis_url, client);
  if (const auto said = hear(); said != "ready")
    throw std::runtime_error{name_ + " says: " + said};
  const auto state = list("state");
  rid_ = state.at(2);
  entry_spot_id_ = state.at(3);
}

node_process::~node_process() {
  if (pid_ > 0)
    kill();
  ::close(channel_);
}

void node_process::launch(const std::string& redis_url, bool client) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error{"no channel to a new process"};
  const auto words_file = (directory_ / (name_ + ".err")).string();
  const int words = ::open(words_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const auto directory = directory_.string();
  const char* arguments[] = {ZLINK_TEST_E2E_NODE, name_.c_str(), directory.c_str(), redis_url.c_str(),
                             client ? "client" : nullptr, nullptr};
  pid_ = ::fork();
  if (pid_ == 0) { // only what is allowed between fork and exec
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(words, STDERR_FILENO);
    ::execv(arguments[0], const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  ::close(ends[1]);
  ::close(words);
  channel_ = ends[0];
  if (pid_ < 0)
    throw std::runtime_error{"no new process"};
}

std::string node_process::ask(const std::string& command, std::chrono::milliseconds limit) {
  tell(command);
  return hear(limit);
}

void node_process::tell(const std::string& command) {
  const auto line = command + '\n';
  if (::send(channel_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    throw std::runtime_error{name_ + " takes no command: " + command + '\n' + last_words()};
}

std::string node_process::hear(std::chrono::milliseconds limit) {
  const auto end = time_.now() + limit;
  for (;;) {
    if (const auto at = heard_.find('\n'); at != std::string::npos) {
      auto line = heard_.substr(0, at);
      heard_.erase(0, at + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - time_.now()).count();
    pollfd any{channel_, POLLIN, 0};
    char buffer[4096];
    ssize_t got = 0;
    if (left <= 0 || ::poll(&any, 1, static_cast<int>(left)) <= 0 || (got = ::read(channel_, buffer, sizeof buffer)) <= 0)
      throw std::runtime_error{name_ + " does not answer\n" + last_words()};
    heard_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::vector<std::string> node_process::list(const std::string& command) {
  const auto line = ask(command);
  std::istringstream words{line};
  std::string first;
  words >> first;
  if (first != "ok")
    throw std::runtime_error{name_ + ", asked \"" + command + "\", says: " + line};
  return {std::istream_iterator<std::string>{words}, {}};
}

int node_process::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

steady_time node_process::kill() {
  const auto now = time_.now();
  kept_.killed = now;
  ::kill(pid_, SIGKILL);
  wait();
  return now;
}

steady_time node_process::freeze() {
  const auto now = time_.now();
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED); // all its threads stand
  frozen_ = true;
  kept_.frozen.push_back({now, now + 24h});
  return time_.now();
}

steady_time node_process::thaw() {
  const auto now = time_.now();
  ::kill(pid_, SIGCONT);
  frozen_ = false;
  kept_.frozen.back().to = time_.now();
  return now;
}

int node_process::terminate(std::chrono::milliseconds limit) {
  ::kill(pid_, SIGTERM);
  siginfo_t seen{};
  eventually(name_ + " ends after SIGTERM", limit, [&] {
    return ::waitid(P_PID, static_cast<id_t>(pid_), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 && seen.si_pid == pid_;
  });
  return wait();
}

process_history node_process::history() const {
  auto full = kept_;
  read_files(full, directory_);
  return full;
}

std::string node_process::last_words() const {
  std::ifstream in{directory_ / (name_ + ".err")};
  const std::string all{std::istreambuf_iterator<char>{in}, {}};
  return name_ + ": " + (all.size() > 2000 ? all.substr(all.size() - 2000) : all);
}

} // namespace zlink::test
