#include "tests/redis/redis_server.hpp"

#include "zlink/clock.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <stdexcept>

namespace zlink::test {

using namespace std::chrono_literals;

namespace {

std::string reply_text(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER)
    return std::to_string(reply.integer);
  if (reply.type != REDIS_REPLY_ARRAY)
    return reply.str == nullptr ? std::string{} : std::string{reply.str, static_cast<std::size_t>(reply.len)};
  std::string all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(reply.elements); ++i)
    all.append(i == 0 ? "" : " ").append(reply_text(*reply.element[i]));
  return all;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

} // namespace

void until(const std::string& what, const std::function<bool()>& holds) {
  const system_clock time;
  const auto end = time.now() + 30s;
  while (!holds()) {
    if (time.now() > end)
      throw std::runtime_error{"did not come true: " + what};
    ::poll(nullptr, 0, 5);
  }
}

temporary_directory::temporary_directory(const std::filesystem::path& in) {
  auto text = (in / "zlink-redis-XXXXXX").string();
  if (::mkdtemp(text.data()) == nullptr)
    throw std::runtime_error{"no temporary directory"};
  path_ = text;
}

temporary_directory::~temporary_directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::uint16_t free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  const bool bound = ::bind(probe, reinterpret_cast<sockaddr*>(&place), size) == 0
                     && ::getsockname(probe, reinterpret_cast<sockaddr*>(&place), &size) == 0;
  ::close(probe);
  if (!bound)
    throw std::runtime_error{"no free port"};
  return ntohs(place.sin_port);
}

redis_server::redis_server(std::vector<std::string> settings, const std::filesystem::path& in)
  : directory_(in), settings_(std::move(settings)) {
  start();
}

redis_server::redis_server(manual_clock_tag) : clock_file_((directory() / "clock").string()) {
  const int file = ::open(clock_file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (::ftruncate(file, sizeof *clock_) != 0)
    throw std::runtime_error{"no file for the clock"};
  void* place = ::mmap(nullptr, sizeof *clock_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  clock_ = static_cast<std::int64_t*>(place);
  const auto now = system_clock{}.wall_now().time_since_epoch();
  *clock_ = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  start();
}

std::unique_ptr<redis_server> redis_server::with_manual_clock() {
  return std::unique_ptr<redis_server>{new redis_server{manual_clock_tag{}}};
}

void redis_server::advance(std::chrono::microseconds by) { std::atomic_ref{* clock_} += by.count(); }

redis_server::~redis_server() {
  kill();
  if (clock_ != nullptr)
    ::munmap(clock_, sizeof *clock_);
}

void redis_server::kill() {
  if (pid_ < 0)
    return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void redis_server::pause() { ::kill(pid_, SIGSTOP); }
void redis_server::resume() { ::kill(pid_, SIGCONT); }

void redis_server::start() {
  std::ofstream file{directory() / "redis.conf"};
  file << "dir " << directory().string() << "\nunixsocket " << socket_path()
       << "\nport 0\nsave \"\"\ndaemonize no\nenable-debug-command yes\nlogfile " << (directory() / "log").string()
       << "\n";
  for (const auto& line : settings_)
    file << line << "\n";
  file.close();
  launch();
  until("a redis-server answers", [&] {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        throw std::runtime_error{"there is no redis-server; install the packages of packages.txt"};
      throw std::runtime_error{"redis-server ended: " + content_of(directory() / "log")};
    }
    return answers();
  });
}

void redis_server::launch() {
  const auto config = (directory() / "redis.conf").string();
  std::vector<std::string> environment;
  for (char** one = environ; *one != nullptr; ++one)
    environment.emplace_back(*one);
  if (!clock_file_.empty()) {
    environment.push_back("LD_PRELOAD=" ZLINK_TEST_SERVER_CLOCK);
    environment.push_back("ZLINK_TEST_CLOCK=" + clock_file_);
  }
  std::vector<char*> pointers;
  for (auto& one : environment)
    pointers.push_back(one.data());
  pointers.push_back(nullptr);
  const char* words[] = {"redis-server", config.c_str(), nullptr};
  pid_ = ::fork();
  if (pid_ == 0) { // only what is allowed between fork and exec
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execvpe(words[0], const_cast<char* const*>(words), pointers.data());
    ::_exit(127);
  }
  if (pid_ < 0)
    throw std::runtime_error{"no new process"};
}

redis_server::connection redis_server::connect() const {
  const timeval patience{10, 0};
  connection to{::redisConnectUnixWithTimeout(socket_path().c_str(), patience), &::redisFree};
  if (to && to->err == 0)
    ::redisSetTimeout(to.get(), patience);
  return to;
}

bool redis_server::answers() const {
  const auto to = connect();
  if (!to || to->err != 0)
    return false;
  const std::unique_ptr<void, decltype(&::freeReplyObject)> reply{::redisCommand(to.get(), "PING"), &::freeReplyObject};
  return reply && std::string_view{static_cast<redisReply*>(reply.get())->str}.substr(0, 7) != "LOADING";
}

std::string redis_server::command(const std::vector<std::string>& words) {
  const auto to = connect();
  if (!to || to->err != 0)
    throw std::runtime_error{"no connection to the redis-server"};
  if (!admin_password_.empty())
    ::freeReplyObject(::redisCommand(to.get(), "AUTH %s", admin_password_.c_str()));
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  const std::unique_ptr<void, decltype(&::freeReplyObject)> reply{
    ::redisCommandArgv(to.get(), static_cast<int>(texts.size()), texts.data(), sizes.data()), &::freeReplyObject};
  if (!reply)
    throw std::runtime_error{"no answer from the redis-server"};
  return reply_text(*static_cast<redisReply*>(reply.get()));
}

redis_options redis_server::options(std::string key_prefix) const {
  redis_options made;
  made.url = url();
  made.key_prefix = std::move(key_prefix);
  made.operation_timeout = 20s; // machines that build meanwhile are slow
  made.on_notice = [](const std::string&) {};
  return made;
}

} // namespace zlink::test
