#include "samples/shared/local_redis.hpp"

#include <zlink/clock.hpp>

#include <cerrno> // program_invocation_short_name
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

bool answers(const std::filesystem::path& path) {
  sockaddr_un place{};
  place.sun_family = AF_UNIX;
  std::strncpy(place.sun_path, path.c_str(), sizeof place.sun_path - 1);
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool reached = ::connect(probe, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
  ::close(probe);
  return reached;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// That only this user can enter.
std::filesystem::path make_directory() {
  const char* chosen = std::getenv("TMPDIR");
  const std::string place = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  auto text = place + "/" + program_invocation_short_name + "-XXXXXX";
  if (::mkdtemp(text.data()) == nullptr)
    throw std::runtime_error{"no directory can be made in " + place + "; set TMPDIR to a place where it can"};
  return text;
}

} // namespace

local_redis::local_redis() : directory_(make_directory()) {
  try {
    if (socket().native().size() >= sizeof sockaddr_un{}.sun_path)
      throw std::runtime_error{socket().string() + " is too long for a socket; set TMPDIR to a shorter path"};
    write_settings();
    server_.emplace("redis-server", std::vector<std::string>{"redis-server", directory_ / "redis.conf"});
    await_socket();
  } catch (...) {
    server_.reset();
    remove_directory();
    throw;
  }
}

local_redis::~local_redis() {
  server_.reset();
  remove_directory();
}

void local_redis::write_settings() const {
  // Appended to a file as a server should that stores rely on, see docs/operations/redis.md.
  std::ofstream{directory_ / "redis.conf"} << "dir " << directory_.string() << "\nunixsocket " << socket().string()
                                           << "\nunixsocketperm 600\nport 0\nsave \"\"\nappendonly yes\n"
                                           << "maxmemory-policy noeviction\nlogfile " << (directory_ / "log").string()
                                           << "\n";
}

void local_redis::await_socket() {
  const zlink::system_clock time;
  const auto until = time.now() + 30s;
  while (!answers(socket())) {
    if (const auto ended = server_->status(); ended && WIFEXITED(*ended) && WEXITSTATUS(*ended) == 127)
      throw std::runtime_error{"there is no redis-server on this machine; install it (on Debian: apt-get install "
                               "redis-server), or name one that runs elsewhere by --redis URL"};
    else if (ended)
      throw std::runtime_error{"redis-server " + describe_end(*ended) + ":\n" + content_of(directory_ / "log")};
    if (time.now() >= until)
      throw std::runtime_error{"redis-server does not answer within 30 s"};
    ::poll(nullptr, 0, 5);
  }
}

void local_redis::remove_directory() const {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}
