#include "adapters/location/redis_address.hpp"

#include "zlink/error.hpp"

#include <charconv>
#include <optional>
#include <utility>

namespace zlink::adapters {

namespace {

constexpr std::string_view forms = "; write redis://[user:password@]host[:port][/database], rediss:// for TLS, or "
                                   "unix://[user:password@]/path/to/socket[?db=database]";

[[noreturn]] void wrong(std::string what) { throw configuration_error{"Redis URL: " + std::move(what).append(forms)}; }

template <class Number>
std::optional<Number> parse_number(std::string_view text) noexcept {
  Number value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// What stands before `mark`; the text goes on behind it. Without the mark: nothing, and the text stays.
std::optional<std::string_view> cut_before(std::string_view& text, std::size_t mark) noexcept {
  if (mark == std::string_view::npos)
    return std::nullopt;
  const auto front = text.substr(0, mark);
  text.remove_prefix(mark + 1);
  return front;
}

std::string percent_decoded(std::string_view text, const char* part) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned byte = 0;
    const auto digits = text.substr(i + 1, 2);
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || failed != std::errc{} || end != digits.data() + 2)
      wrong(std::string{"the "} + part + " has a % that is not followed by two hexadecimal digits");
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

void take_database(redis_address& address, std::string_view text) {
  const auto number = parse_number<std::uint32_t>(text);
  if (!number || *number > 65'535)
    wrong("the database is a number from 0 to 65535");
  address.database = *number;
}

void take_login(redis_address& address, std::string_view login) {
  auto rest = login;
  const auto user = cut_before(rest, rest.find(':'));
  if (!user)
    wrong("before the @ stands user:password, or :password for the default user");
  address.user = percent_decoded(*user, "user");
  address.password = percent_decoded(rest, "password");
  if (address.password.empty())
    wrong("the password is empty");
}

void take_settings(redis_address& address, std::string_view query) {
  while (!query.empty()) {
    auto rest = query;
    const auto one = cut_before(rest, rest.find('&'));
    auto value = one.value_or(query);
    query = one ? rest : std::string_view{};
    const auto name = cut_before(value, value.find('=')).value_or(std::string_view{});
    if (name == "db")
      take_database(address, value);
    else if (name == "ca" && address.tls)
      address.tls_ca = percent_decoded(value, "ca");
    else if (name == "cert" && address.tls)
      address.tls_cert = percent_decoded(value, "cert");
    else if (name == "key" && address.tls)
      address.tls_key = percent_decoded(value, "key");
    else
      wrong("a setting behind the ? is not known; there are db, and for rediss:// ca, cert and key");
  }
  if (address.tls_cert.empty() != address.tls_key.empty())
    wrong("cert and key go together");
}

void take_place(redis_address& address, std::string_view place) {
  if (place.starts_with('[')) { // a number of IPv6
    place.remove_prefix(1);
    const auto number = cut_before(place, place.find(']'));
    if (!number)
      wrong("the [ of the host has no ]");
    address.host = *number;
    if (!place.empty() && !place.starts_with(':'))
      wrong("behind the ] of the host stands a port or nothing");
  } else {
    address.host = place.substr(0, place.find(':'));
    place.remove_prefix(address.host.size());
  }
  if (address.host.empty())
    wrong("the host is missing");
  if (place.empty())
    return;
  const auto port = parse_number<std::uint16_t>(place.substr(1));
  if (!port || *port == 0)
    wrong("the port is a number from 1 to 65535");
  address.port = *port;
}

} // namespace

std::string redis_address::shown() const {
  if (host.empty())
    return "unix://" + socket_path + " database " + std::to_string(database);
  const bool number6 = host.find(':') != std::string::npos;
  return (tls ? "rediss://" : "redis://") + (number6 ? "[" + host + "]" : host) + ":" + std::to_string(port) + "/"
         + std::to_string(database);
}

redis_address parse_redis_url(std::string_view url) {
  redis_address address;
  const auto scheme = url.substr(0, url.find("://"));
  if (scheme != "redis" && scheme != "rediss" && scheme != "unix")
    wrong(url.empty() ? "it is empty" : "its beginning is not known");
  address.tls = scheme == "rediss";
  url.remove_prefix(scheme.size() + 3);
  const auto query = url.find('?');
  if (query != std::string_view::npos)
    take_settings(address, url.substr(query + 1));
  url = url.substr(0, query);
  if (const auto login = cut_before(url, url.rfind('@')))
    take_login(address, *login);
  if (scheme == "unix") {
    if (!url.starts_with('/'))
      wrong("the path of the socket begins with /");
    address.socket_path = percent_decoded(url, "path");
    return address;
  }
  const auto slash = url.find('/');
  if (slash != std::string_view::npos && slash + 1 < url.size())
    take_database(address, url.substr(slash + 1));
  take_place(address, url.substr(0, slash));
  return address;
}

} // namespace zlink::adapters
