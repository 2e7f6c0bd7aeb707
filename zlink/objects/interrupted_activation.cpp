// First activations that were interrupted in this process go on, with what the stores kept of them (C-98, S-116).
#include "zlink/objects/activation.hpp"

#include "zlink/codec.hpp"
#include "zlink/objects/activation_attempt.hpp"
#include "zlink/objects/first_message.hpp"

namespace zlink::detail {

task<bool> activation::resume(std::string id, placement::observed_object seen) {
  const auto row = *placement::row_in(seen);
  auto* node = host_.find_node(row.node.mesh_name);
  const auto* factory = node == nullptr ? nullptr : node->find_factory(spot_kind::instance, row.stable_type);
  if (factory == nullptr)
    co_return true;
  auto loading = as_result(load_first(id, row));
  const auto loaded = co_await std::move(loading);
  if (!loaded && loaded.error().kind() != error_kind::data_lost)
    co_return true; // the next pass asks again
  auto* first = loaded ? *loaded : nullptr;
  if (first == nullptr)
    co_return false;
  auto object = make_object(*node, *factory, id);
  object->set_generations(row.generation, row.authority);
  if (!host_.objects.insert(object, first)) {
    free_record(first);
    co_return true;
  }
  attempt a{std::move(object), *node};
  a.due = host_.time->now() + node->settings.request_timeout;
  a.seen = std::move(seen);
  a.root = *row.root;
  a.root_stored = a.reserved = row.state == placement::allocation_state::reserved;
  host_.trace(*a.object, "resumed");
  if (row.pending)
    a.reservation = row.pending->reservation;
  auto becoming = become_ready(a);
  auto failed = co_await std::move(becoming);
  auto finishing = finish(a, std::move(failed));
  co_await std::move(finishing);
  co_return true;
}

/// The preserved message as a record that nobody waits for; null if it is none. Throws what the store has to say.
task<record*> activation::load_first(std::string id, placement::row_record row) {
  auto reading = host_.repository->read_payload(*row.root);
  const auto outcome = co_await std::move(reading);
  if (const auto* fault = std::get_if<placement::payload_fault>(&outcome))
    throw operation_failed{error{*fault == placement::payload_fault::lost ? error_kind::data_lost : error_kind::unavailable,
                                 "the first message of \"" + id + "\" cannot be read"}};
  const auto& stored = std::get<std::string>(outcome);
  record* first = nullptr;
  try {
    const auto root = decode<first_message>(byte_view{reinterpret_cast<const std::byte*>(stored.data()), stored.size()});
    if (root.spot_id != id || root.stable_type != row.stable_type)
      co_return nullptr;
    first = make_record(root.request ? record_kind::request : record_kind::send);
    if (!root.metadata.empty())
      first->more().metadata = message_metadata::decode(root.metadata);
    first->body.emplace<encoded_value>(root.packet_name, root.content_type, byte_view{root.data});
  } catch (const std::exception&) {
    if (first != nullptr)
      free_record(std::exchange(first, nullptr));
  }
  co_return first;
}

} // namespace zlink::detail
