#include "zlink/placement/record_keys.hpp"

#include "zlink/placement/object_address.hpp"

namespace zlink::placement {

namespace {

// The first character tells the kind of record.
constexpr char actor_mark = 'a';
constexpr char spot_mark = 's';
constexpr char lease_mark = 'l';
constexpr char descriptor_mark = 'd';
constexpr char capacity_mark = 'c';
constexpr char counter_mark = 'n';
constexpr char terminal_mark = 't';
constexpr char content_mark = 'q';
constexpr char aggregate_mark = 'g';
constexpr char page_mark = 'p';
constexpr char epoch_mark = 'e';
constexpr char watch_mark = 'w';

std::string marked(char mark, std::string_view rest) {
  std::string key;
  key.reserve(1 + rest.size());
  key += mark;
  key += rest;
  return key;
}

void append_sized(std::string& key, std::string_view field) {
  key += std::to_string(field.size());
  key += ':';
  key += field;
}

void append_hex(std::string& key, std::uint64_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  char sixteen[16];
  for (int i = 0; i < 16; ++i)
    sixteen[i] = digits[(value >> (60 - 4 * i)) & 0xf];
  key.append(sixteen, sizeof sixteen);
}

std::string with_id(char mark, const detail::unique_id& id) {
  std::string key;
  key.reserve(33);
  key += mark;
  append_hex(key, id.high);
  append_hex(key, id.low);
  return key;
}

std::string node_key(char mark, std::string_view mesh_name, std::string_view node_rid) {
  std::string key;
  key.reserve(8 + mesh_name.size() + node_rid.size());
  key += mark;
  append_sized(key, mesh_name);
  key += node_rid;
  return key;
}

} // namespace

std::string actor_key(std::string_view actor_id) { return marked(actor_mark, actor_id); }
std::string spot_key(std::string_view spot_id) { return marked(spot_mark, spot_id); }

std::string object_key(object_kind kind, std::string_view id) {
  return kind == object_kind::actor ? actor_key(id) : spot_key(id);
}

std::string address_key(std::string_view address) {
  return detail::is_actor_address(address) ? actor_key(detail::id_in(address)) : spot_key(address);
}

std::string address_of(object_kind kind, const std::string& id) {
  return kind == object_kind::actor ? detail::actor_address(id) : id;
}

std::string lease_key(const detail::unique_id& owner) { return with_id(lease_mark, owner); }

std::string descriptor_key(std::string_view mesh_name, std::string_view node_rid) {
  return node_key(descriptor_mark, mesh_name, node_rid);
}

std::string capacity_key(std::string_view mesh_name, std::string_view node_rid) {
  return node_key(capacity_mark, mesh_name, node_rid);
}

std::string counter_key(sequence which) {
  switch (which) {
    case sequence::lease: return marked(counter_mark, "lease");
    case sequence::object: return marked(counter_mark, "object");
    case sequence::authority: return marked(counter_mark, "authority");
  }
  return {};
}

std::string terminal_key(std::string_view source_rid, detail::lifecycle_generation source_lifecycle,
                         const detail::operation_id& operation) {
  std::string key{terminal_mark};
  append_sized(key, source_rid);
  append_hex(key, source_lifecycle.value);
  append_hex(key, operation.high);
  append_hex(key, operation.low);
  return key;
}

std::string content_key(const detail::unique_id& reservation) { return with_id(content_mark, reservation); }
std::string aggregate_key(const detail::unique_id& aggregate) { return with_id(aggregate_mark, aggregate); }

std::string aggregate_page_key(const detail::unique_id& aggregate, std::uint32_t index) {
  auto key = with_id(page_mark, aggregate);
  append_hex(key, index);
  return key;
}

std::string watch_key(const detail::unique_id& owner) { return with_id(watch_mark, owner); }
std::string epoch_key() { return std::string{epoch_mark}; }

std::string actor_prefix() { return std::string{actor_mark}; }
std::string spot_prefix() { return std::string{spot_mark}; }
std::string descriptor_prefix() { return std::string{descriptor_mark}; }
std::string descriptor_prefix(std::string_view mesh_name) { return node_key(descriptor_mark, mesh_name, {}); }
std::string_view id_in_key(std::string_view key) noexcept { return key.substr(key.empty() ? 0 : 1); }

} // namespace zlink::placement
