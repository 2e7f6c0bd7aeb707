#include "adapters/tcp/certificate_names.hpp"

#include <openssl/x509v3.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

namespace zlink::detail {

namespace {

std::string_view text_of(const ASN1_STRING* from) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(from)), static_cast<std::size_t>(ASN1_STRING_length(from))};
}

bool is_plain(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~' && c != ','; });
}

std::string address_of(std::string_view raw) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = raw.size() == 4 ? AF_INET : AF_INET6;
  if ((raw.size() != 4 && raw.size() != 16) || inet_ntop(family, raw.data(), text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

/// With its kind; empty: not one of ours.
std::string name_of(const GENERAL_NAME& from) {
  int kind = 0;
  const auto* value = GENERAL_NAME_get0_value(&from, &kind);
  switch (kind) {
    case GEN_DNS:
      if (const auto text = text_of(static_cast<const ASN1_STRING*>(value)); is_plain(text))
        return "DNS:" + std::string{text};
      break;
    case GEN_URI:
      if (const auto text = text_of(static_cast<const ASN1_STRING*>(value)); is_plain(text))
        return "URI:" + std::string{text};
      break;
    case GEN_IPADD:
      if (auto text = address_of(text_of(static_cast<const ASN1_STRING*>(value))); !text.empty())
        return "IP:" + text;
      break;
    default: break;
  }
  return {};
}

} // namespace

std::string alternative_names(const x509_st* certificate) {
  if (certificate == nullptr)
    return {};
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> all{
    static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
    [](GENERAL_NAMES* names) { GENERAL_NAMES_free(names); }};
  std::vector<std::string> names;
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i)
    if (auto name = name_of(*sk_GENERAL_NAME_value(all.get(), i)); !name.empty())
      names.push_back(std::move(name));
  std::ranges::sort(names);
  std::string text;
  for (const auto& name : names)
    text += (text.empty() ? "" : ",") + name;
  return text;
}

} // namespace zlink::detail
