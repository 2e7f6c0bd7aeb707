// The row of an object that has ended here.
#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/closing.hpp"
#include "zlink/objects/row_change.hpp"

namespace zlink::detail {

placement::owned_object closing::owned(const hosted_object& object) const {
  auto kind = placement::object_kind::actor;
  if (!object.is_actor())
    kind = static_cast<const spot_object&>(object).factory().kind == spot_kind::user ? placement::object_kind::user_spot
                                                                                      : placement::object_kind::instance_spot;
  return {kind, std::string{id_in(object.address())}, host_.token()};
}

// However long the store takes: a Closing row without an instance would occupy its id. Only another token, or the end of
// the host, leaves the row to whoever comes next (S-117).
task<void> closing::remove_row(const hosted_object& object) {
  const auto mine = owned(object);
  row_change change;
  change.id = object.address();
  change.judge = [&mine, generation = object.generation()](const placement::observed_object& seen) {
    const auto* row = placement::row_in(seen);
    return row == nullptr || row->generation != generation ? row_judgement{row_end::settled}
                                                           : judged(placement::remove(seen, mine));
  };
  change.give_up = [this, &mine](bool answered) {
    return host_.token() != mine.owner || (!answered && host_.ending());
  };
  auto changing = change_row(host_, std::move(change));
  const auto outcome = co_await std::move(changing);
  if (const auto* row = placement::row_in(outcome.seen); outcome.how == row_end::applied && row->root)
    host_.repository->forget_payload(*row->root);
}

} // namespace zlink::detail
