#include "zlink/caf/packet_ops.hpp"

#include <caf/type_erased_value.hpp>

#include <new>
#include <typeindex>

namespace zlink::detail {

namespace {

/// Memory for one value of a packet type; empty if it has been given none.
class packet_place {
public:
  explicit packet_place(const packet_type& type)
    : type_(type), place_(::operator new(type.size, std::align_val_t{type.alignment})) {}
  packet_place(const packet_place&) = delete;
  packet_place& operator=(const packet_place&) = delete;
  ~packet_place() {
    if (filled_)
      type_.destroy(place_);
    ::operator delete(place_, std::align_val_t{type_.alignment});
  }
  void* get() const noexcept { return place_; }
  void filled() noexcept { filled_ = true; }

private:
  const packet_type& type_;
  void* place_;
  bool filled_ = false;
};

/// A single value, as CAF makes them by type name.
class packet_value final : public caf::type_erased_value {
public:
  explicit packet_value(const caf_packet_ops& ops) : ops_(ops), place_(ops.packet) {
    ops.packet.construct(place_.get());
    place_.filled();
  }
  packet_value(const caf_packet_ops& ops, const void* from) : ops_(ops), place_(ops.packet) {
    ops.packet.copy(place_.get(), from);
    place_.filled();
  }
  void* get_mutable() override { return place_.get(); }
  const void* get() const override { return place_.get(); }
  caf::rtti_pair type() const override { return ops_.rtti(); }
  caf::error load(caf::deserializer& source) override { return ops_.load(place_.get(), source); }
  caf::error save(caf::serializer& sink) const override { return ops_.save(place_.get(), sink); }
  std::string stringify() const override { return ops_.to_text(place_.get()); }
  caf::type_erased_value_ptr copy() const override {
    return caf::type_erased_value_ptr{new packet_value(ops_, place_.get())};
  }

private:
  const caf_packet_ops& ops_;
  packet_place place_;
};

/// What a message of one packet consists of.
class packet_message final : public caf::detail::message_data {
public:
  struct moved {};
  packet_message(const caf_packet_ops& ops, void* from, moved) : ops_(ops), place_(ops.packet) {
    ops.take(place_.get(), from);
    place_.filled();
  }
  packet_message(const caf_packet_ops& ops, const void* from) : ops_(ops), place_(ops.packet) {
    ops.packet.copy(place_.get(), from);
    place_.filled();
  }
  std::size_t size() const noexcept override { return 1; }
  std::uint32_t type_token() const noexcept override { return ops_.type_token; }
  caf::rtti_pair type(std::size_t) const noexcept override { return ops_.rtti(); }
  const void* get(std::size_t) const noexcept override { return place_.get(); }
  void* get_mutable(std::size_t) override { return place_.get(); }
  caf::error load(std::size_t, caf::deserializer& source) override { return ops_.load(place_.get(), source); }
  caf::error save(std::size_t, caf::serializer& sink) const override { return ops_.save(place_.get(), sink); }
  std::string stringify(std::size_t) const override { return ops_.to_text(place_.get()); }
  caf::type_erased_value_ptr copy(std::size_t) const override {
    return caf::type_erased_value_ptr{new packet_value(ops_, place_.get())};
  }
  message_data* copy() const override { return new packet_message(ops_, place_.get()); }

  using type_erased_tuple::load;
  using type_erased_tuple::save;
  using type_erased_tuple::stringify;

private:
  const caf_packet_ops& ops_;
  packet_place place_;
};

} // namespace

caf::type_erased_value_ptr packet_view::copy(std::size_t) const {
  return caf::type_erased_value_ptr{new packet_value(ops_, value_)};
}

caf::message to_caf_message(const caf_packet_ops& ops, void* value) {
  return caf::message{caf::detail::message_data::cow_ptr{new packet_message(ops, value, packet_message::moved{}), false}};
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
    return caf::type_erased_value_ptr{new packet_value(ops)};
  };
  config.type_names_by_rtti.emplace(index, name);
  config.value_factories_by_name.emplace(name, make);
  config.value_factories_by_rtti.emplace(index, make);
}

} // namespace zlink::detail
