// Steps of the layer that run in an object's lifecycle lane.
#pragma once

#include "zlink/execution/execution_object.hpp"
#include "zlink/message.hpp"
#include "zlink/objects/spot_object.hpp"
#include "zlink/task.hpp"

#include <optional>
#include <utility>

namespace zlink::detail {

/// A function that runs as one turn.
class turn_step final : public lifecycle_step {
public:
  explicit turn_step(unique_function<void(execution_object&)> body) : body_(std::move(body)) {}
  task<void> run(execution_object& object) override {
    body_(object);
    return task<void>::done();
  }
  void ended(execution_object&, std::exception_ptr) noexcept override {}

private:
  unique_function<void(execution_object&)> body_;
};

/// Runs `body` as one turn and hands its result to the infrastructure unit.
template <class T>
task<T> run_turn(execution_object& object, infrastructure& unit, unique_function<T(execution_object&)> body) {
  auto ended = new_counted<operation<T>>();
  ended->dispatcher = unit.unit();
  object.submit_step(std::make_unique<turn_step>([ended, body = std::move(body)](execution_object& target) mutable {
    ended->set(result<T>{body(target)});
  }));
  return task<T>{std::move(ended)};
}

/// Factory, configure, on_create (only with a request), on_initialize (only if accepted), in the object's lifecycle lane
/// (C-80, C-81). An exception of the application is `internal_failure` (C-87).
task<result<spot_create_response>> run_build_step(spot_object& object, infrastructure& unit,
                                                  std::optional<message> request);

/// `on_relocation_ready_completed`; then `then`, in the same turn. For User Spots.
std::unique_ptr<lifecycle_step> make_readiness_step(spot_relocation_ready_outcome outcome,
                                                    unique_function<void(execution_object&)> then);

/// `on_closing` in the object's lifecycle lane. True: it ended without exception.
task<bool> run_closing_step(spot_object& object, infrastructure& unit, spot_closing_context context,
                            std::stop_token cleanup);

} // namespace zlink::detail
