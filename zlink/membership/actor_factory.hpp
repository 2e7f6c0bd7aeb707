// What a registration says about one type of Actors on one node.
#pragma once

#include "zlink/objects/spot_factory.hpp"
#include "zlink/unique_function.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <typeindex>

namespace zlink {
class actor;
}

namespace zlink::detail {

class actor_object;

struct actor_factory {
  std::string type; ///< stable type
  std::type_index instance_type = typeid(void);
  relocation_policy policy = relocation_policy::none;
  std::shared_ptr<const void> adapter; ///< set with `preserve_state`, as are the next two
  task<bytes> (*capture)(const void* adapter, actor& from, std::stop_token cancel) = nullptr;
  task<void> (*restore)(const void* adapter, actor& into, byte_view state, std::stop_token cancel) = nullptr;
  std::shared_ptr<void> builder;       ///< what the registration callback was given, dead by now (C-26)
  /// Builds the instance around a context made from the object. Called from many turns at once.
  mutable unique_function<std::unique_ptr<actor>(actor_object& object)> make;
};

} // namespace zlink::detail
