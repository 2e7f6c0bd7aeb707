#include "zlink/codec/fields.hpp"

namespace zlink::detail {

std::string describe(const codec_place* place, std::string_view why) {
  std::string path;
  std::string_view packet;
  int shown = 0;
  for (; place != nullptr; place = place->outer) {
    packet = place->packet;
    // A value nested in itself would otherwise fill the log with one name.
    if (place->field != nullptr && ++shown <= 8)
      path = path.empty() ? place->field : std::string{place->field} + '.' + path;
  }
  std::string text;
  if (!packet.empty())
    text += "packet \"" + std::string{packet} + '"';
  if (!path.empty())
    text += ", field \"" + path + '"';
  if (!text.empty())
    text += ": ";
  return text += why;
}

} // namespace zlink::detail
