// A redis-server for one run: in a directory of its own, behind a socket that only this user can open.
#pragma once

#include "samples/shared/child_process.hpp"

#include <filesystem>
#include <optional>
#include <string>

class local_redis {
public:
  /// Returns when it answers. Throws `std::runtime_error` that says what to do if there is none.
  local_redis();
  /// Ends it and removes its directory.
  ~local_redis();
  local_redis(const local_redis&) = delete;
  local_redis& operator=(const local_redis&) = delete;

  std::string url() const { return "unix://" + socket().string(); }
  child_process& process() { return *server_; }

private:
  std::filesystem::path socket() const { return directory_ / "socket"; }
  void write_settings() const;
  /// Throws if it has ended instead.
  void await_socket();
  void remove_directory() const;

  std::filesystem::path directory_;
  std::optional<child_process> server_;
};
