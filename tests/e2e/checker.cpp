#include "tests/e2e/checker.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace zlink::test {

namespace {

std::string instant(steady_time at) { return std::to_string(at.time_since_epoch().count() / 1'000'000) + " ms"; }

std::string text_of(const turn& t) {
  return "turn of " + t.id + " in " + to_string(t.in) + " for " + t.sender + ' ' + std::to_string(t.number) + " at "
         + instant(t.begin);
}

std::string text_of(const process_history& of, const call& c) {
  return "call of " + of.name + " to " + c.id + ", " + c.sender + ' ' + std::to_string(c.number) + ", started at "
         + instant(c.start) + ", outcome \"" + c.outcome + '"' + (c.end ? " at " + instant(*c.end) : "");
}

/// When a turn counts as over.
steady_time end_of(const turn& t, const std::vector<freeze>& frozen) {
  if (!t.end)
    return t.begin; // nobody knows: its process died, or its Spot was discarded
  for (const auto& f : frozen)
    if (t.begin <= f.from && f.from <= *t.end)
      return f.from;
  return *t.end;
}

struct timed_turn {
  const turn* what;
  steady_time end;
};

std::map<std::string, std::vector<timed_turn>> turns_by_id(const evidence& seen) {
  std::map<std::string, std::vector<timed_turn>> by_id;
  for (const auto& process : seen)
    for (const auto& t : process.turns)
      by_id[t.id].push_back({&t, end_of(t, process.frozen)});
  for (auto& [id, turns] : by_id)
    std::stable_sort(turns.begin(), turns.end(),
                     [](const auto& a, const auto& b) { return a.what->begin < b.what->begin; });
  return by_id;
}

/// An instance may be built again for the same generation, on the node that owns it (C-78).
bool may_follow(const incarnation& before, const incarnation& after) {
  if (after.generation != before.generation)
    return after.generation > before.generation;
  return after.process == before.process && after.tag >= before.tag;
}

} // namespace

findings one_incarnation_at_a_time(const evidence& seen) {
  findings all;
  for (const auto& [id, turns] : turns_by_id(seen)) {
    const timed_turn* before = nullptr; // of those so far, the one that ends last
    const turn* latest = nullptr;       // of those so far, one of the latest incarnation
    for (const auto& now : turns) {
      if (before && now.what->begin < before->end)
        all.push_back(text_of(*now.what) + " overlaps the " + text_of(*before->what));
      if (latest && !may_follow(latest->in, now.what->in))
        all.push_back(text_of(*now.what) + " comes after a " + text_of(*latest));
      else
        latest = now.what;
      if (!before || before->end <= now.end)
        before = &now;
    }
  }
  return all;
}

findings in_order_and_once(const evidence& seen) {
  findings all;
  for (const auto& [id, turns] : turns_by_id(seen)) {
    std::map<std::pair<incarnation, std::string>, std::uint64_t> latest;
    std::map<std::pair<std::string, std::uint64_t>, const turn*> run;
    for (const auto& [t, end] : turns) {
      auto& number = latest[{t->in, t->sender}];
      if (t->number <= number)
        all.push_back(text_of(*t) + " comes after number " + std::to_string(number));
      number = std::max(number, t->number);
      const auto [first, fresh] = run.emplace(std::pair{t->sender, t->number}, t);
      if (!fresh)
        all.push_back(text_of(*t) + " runs again; before: " + text_of(*first->second));
    }
  }
  return all;
}

findings named_outcomes(const evidence& seen, const std::set<std::string>& allowed, std::chrono::milliseconds slack) {
  findings all;
  for (const auto& process : seen)
    for (const auto& c : process.calls) {
      if (c.ends > 1 || (c.ends == 0 && !process.killed))
        all.push_back(text_of(process, c) + " has " + std::to_string(c.ends) + " ends");
      if (c.ends == 0)
        continue;
      if (!allowed.contains(c.outcome))
        all.push_back(text_of(process, c) + " ended as it must not");
      auto latest = c.start + c.timeout;
      for (const auto& f : process.frozen)
        if (c.start <= f.to && f.from <= latest)
          latest = std::max(latest, f.to);
      if (*c.end > latest + slack)
        all.push_back(text_of(process, c) + " ended too late, timeout " + std::to_string(c.timeout.count()) + " ms");
    }
  return all;
}

findings answers_are_true(const evidence& seen) {
  std::map<std::tuple<std::string, std::string, std::uint64_t>, const turn*> run;
  for (const auto& process : seen)
    for (const auto& t : process.turns)
      run[{t.id, t.sender, t.number}] = &t;
  findings all;
  for (const auto& process : seen)
    for (const auto& c : process.calls) {
      if (c.outcome != "ok" || c.one_way)
        continue;
      const auto found = run.find({c.id, c.sender, c.number});
      if (found == run.end()) {
        all.push_back(text_of(process, c) + " was answered and never ran");
        continue;
      }
      const auto& t = *found->second;
      if (to_string(t.in) != c.served_by || !t.end || t.begin < c.start || *c.end < *t.end)
        all.push_back(text_of(process, c) + " was answered by " + c.served_by + ", which does not fit the " + text_of(t));
    }
  return all;
}

findings end_quickly(const evidence& seen, const std::function<bool(const call&)>& concerned, steady_time instant,
                     std::chrono::milliseconds limit, const std::set<std::string>& outcomes) {
  findings all;
  for (const auto& process : seen)
    for (const auto& c : process.calls) {
      if (process.killed || (c.end && *c.end < instant) || !concerned(c))
        continue;
      if (!c.end || *c.end > std::max(instant, c.start) + limit)
        all.push_back(text_of(process, c) + " waited too long");
      else if (!outcomes.contains(c.outcome))
        all.push_back(text_of(process, c) + " must not have ended so");
    }
  return all;
}

findings no_turns(const evidence& seen, const std::function<bool(const turn&)>& concerned, steady_time from,
                  steady_time to) {
  findings all;
  for (const auto& process : seen)
    for (const auto& t : process.turns)
      if (from < t.begin && t.begin < to && concerned(t))
        all.push_back(text_of(t) + " must not have begun");
  return all;
}

findings bounded_memory(const std::vector<memory_samples>& seen, std::size_t growth) {
  findings all;
  for (const auto& one : seen) {
    const auto most = std::max_element(one.bytes.begin(), one.bytes.end());
    if (most != one.bytes.end() && *most > one.bytes.front() + growth)
      all.push_back(one.process + " grew from " + std::to_string(one.bytes.front()) + " to " + std::to_string(*most)
                    + " bytes");
  }
  return all;
}

std::string to_text(const findings& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < 8; ++i)
    text += all[i] + '\n';
  if (all.size() > 8)
    text += "and " + std::to_string(all.size() - 8) + " more\n";
  return text;
}

} // namespace zlink::test
