// What a registration says about one kind of object on one node.
#pragma once

#include "zlink/identity.hpp"
#include "zlink/objects/handler_table.hpp"
#include "zlink/objects/slot_count.hpp"
#include "zlink/packet_type.hpp"
#include "zlink/task.hpp"
#include "zlink/unique_function.hpp"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <typeindex>

namespace zlink::detail {

class actor_callbacks;
class spot_application;

enum class execution_mode : std::uint8_t { spot_wide, per_actor };
enum class relocation_policy : std::uint8_t { none, disable, recreate, preserve_state };

struct spot_factory {
  spot_kind kind = spot_kind::instance;
  std::string type; ///< stable type, empty for the Entry Spot
  std::type_index instance_type = typeid(void);
  execution_mode mode = execution_mode::spot_wide;
  relocation_policy policy = relocation_policy::none;
  bool application_signaled = false;
  std::type_index actor_class = typeid(void); ///< of its members; void: it hosts no Actors (C-136)
  actor_callbacks* (*about_actors)(spot_application&) = nullptr; ///< of such an instance
  std::shared_ptr<const void> adapter; ///< set with `preserve_state`, as are the next two
  task<bytes> (*capture)(const void* adapter, spot_application& from, std::stop_token cancel) = nullptr;
  task<void> (*restore)(const void* adapter, spot_application& into, byte_view state, std::stop_token cancel) = nullptr;
  std::shared_ptr<void> builder;       ///< what the registration callback was given, dead by now (C-26)
  std::uint32_t limit = 0; ///< of this type on this node, 0: none
  mutable slot_count in_being;
  /// Builds the instance around a context made from the object. Called from many turns at once.
  mutable unique_function<std::unique_ptr<spot_application>(spot_object& object)> make;
  mutable handler_tables tables;
};

} // namespace zlink::detail
