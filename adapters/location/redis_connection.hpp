// Requests to one Redis server from any thread; a thread of its own keeps a connection and calls completions.
#pragma once

#include "adapters/location/redis_pipeline.hpp"
#include "adapters/location/redis_script.hpp"
#include "zlink/redis_store.hpp"

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace zlink::adapters {

class redis_connection {
public:
  /// Outstanding requests beyond these are refused at once.
  static constexpr std::size_t most_requests = 65'536;
  static constexpr std::size_t most_bytes = 256 * 1024 * 1024;

  /// Begins to look for the server, with `scripts` loaded on every connection. Throws `configuration_error` for options
  /// out of bounds.
  redis_connection(redis_options options, std::vector<const redis_script*> scripts);
  redis_connection(const redis_connection&) = delete;
  redis_connection& operator=(const redis_connection&) = delete;
  /// Ends what is outstanding: not applied if it was not sent, else unclear. Completions may destroy the connection.
  ~redis_connection();

  /// "{prefix}:name"
  std::string key(std::string_view name) const { return key_prefix_ + std::string{name}; }
  /// `changes`: it may have an effect, so that without an answer its outcome is unclear.
  void submit(const redis_script& script, redis_arguments arguments, bool changes,
              unique_function<void(redis_answer)> done);

private:
  class worker;
  std::string key_prefix_;
  std::shared_ptr<worker> worker_;
  std::thread thread_;
};

} // namespace zlink::adapters
