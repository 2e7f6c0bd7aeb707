#include "card_terminal.hpp"

#include <caf/result.hpp>

#include <utility>

caf::behavior card_terminal::make_behavior() {
  auto* me = self(); // the actor that this Spot is to CAF
  return {
    [this, me](const charge& asked) -> caf::result<charged> {
      if (customer_is_here_)
        return book(asked);
      auto answer = me->make_response_promise<charged>();
      open_.push_back({asked, answer});
      return answer;
    },
    [this](const customer_comes&) {
      customer_is_here_ = true;
      for (auto& waiting : std::exchange(open_, {}))
        waiting.answer.deliver(book(waiting.asked)); // if its caller has given up, nobody hears this
    },
  };
}

/// A caller whose deadline has passed does not know whether it paid, and asks again with the same reference.
charged card_terminal::book(const charge& asked) {
  const auto number = booked_.size() + 1;
  return booked_.try_emplace(asked.reference, charged{"receipt " + std::to_string(number)}).first->second;
}
