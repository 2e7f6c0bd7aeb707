// The node lifecycles that had no room for a Spot that a message is to wake: none of them is asked again (C-41).
#pragma once

#include "zlink/identity.hpp"

#include <string>
#include <string_view>

namespace zlink::detail {

/// RIDs as one text, each behind a byte with its length, as they travel with the message.
class refused_nodes {
public:
  refused_nodes() = default;
  /// Of a text that is `well_formed`.
  explicit refused_nodes(std::string_view encoded) : encoded_(encoded) {}

  static bool well_formed(std::string_view encoded) noexcept {
    while (!encoded.empty()) {
      const std::size_t length = static_cast<unsigned char>(encoded.front());
      if (length >= encoded.size() || !is_valid_id(encoded.substr(1, length)))
        return false;
      encoded.remove_prefix(1 + length);
    }
    return true;
  }
  const std::string& encoded() const noexcept { return encoded_; }

  void add(std::string_view rid) {
    if (contains(rid))
      return;
    encoded_ += static_cast<char>(rid.size());
    encoded_ += rid;
  }
  bool contains(std::string_view rid) const noexcept {
    bool found = false;
    for_each([&](std::string_view one) { found = found || one == rid; });
    return found;
  }
  template <class Do>
  void for_each(Do&& what) const {
    for (std::string_view rest{encoded_}; !rest.empty();) {
      const std::size_t length = static_cast<unsigned char>(rest.front());
      what(rest.substr(1, length));
      rest.remove_prefix(1 + length);
    }
  }

private:
  std::string encoded_;
};

} // namespace zlink::detail
