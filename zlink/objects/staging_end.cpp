// A Spot that does not become Ready: what waited for it ends with the reason, or goes on to another node (C-41, C-104).
#include "zlink/host/host_runtime.hpp"
#include "zlink/objects/activation_attempt.hpp"
#include "zlink/objects/build_step.hpp"

namespace zlink::detail {

void activation::discard(hosted_object& object, error why) {
  host_.trace(object, "failed", to_string(why.kind()));
  end_staging(object, std::move(why));
}

void activation::reject(hosted_object& object) {
  host_.trace(object, "rejected");
  end_staging(object, {error_kind::unavailable, described(object.address()) + " was not created"});
}

void activation::end_staging(hosted_object& object, error why) {
  object.application_word().set(admission_word::sealed_bit);
  for (auto& message : host_.waiting->take(object))
    message.fail(why);
  object.submit_step(std::make_unique<turn_step>([this, why = std::move(why)](execution_object& target) {
    auto& ended = static_cast<hosted_object&>(target);
    host_.objects.erase(ended); // before anybody learns of the failure, and calls again
    ended.home().fail_operations(ended, why);
    ended.refuse_waiting(why, true);
    ended.dispose();
  }));
}

/// What waits for a Spot that has no room on this node goes on to another one (C-41).
task<void> activation::pass_on(attempt& a) {
  const auto object = a.object;
  host_.trace(*object, "passed_on");
  host_.messages.hold_line(object->id()); // what comes from now on waits behind it
  object->application_word().set(admission_word::sealed_bit);
  auto late = host_.waiting->take(*object);
  std::vector<submission> messages;
  do { // again for those who were admitted before the seal, and are not in the lane yet
    auto taking = run_turn<std::vector<record*>>(*object, *host_.infra, [](execution_object& target) { return target.take_waiting(); });
    const auto taken = co_await std::move(taking);
    for (auto* r : taken)
      messages.push_back(host_.messages.taken_back(r, *object, a.refused));
  } while (object->application_word().records() != 0);
  std::move(late.begin(), late.end(), std::back_inserter(messages));
  auto disposing = run_turn<bool>(*object, *host_.infra, [](execution_object& target) {
    static_cast<spot_object&>(target).dispose();
    return true;
  });
  co_await std::move(disposing);
  host_.messages.release_line(*object, std::move(messages));
  host_.objects.erase(*object);
}

} // namespace zlink::detail
