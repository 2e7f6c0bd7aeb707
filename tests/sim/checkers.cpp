#include "tests/sim/checkers.hpp"

#include <algorithm>

namespace zlink::test {

exclusive_gates::visit exclusive_gates::enter(std::string gate) {
  feed();
  if (++inside_[gate] != 1)
    complain("X-1: " + std::to_string(inside_[gate]) + " turns inside gate " + gate);
  return {*this, std::move(gate)};
}

exclusive_gates::visit::~visit() {
  if (home_ != nullptr)
    --home_->inside_[gate_];
}

void sender_order::ran(const std::string& sender, const std::string& target, std::uint64_t number) {
  feed();
  const auto [entry, first] = last_.try_emplace({sender, target}, number);
  if (!first && number <= entry->second)
    complain("M-148: " + target + " ran number " + std::to_string(number) + " of " + sender + " after number "
             + std::to_string(entry->second));
  entry->second = std::max(entry->second, number);
}

void single_end::began(const std::string& operation) {
  if (!ends_.try_emplace(operation, 0).second)
    complain("M-130: " + operation + " began twice");
}

void single_end::ended(const std::string& operation) {
  feed();
  const auto entry = ends_.find(operation);
  if (entry == ends_.end())
    complain("M-130: " + operation + " ended and never began");
  else if (++entry->second > 1)
    complain("M-130: " + operation + " ended " + std::to_string(entry->second) + " times");
}

std::vector<std::string> single_end::open() const {
  std::vector<std::string> found;
  for (const auto& [operation, ends] : ends_)
    if (ends == 0)
      found.push_back(operation);
  return found;
}

void single_owner::ran(const std::string& id, const std::string& incarnation) {
  feed();
  auto& owners = owners_[id];
  if (!owners.empty() && owners.back() == incarnation)
    return;
  if (std::ranges::find(owners, incarnation) != owners.end())
    complain("S-2: " + id + " ran in " + incarnation + " after it had run in " + owners.back());
  owners.push_back(incarnation);
}

std::vector<std::string> single_owner::owners(const std::string& id) const {
  const auto entry = owners_.find(id);
  return entry == owners_.end() ? std::vector<std::string>{} : entry->second;
}

void at_most_once::ran(const std::string& message) {
  feed();
  if (!seen_.insert(message).second)
    complain("M-5: " + message + " ran again");
}

} // namespace zlink::test
