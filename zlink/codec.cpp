#include "zlink/codec.hpp"

#include "zlink/error.hpp"

#include <algorithm>
#include <cstdint>

namespace zlink {

namespace {

class binary_codec final : public codec {
public:
  std::string content_type() const override { return std::string{binary_content_type}; }
  bool handles(const packet_info&) const override { return true; }
  void encode(const packet_info& type, const void* value, bytes& to) const override { type.encode_binary(value, to); }
  void decode(const packet_info& type, byte_view from, void* value) const override { type.decode_binary(value, from); }
};

class json_codec final : public codec {
public:
  std::string content_type() const override { return std::string{json_content_type}; }
  bool handles(const packet_info&) const override { return true; }
  void encode(const packet_info& type, const void* value, bytes& to) const override {
    std::string text;
    type.encode_json(value, text);
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    to.insert(to.end(), first, first + text.size());
  }
  void decode(const packet_info& type, byte_view from, void* value) const override {
    type.decode_json(value, std::string_view{reinterpret_cast<const char*>(from.data()), from.size()});
  }
};

constexpr std::string_view blanks = " \t\r\n";

/// A character of a type or subtype (RFC 9110, token).
bool is_token(char c) noexcept {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || marks.find(c) != marks.npos;
}

} // namespace

namespace detail {

std::string canonical_content_type(std::string_view content_type) {
  auto text = content_type;
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  std::string canonical{text};
  for (char& c : canonical)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  const auto slash = canonical.find('/');
  const bool two_parts = slash != canonical.npos && slash != 0 && slash + 1 != canonical.size();
  const auto well_formed = [&](std::size_t from, std::size_t to) {
    return std::all_of(canonical.begin() + static_cast<std::ptrdiff_t>(from),
                       canonical.begin() + static_cast<std::ptrdiff_t>(to), is_token);
  };
  if (!two_parts || !well_formed(0, slash) || !well_formed(slash + 1, canonical.size()))
    throw configuration_error{"content type \"" + std::string{content_type}
                              + "\" of a codec is not of the form type/subtype; parameters, blanks inside, other than "
                                "ASCII and empty parts are not allowed"};
  return canonical;
}

} // namespace detail

/// Which codec a type is sent with: a hash table that is only added to, so that looking up takes no lock.
class codec_registry::choices {
public:
  const codec* find(const packet_info& type) const noexcept {
    for (auto i = start(type);; i = (i + 1) % slots_.size()) {
      const auto* held = slots_[i].type.load(std::memory_order_acquire);
      if (held == &type)
        return slots_[i].chosen;
      if (held == nullptr)
        return nullptr;
    }
  }

  void remember(const packet_info& type, const codec& chosen) {
    std::lock_guard guard{adding_};
    if (used_ == remembered_types)
      return;
    auto i = start(type);
    for (; slots_[i].type.load(std::memory_order_relaxed) != nullptr; i = (i + 1) % slots_.size())
      if (slots_[i].type.load(std::memory_order_relaxed) == &type)
        return; // another thread was first
    slots_[i].chosen = &chosen;
    slots_[i].type.store(&type, std::memory_order_release);
    ++used_;
  }

private:
  struct slot {
    std::atomic<const packet_info*> type{nullptr};
    const codec* chosen = nullptr; ///< written before `type`
  };

  static std::size_t start(const packet_info& type) noexcept {
    const auto mixed = reinterpret_cast<std::uintptr_t>(&type) * std::uint64_t{0x9e37'79b9'7f4a'7c15};
    return static_cast<std::size_t>(mixed >> 53); // the upper 11 bits: 0..2047
  }

  std::array<slot, 2 * remembered_types> slots_; ///< never more than half full: every search ends
  std::mutex adding_;
  std::size_t used_ = 0;
};

codec_registry::codec_registry(fallback otherwise)
  : fallback_(otherwise == fallback::json ? json_content_type : binary_content_type) {
  entries_.push_back({std::string{binary_content_type}, std::make_shared<binary_codec>(), true});
  entries_.push_back({std::string{json_content_type}, std::make_shared<json_codec>(), true});
}

codec_registry::~codec_registry() = default;

void codec_registry::add(std::shared_ptr<const codec> added) {
  auto canonical = detail::canonical_content_type(added->content_type());
  std::erase_if(entries_, [&](const entry& e) { return e.content_type == canonical; });
  entries_.push_back({std::move(canonical), std::move(added), false});
  choices_ = std::make_unique<choices>(); // what was chosen before may no longer hold
}

const codec& codec_registry::for_sending(const packet_info& type) const {
  if (!choices_) // only the built-in codecs
    return *for_content_type(fallback_);
  if (const auto* chosen = choices_->find(type))
    return *chosen;
  const auto& chosen = choose(type);
  choices_->remember(type, chosen);
  return chosen;
}

const codec& codec_registry::choose(const packet_info& type) const {
  for (auto e = entries_.rbegin(); e != entries_.rend(); ++e) {
    if (!e->built_in && e->implementation->handles(type))
      return *e->implementation;
  }
  return *for_content_type(fallback_);
}

const codec* codec_registry::for_content_type(std::string_view content_type) const noexcept {
  for (const auto& e : entries_)
    if (e.content_type == content_type)
      return e.implementation.get();
  return nullptr;
}

std::string_view codec_registry::content_type_of(const codec& which) const noexcept {
  for (const auto& e : entries_)
    if (e.implementation.get() == &which)
      return e.content_type;
  return {};
}

void codec_registry::decode(std::string_view content_type, const packet_info& type, byte_view from, void* value) const {
  const auto* known = for_content_type(content_type);
  if (known == nullptr)
    throw decode_error{"packet \"" + std::string{type.name} + "\": content type \""
                       + std::string{content_type.substr(0, 255)} + "\" is not registered at this host"};
  known->decode(type, from, value);
}

} // namespace zlink
