// Repeated figures side by side: ours, the raw one of the same shape in the same run, and their ratio.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct figure {
  double median = 0;
  double lowest = 0;
  double highest = 0;
};

inline figure summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

/// Only rows whose titles contain this are run: the first argument of every benchmark.
inline std::string& chosen_rows() {
  static std::string text;
  return text;
}

/// "raw" or "ours": only that side is run, for a profile of it. The second argument of every benchmark.
inline std::string& chosen_side() {
  static std::string text;
  return text;
}

inline void choose_rows(int argc, char** argv) {
  if (argc > 1)
    chosen_rows() = argv[1];
  if (argc > 2)
    chosen_side() = argv[2];
}

/// What a figure of the chosen side is; 1 for the side that was not chosen.
inline double measure(const char* side, const std::function<double()>& figure) {
  return chosen_side().empty() || chosen_side() == side ? figure() : 1.0;
}

/// Runs both in turn, so that a machine whose speed drifts treats them alike, and prints a row.
inline void compare_by(const std::string& title, const char* unit, const std::function<double()>& raw,
                       const std::function<double()>& ours, const std::function<const char*(double)>& judge) {
  if (title.find(chosen_rows()) == std::string::npos)
    return;
  std::vector<double> raw_values;
  std::vector<double> our_values;
  std::vector<double> ratios;
  measure("raw", raw);
  measure("ours", ours); // warm
  for (int run = 0; run < 5; ++run) {
    raw_values.push_back(measure("raw", raw));
    our_values.push_back(measure("ours", ours));
    ratios.push_back(our_values.back() / raw_values.back());
  }
  const auto r = summarise(raw_values);
  const auto o = summarise(our_values);
  const auto x = summarise(ratios);
  std::printf("%-58s raw %11.4g  ours %11.4g %s  ratio %5.2f (%.2f..%.2f)%s\n", title.c_str(), r.median, o.median, unit,
              x.median, x.lowest, x.highest, judge(x.median));
  std::fflush(stdout);
}

/// For rates: the ratio should be at least `wanted`; 0: no wish.
inline void compare(const std::string& title, const char* unit, const std::function<double()>& raw,
                    const std::function<double()>& ours, double wanted) {
  compare_by(title, unit, raw, ours,
             [wanted](double x) { return wanted <= 0 ? "" : x >= wanted ? "  reached" : "  MISSED"; });
}

/// For times: the ratio should be at most `wanted`.
inline void compare_times(const std::string& title, const char* unit, const std::function<double()>& raw,
                          const std::function<double()>& ours, double wanted) {
  compare_by(title, unit, raw, ours, [wanted](double x) { return x <= wanted ? "  reached" : "  MISSED"; });
}

} // namespace bench
