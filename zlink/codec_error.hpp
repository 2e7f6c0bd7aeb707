// What goes wrong between a value and its bytes. Includes nothing of CAF.
#pragma once

#include <stdexcept>

namespace zlink {

/// The value has no encoding: a NaN or a text that is not UTF-8 in JSON, nesting too deep. Raised at the call site,
/// before anything is sent (O-4); what it says names packet and field.
class encode_error : public std::invalid_argument {
public:
  using std::invalid_argument::invalid_argument;
};

/// The bytes are no value of that packet; what it says names packet and field. A caller or handler sees
/// `protocol_error` (M-137, M-143).
class decode_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace zlink
