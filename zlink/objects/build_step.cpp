#include "zlink/objects/build_step.hpp"

namespace zlink::detail {

namespace {

error error_of(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    return {error_kind::internal_failure, text_of_current_exception()};
  }
}

class build_step final : public lifecycle_step {
public:
  build_step(std::optional<message> request, counted_ptr<operation<result<spot_create_response>>> ended)
    : request_(std::move(request)), ended_(std::move(ended)) {}

  task<void> run(execution_object& object) override { return build(static_cast<spot_object&>(object)); }
  void ended(execution_object& object, std::exception_ptr failure) noexcept override {
    if (failure) {
      note_failure(object, "creation", failure, true);
      ended_->set(result<result<spot_create_response>>{result<spot_create_response>{error_of(failure)}});
    } else {
      ended_->set(result<result<spot_create_response>>{result<spot_create_response>{std::move(response_)}});
    }
  }

private:
  /// A coroutine also for what comes before the first suspension: everything that the application throws ends the step.
  task<void> build(spot_object& spot) {
    spot.construct();
    if (request_)
      response_ = co_await static_cast<user_spot_application*>(spot.application())->on_create(*request_);
    if (response_.accepted)
      co_await spot.application()->on_initialize();
  }

  std::optional<message> request_;
  spot_create_response response_;
  counted_ptr<operation<result<spot_create_response>>> ended_;
};

class readiness_step final : public lifecycle_step {
public:
  readiness_step(spot_relocation_ready_outcome outcome, unique_function<void(execution_object&)> then)
    : outcome_(outcome), then_(std::move(then)) {}
  task<void> run(execution_object& object) override { return tell(static_cast<spot_object&>(object)); }
  void ended(execution_object& object, std::exception_ptr failure) noexcept override {
    if (failure)
      note_failure(object, "on_relocation_ready_completed", failure, false);
    then_(object);
  }

private:
  task<void> tell(spot_object& spot) {
    const spot_relocation_ready_completion completion{outcome_};
    if (spot.application() != nullptr) // else it has ended meanwhile
      co_await static_cast<user_spot_application*>(spot.application())->on_relocation_ready_completed(completion);
  }

  spot_relocation_ready_outcome outcome_;
  unique_function<void(execution_object&)> then_;
};

class closing_step final : public lifecycle_step {
public:
  closing_step(spot_closing_context context, std::stop_token cleanup, counted_ptr<operation<bool>> ended)
    : context_(context), cleanup_(std::move(cleanup)), ended_(std::move(ended)) {}

  task<void> run(execution_object& object) override { return close(static_cast<spot_object&>(object)); }
  void ended(execution_object& object, std::exception_ptr failure) noexcept override {
    if (failure)
      note_failure(object, "on_closing", failure, false);
    ended_->set(result<bool>{failure == nullptr});
  }

private:
  task<void> close(spot_object& spot) {
    if (spot.application() == nullptr)
      co_return; // its activation failed while the close was under way: nobody to tell
    co_await spot.application()->on_closing(context_, cleanup_);
  }

  spot_closing_context context_;
  std::stop_token cleanup_;
  counted_ptr<operation<bool>> ended_;
};

} // namespace

task<result<spot_create_response>> run_build_step(spot_object& object, infrastructure& unit,
                                                  std::optional<message> request) {
  auto ended = new_counted<operation<result<spot_create_response>>>();
  ended->dispatcher = unit.unit();
  object.submit_step(std::make_unique<build_step>(std::move(request), ended));
  return task<result<spot_create_response>>{std::move(ended)};
}

std::unique_ptr<lifecycle_step> make_readiness_step(spot_relocation_ready_outcome outcome,
                                                    unique_function<void(execution_object&)> then) {
  return std::make_unique<readiness_step>(outcome, std::move(then));
}

task<bool> run_closing_step(spot_object& object, infrastructure& unit, spot_closing_context context,
                            std::stop_token cleanup) {
  auto ended = new_counted<operation<bool>>();
  ended->dispatcher = unit.unit();
  object.submit_step(std::make_unique<closing_step>(context, std::move(cleanup), ended));
  return task<bool>{std::move(ended)};
}

} // namespace zlink::detail
