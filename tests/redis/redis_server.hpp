// A real redis-server of a test's own: in a directory of its own, behind a socket in it, ended with it.
#pragma once

#include "zlink/redis_store.hpp"

#include <hiredis/hiredis.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace zlink::test {

/// Looks every few milliseconds; throws with `what` if it does not come true within a generous time.
void until(const std::string& what, const std::function<bool()>& holds);

/// A directory that goes with its owner.
class temporary_directory {
public:
  explicit temporary_directory(const std::filesystem::path& in = std::filesystem::temp_directory_path());
  ~temporary_directory();
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

private:
  std::filesystem::path path_;
};

/// A free TCP port of this machine, as long as nobody else takes it.
std::uint16_t free_port();

class redis_server {
public:
  /// Started and answering. `settings` as in a configuration file, "name value". Throws if there is no redis-server.
  explicit redis_server(std::vector<std::string> settings = {},
                        const std::filesystem::path& in = std::filesystem::temp_directory_path());
  ~redis_server();
  redis_server(const redis_server&) = delete;
  redis_server& operator=(const redis_server&) = delete;

  /// With a clock that only `advance` moves.
  static std::unique_ptr<redis_server> with_manual_clock();
  void advance(std::chrono::microseconds by);

  /// SIGKILL, and waits for its end.
  void kill();
  /// Again, with the same directory and settings.
  void start();
  /// SIGSTOP and SIGCONT.
  void pause();
  void resume();

  /// A command as an administrator; its answer as text, parts of an array separated by spaces.
  std::string command(const std::vector<std::string>& words);

  const std::filesystem::path& directory() const noexcept { return directory_.path(); }
  std::string socket_path() const { return (directory() / "s").string(); }
  std::string url() const { return "unix://" + socket_path(); }
  /// Options for a store with the given prefix, which is patient and keeps its notices to itself.
  redis_options options(std::string key_prefix) const;
  /// How `command` logs in.
  void set_admin_password(std::string password) { admin_password_ = std::move(password); }

private:
  struct manual_clock_tag {};
  explicit redis_server(manual_clock_tag);
  using connection = std::unique_ptr<redisContext, decltype(&::redisFree)>;
  connection connect() const;
  bool answers() const;
  void launch();

  temporary_directory directory_;
  std::vector<std::string> settings_;
  std::string admin_password_;
  std::string clock_file_;        // empty: the system's clock
  std::int64_t* clock_ = nullptr; // in the mapped file
  pid_t pid_ = -1;
};

} // namespace zlink::test
