// Between CAF's messages and records: a CAF request becomes a record whose reply is a CAF response.
#pragma once

#include "zlink/caf/compat.hpp"
#include "zlink/error.hpp"
#include "zlink/execution/record.hpp"

namespace zlink {

/// The category of `caf::error`s that stand for our error kinds; the code is the kind's value plus one (D-14).
inline constexpr caf::atom_value caf_error_category = caf::atom("zlink");

/// Every kind is also a CAF error. `system.render()` prints kind and text.
caf::error to_caf_error(const error& what);

namespace detail {

/// A CAF message as a record: a request if CAF's sender waits for a response.
record* make_caf_record(caf::mailbox_element_ptr element);

/// Down, exit and error messages: CAF's own, for the actor and not for the Spot that it stands for (D-13).
bool is_system_message(const caf::type_erased_tuple& content);

/// The body as a CAF message: errors as `caf::error`, encoded packets decoded if their type is known here.
caf::message to_caf_message(payload body);

} // namespace detail
} // namespace zlink
