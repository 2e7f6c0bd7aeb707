#include "commands.hpp"
#include "match_packets.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>

int nodes(const arena& where) {
  visitor here{where};
  std::printf("%-12s %8s  %-12s %8s %8s\n", "node", "version", "state", "matches", "players");
  for (const auto& [rid, report] : here.look_around())
    if (report)
      std::printf("%-12s %8llu  %-12s %8llu %8llu%s\n", name_of(rid).c_str(), static_cast<unsigned long long>(report->version),
                  report->state.c_str(), static_cast<unsigned long long>(report->matches),
                  static_cast<unsigned long long>(report->players), report->safe_to_stop ? "  safe to stop" : "");
    else
      std::printf("%-12s does not answer\n", name_of(rid).c_str());
  std::fflush(stdout);
  return 0;
}

int drain(const arena& where, const options& chosen) {
  visitor here{where};
  const leave_node order{chosen.to_version, chosen.seconds};
  auto asking = here.host().nodes().request_to_node(arena::mesh, here.find(chosen.name), order);
  asking.timeout(std::chrono::seconds{chosen.seconds + 10});
  const auto end = zlink::sync_wait(asking.submit<node_left>());
  std::cout << chosen.name + (end.relocated ? ": has handed over all it had\n" : ": stays, " + end.reason + '\n') << std::flush;
  return end.relocated ? 0 : 1;
}
