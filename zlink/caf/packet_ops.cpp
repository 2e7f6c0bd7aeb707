#include "zlink/caf/packet_ops.hpp"

#include "zlink/execution/payload.hpp"

#include <caf/type_erased_value.hpp>

#include <typeindex>
#include <utility>

namespace zlink::detail {

namespace {

dynamic_value copy_of(const packet_type& type, const void* from) {
  raw_value made{type};
  type.copy(made.place(), from);
  return std::move(made).constructed();
}

dynamic_value taken_from(const caf_packet_ops& ops, void* from) {
  raw_value made{ops.packet};
  ops.take(made.place(), from);
  return std::move(made).constructed();
}

/// A single value, as CAF makes them by type name.
class packet_value final : public caf::type_erased_value {
public:
  packet_value(const caf_packet_ops& ops, dynamic_value value) noexcept : ops_(ops), value_(std::move(value)) {}
  void* get_mutable() override { return value_.address(); }
  const void* get() const override { return value_.address(); }
  caf::rtti_pair type() const override { return ops_.rtti(); }
  caf::error load(caf::deserializer& source) override { return ops_.load(value_.address(), source); }
  caf::error save(caf::serializer& sink) const override { return ops_.save(value_.address(), sink); }
  std::string stringify() const override { return ops_.to_text(value_.address()); }
  caf::type_erased_value_ptr copy() const override { return copy_as_value(ops_, value_.address()); }

private:
  const caf_packet_ops& ops_;
  dynamic_value value_;
};

/// What a message of one packet consists of.
class packet_message final : public one_packet<caf::detail::message_data> {
public:
  packet_message(const caf_packet_ops& ops, dynamic_value value) noexcept
    : one_packet(ops, value.address()), held_(std::move(value)) {}
  using one_packet::copy;
  message_data* copy() const override { return new packet_message(ops_, copy_of(ops_.packet, held_.address())); }

private:
  dynamic_value held_;
};

} // namespace

caf::type_erased_value_ptr copy_as_value(const caf_packet_ops& ops, const void* value) {
  return caf::type_erased_value_ptr{new packet_value(ops, copy_of(ops.packet, value))};
}

caf::message to_caf_message(const caf_packet_ops& ops, void* value) {
  return caf::message{caf::detail::message_data::cow_ptr{new packet_message(ops, taken_from(ops, value)), false}};
}

bool matches(const caf_packet_ops& ops, const caf::message& what) noexcept {
  return what.size() == 1 && what.matches(0, ops.rtti());
}

bool take_from(caf::message& from, const caf_packet_ops& ops, void* to) {
  if (!matches(ops, from))
    return false;
  if (from.cvals()->unique())
    ops.take(to, from.get_mutable(0));
  else
    ops.packet.copy(to, from.get(0));
  return true;
}

void announce(const caf_packet_ops& ops, caf::actor_system_config& config) {
  const std::string name{ops.packet.name};
  const std::type_index index{*ops.packet.type};
  const auto make = [&ops]() -> caf::type_erased_value_ptr {
    return caf::type_erased_value_ptr{new packet_value(ops, dynamic_value{ops.packet})};
  };
  config.type_names_by_rtti.emplace(index, name);
  config.value_factories_by_name.emplace(name, make);
  config.value_factories_by_rtti.emplace(index, make);
}

} // namespace zlink::detail
