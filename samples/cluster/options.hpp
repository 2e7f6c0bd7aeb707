// The command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

enum class command { serve, feed, show, release };

struct options {
  command what = command::serve;
  // What this machine says of itself.
  std::string name = "node";
  std::string bind = "127.0.0.1";
  std::string advertise; ///< empty: `bind`
  std::uint16_t port = 0;
  std::string tls_directory; ///< empty: no certificates, which is for loopback only
  // What all machines of the cluster share.
  std::string redis_url;
  std::string secret; ///< empty: none
  // What `feed` does.
  std::size_t devices = 8;
  std::size_t rounds = 10; ///< 0: until it is told to stop
};

/// The options, or the exit code of a program that has nothing more to do, after it has said why.
std::variant<options, int> parse_options(int argc, char** argv);
