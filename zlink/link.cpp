#include "zlink/link.hpp"

#include <algorithm>
#include <charconv>

namespace zlink::detail {

namespace {

bool is_scheme(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
}

std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failed != std::errc{} || end != text.data() + text.size() || port == 0)
    return std::nullopt;
  return port;
}

} // namespace

std::string to_string(const endpoint& where) {
  const bool brackets = where.host.find(':') != where.host.npos;
  return where.scheme + "://" + (brackets ? '[' + where.host + ']' : where.host) + ':' + std::to_string(where.port);
}

std::optional<endpoint> parse_endpoint(std::string_view text) {
  const auto mark = text.find("://");
  if (mark == text.npos || !is_scheme(text.substr(0, mark)))
    return std::nullopt;
  auto rest = text.substr(mark + 3);
  const auto colon = rest.rfind(':');
  if (colon == rest.npos)
    return std::nullopt;
  const auto port = parse_port(rest.substr(colon + 1));
  auto host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']') && host.find(':') != host.npos)
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != host.npos)
    return std::nullopt;
  if (!port || host.empty() || host.find_first_of("/ \t\r\n") != host.npos)
    return std::nullopt;
  return endpoint{std::string{text.substr(0, mark)}, std::string{host}, *port};
}

bool is_loopback(std::string_view host) noexcept {
  if (host == "localhost" || host == "::1")
    return true;
  if (!host.starts_with("127."))
    return false;
  // Four numbers: "127.example.org" is a name and may be anywhere.
  int dots = 0;
  for (char c : host) {
    if (c == '.')
      ++dots;
    else if (c < '0' || c > '9')
      return false;
  }
  return dots == 3;
}

} // namespace zlink::detail
