// What the link conformance suite (link_conformance.cpp, link_session_conformance.cpp) needs from a transport. The suite runs on every transport of
// which the test program links a `transport_registration`.
#pragma once

#include "zlink/link.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zlink::test {

/// Three nodes that can reach each other, each with a transport that has not listened yet.
class transports_under_test {
public:
  virtual ~transports_under_test() = default;
  /// 0, 1 or 2.
  virtual detail::link_transport& node(std::size_t i) = 0;
  /// What to listen on.
  virtual std::string host(std::size_t i) = 0;
  /// Lets things happen until `done()`; false if that does not come. `done` locks what it reads.
  virtual bool until(std::function<bool()> done) = 0;
};

struct transport_kind {
  std::string name;
  std::function<std::unique_ptr<transports_under_test>()> make;
};

inline std::vector<transport_kind>& registered_transports() {
  static std::vector<transport_kind> all;
  return all;
}

struct transport_registration {
  transport_registration(std::string name, std::function<std::unique_ptr<transports_under_test>()> make) {
    registered_transports().push_back({std::move(name), std::move(make)});
  }
};

/// Runs `test` once on each transport.
template <class Test>
void for_each_transport(Test test) {
  REQUIRE(!registered_transports().empty());
  for (const auto& one : registered_transports()) {
    INFO("transport " << one.name);
    const auto nodes = one.make();
    test(*nodes);
  }
}

} // namespace zlink::test
