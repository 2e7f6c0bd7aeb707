#include "zlink/codec/json.hpp"

#include "zlink/codec/base64.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <optional>

namespace zlink::detail {

namespace {

using node = nlohmann::json;

const node& at(json_value v) { return *static_cast<const node*>(v.node()); }

/// Builds the tree and refuses what the library would let pass: names that occur twice, and unbounded depth.
class tree_builder final : public nlohmann::json_sax<node> {
public:
  explicit tree_builder(node& root) : root_(root) {}
  const std::string& mistake() const noexcept { return mistake_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool x) override { return add(x); }
  bool number_integer(number_integer_t x) override { return add(x); }
  bool number_unsigned(number_unsigned_t x) override { return add(x); }
  bool number_float(number_float_t x, const string_t&) override { return add(x); }
  bool string(string_t& x) override { return add(std::move(x)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(node::object()); }
  bool start_array(std::size_t) override { return open(node::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    auto& members = open_.back()->get_ref<node::object_t&>();
    const auto [where, added] = members.try_emplace(std::move(name));
    if (!added)
      return refuse("member \"" + where->first + "\" occurs twice");
    member_ = &where->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return refuse("malformed JSON at byte " + std::to_string(position));
  }

private:
  bool refuse(std::string why) {
    mistake_ = std::move(why);
    return false;
  }
  node& place(node x) {
    node* to = nullptr;
    if (open_.empty()) {
      to = &root_;
    } else if (open_.back()->is_array()) {
      return open_.back()->emplace_back(std::move(x));
    } else {
      to = std::exchange(member_, nullptr);
    }
    return *to = std::move(x);
  }
  bool add(node x) {
    place(std::move(x));
    return true;
  }
  bool open(node container) {
    if (open_.size() == json_depth_limit)
      return refuse("nested too deep");
    open_.push_back(&place(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  node& root_;
  std::vector<node*> open_;
  node* member_ = nullptr; ///< where the value of the name just read goes
  std::string mistake_;
};

/// A decimal integer without sign of plus, leading zero, blank or "-0" (M-35).
template <class T>
std::optional<T> parse_decimals(std::string_view text) {
  const auto digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (digits[0] == '0' && text != "0"))
    return std::nullopt;
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

bool is_plain(std::string_view text) {
  for (const char c : text)
    if (c < ' ' || c > '~' || c == '"' || c == '\\')
      return false;
  return true;
}

} // namespace

// -- writing ----------------------------------------------------------------------------------------------------------

void json_writer::null() {
  separate();
  to_ += "null";
}

void json_writer::boolean(bool x) {
  separate();
  to_ += x ? "true" : "false";
}

void json_writer::number(std::int64_t x) {
  separate();
  to_ += std::to_string(x);
}

void json_writer::number(float x) {
  separate();
  char shortest[32];
  to_.append(shortest, std::to_chars(shortest, shortest + sizeof shortest, x).ptr);
}

void json_writer::number(double x) {
  separate();
  char shortest[32];
  to_.append(shortest, std::to_chars(shortest, shortest + sizeof shortest, x).ptr);
}

void json_writer::decimals(std::int64_t x) {
  separate();
  to_ += '"' + std::to_string(x) + '"';
}

void json_writer::decimals(std::uint64_t x) {
  separate();
  to_ += '"' + std::to_string(x) + '"';
}

void json_writer::text(std::string_view x) {
  separate();
  if (is_plain(x)) {
    to_ += '"';
    to_ += x;
    to_ += '"';
  } else if (!is_utf8(x)) {
    fail("text is not UTF-8");
  } else {
    to_ += node(x).dump();
  }
}

void json_writer::base64(byte_view x) {
  separate();
  to_ += '"';
  append_base64(to_, x);
  to_ += '"';
}

// -- reading ----------------------------------------------------------------------------------------------------------

struct json_reader::document {
  node root;
};

json_reader::json_reader(std::string_view packet, std::string_view text) : document_(std::make_unique<document>()) {
  const codec_place whole{packet};
  const auto refuse = [&](std::string_view why) { throw decode_error{describe(&whole, why)}; };
  if (text.size() > json_bytes_limit)
    refuse("JSON text is larger than " + std::to_string(json_bytes_limit) + " bytes");
  // The library would skip the one and take the other for the end.
  if (text.starts_with("\xEF\xBB\xBF") || text.find('\0') != text.npos)
    refuse("malformed JSON: byte order mark or NUL");
  tree_builder builder{document_->root};
  if (!node::sax_parse(text, &builder))
    refuse(builder.mistake());
}

json_reader::~json_reader() = default;

json_value json_reader::root() const noexcept { return json_value{&document_->root}; }

bool json_reader::is_null(json_value v) const noexcept { return at(v).is_null(); }

bool json_reader::boolean(json_value v) const {
  if (!at(v).is_boolean())
    fail("not true or false");
  return at(v).get<bool>();
}

std::int64_t json_reader::number(json_value v, std::int64_t least, std::int64_t most) const {
  if (!at(v).is_number_integer())
    fail("not an integer");
  const bool beyond = at(v).is_number_unsigned() && at(v).get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  const auto value = at(v).get<std::int64_t>();
  if (beyond || value < least || value > most)
    fail("integer out of range");
  return value;
}

double json_reader::floating(json_value v, double most) const {
  if (!at(v).is_number())
    fail("not a number");
  const auto value = at(v).get<double>();
  if (!(std::abs(value) <= most))
    fail("number out of range");
  return value;
}

std::int64_t json_reader::signed_decimals(json_value v) const {
  const auto value = parse_decimals<std::int64_t>(text(v));
  if (!value)
    fail("not a decimal integer of 64 bits");
  return *value;
}

std::uint64_t json_reader::unsigned_decimals(json_value v) const {
  const auto value = parse_decimals<std::uint64_t>(text(v));
  if (!value)
    fail("not an unsigned decimal integer of 64 bits");
  return *value;
}

const std::string& json_reader::text(json_value v) const {
  if (!at(v).is_string())
    fail("not a string");
  return at(v).get_ref<const std::string&>();
}

bytes json_reader::base64(json_value v) const {
  auto found = parse_base64(text(v));
  if (!found)
    fail("not base64 with padding");
  return *std::move(found);
}

std::size_t json_reader::array_size(json_value v) const {
  if (!at(v).is_array())
    fail("not an array");
  return at(v).size();
}

json_value json_reader::element(json_value array, std::size_t i) const { return json_value{&at(array)[i]}; }

std::size_t json_reader::object_size(json_value v) const {
  if (!at(v).is_object())
    fail("not an object");
  return at(v).size();
}

json_value json_reader::member(json_value object, const char* name) const {
  const auto found = at(object).find(name);
  return json_value{found == at(object).end() ? nullptr : &*found};
}

std::vector<std::pair<std::string_view, json_value>> json_reader::members(json_value object) const {
  std::vector<std::pair<std::string_view, json_value>> all;
  all.reserve(object_size(object));
  for (const auto& [name, value] : at(object).get_ref<const node::object_t&>())
    all.emplace_back(name, json_value{&value});
  return all;
}

} // namespace zlink::detail
