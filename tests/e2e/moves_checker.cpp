#include "tests/e2e/moves_checker.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace zlink::test {

namespace {

using turn_list = std::vector<const turn*>;

std::string text_of(const turn& t) {
  return "turn of " + t.id + " in " + to_string(t.in) + " for " + t.sender + ' ' + std::to_string(t.number) + " at "
         + std::to_string(t.begin.time_since_epoch().count() / 1000) + " us";
}

/// In the order in which they began.
std::map<std::string, turn_list> turns_by_id(const evidence& seen) {
  std::map<std::string, turn_list> by_id;
  for (const auto& process : seen)
    for (const auto& t : process.turns)
      by_id[t.id].push_back(&t);
  for (auto& [id, turns] : by_id)
    std::stable_sort(turns.begin(), turns.end(), [](const auto* a, const auto* b) { return a->begin < b->begin; });
  return by_id;
}

void find_overlaps(const turn_list& turns, findings& all) {
  const turn* before = nullptr; // of those so far, the one that ends last
  for (const auto* now : turns) {
    if (before && now->begin < before->end.value_or(before->begin))
      all.push_back(text_of(*now) + " overlaps the " + text_of(*before));
    if (!before || before->end.value_or(before->begin) <= now->end.value_or(now->begin))
      before = now;
  }
}

void find_returns(const turn_list& turns, findings& all) {
  std::set<incarnation> over;
  const turn* before = nullptr;
  for (const auto* now : turns) {
    if (before && before->in != now->in)
      over.insert(before->in);
    if (over.contains(now->in))
      all.push_back(text_of(*now) + " comes after a " + text_of(*before));
    if (before && before->in.generation != now->in.generation)
      all.push_back(text_of(*now) + " has another generation than the " + text_of(*before));
    before = now;
  }
}

using message_key = std::tuple<std::string, std::string, std::uint64_t>; // id, sender, number

} // namespace

findings one_owner_at_a_time(const evidence& seen) {
  findings all;
  for (const auto& [id, turns] : turns_by_id(seen)) {
    find_overlaps(turns, all);
    find_returns(turns, all);
  }
  return all;
}

findings one_gate(const evidence& seen, const std::set<std::string>& ids) {
  turn_list together;
  for (const auto& [id, turns] : turns_by_id(seen))
    if (ids.contains(id))
      together.insert(together.end(), turns.begin(), turns.end());
  std::stable_sort(together.begin(), together.end(), [](const auto* a, const auto* b) { return a->begin < b->begin; });
  findings all;
  find_overlaps(together, all);
  return all;
}

findings whole_streams(const evidence& seen) {
  findings all;
  std::map<message_key, const call*> calls;
  for (const auto& process : seen)
    for (const auto& c : process.calls)
      calls[{c.id, c.sender, c.number}] = &c;
  std::map<message_key, const turn*> run;
  std::map<std::pair<std::string, std::string>, std::uint64_t> latest; // of an id and a sender
  for (const auto& [id, turns] : turns_by_id(seen))
    for (const auto* t : turns) {
      const message_key key{id, t->sender, t->number};
      const auto [first, fresh] = run.emplace(key, t);
      if (!fresh)
        all.push_back(text_of(*t) + " runs again; before: " + text_of(*first->second));
      auto& highest = latest[{id, t->sender}];
      const auto called = calls.find(key);
      const bool may_be_late = called != calls.end() && called->second->one_way;
      if (fresh && !may_be_late && t->number < highest)
        all.push_back(text_of(*t) + " comes after number " + std::to_string(highest));
      highest = std::max(highest, t->number);
    }
  for (const auto& [stream, highest] : latest)
    for (std::uint64_t number = 1; stream.second == ticks && number <= highest; ++number)
      if (!run.contains({stream.first, stream.second, number}))
        all.push_back("tick " + std::to_string(number) + " of " + stream.first + " is missing");
  for (const auto& [key, c] : calls)
    if (c->outcome == "ok" && !run.contains(key))
      all.push_back("number " + std::to_string(c->number) + " of " + c->sender + " ended well and never ran in " + c->id);
  return all;
}

findings true_tallies(const evidence& seen, const std::map<std::string, std::string>& told) {
  findings all;
  auto by_id = turns_by_id(seen);
  for (const auto& [id, text] : told) {
    tally served;
    bool later = false; // turns that the object has not told of
    for (const auto* t : by_id[id]) {
      later = later || to_string(served) == text;
      if (t->end && !(later && t->sender == ticks))
        served.take(t->sender, t->number);
    }
    if (to_string(served) != text)
      all.push_back(id + " says " + text + ", its turns amount to " + to_string(served));
  }
  return all;
}

evidence without_excused(const evidence& seen, const std::vector<ending>& endings, std::chrono::milliseconds flight) {
  std::set<message_key> run;
  for (const auto& process : seen)
    for (const auto& t : process.turns)
      run.insert({t.id, t.sender, t.number});
  const auto excused = [&](const call& c) {
    const bool refused = c.outcome == "unavailable" || c.outcome == "shutting_down";
    const bool lost = c.one_way && c.outcome == "ok" && !run.contains({c.id, c.sender, c.number});
    return c.end && std::any_of(endings.begin(), endings.end(), [&](const ending& e) {
      const bool under_way = c.start <= e.to && *c.end >= e.from;
      const bool in_flight = c.start <= e.to && c.start >= e.from - flight;
      return (refused && under_way) || (lost && in_flight);
    });
  };
  auto rest = seen;
  for (auto& process : rest)
    std::erase_if(process.calls, excused);
  return rest;
}

pauses pauses_of(const evidence& seen) {
  std::vector<std::chrono::microseconds> lengths;
  for (const auto& [id, turns] : turns_by_id(seen))
    for (std::size_t i = 1; i < turns.size(); ++i)
      if (turns[i]->in != turns[i - 1]->in)
        lengths.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
          turns[i]->begin - turns[i - 1]->end.value_or(turns[i - 1]->begin)));
  std::sort(lengths.begin(), lengths.end());
  if (lengths.empty())
    return {};
  return {lengths.size(), lengths[lengths.size() / 2], lengths.back()};
}

} // namespace zlink::test
