#include "commands.hpp"
#include "member.hpp"
#include "samples/shared/stop_signal.hpp"
#include "twin.hpp"

#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

std::vector<std::string> device_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 1; i <= count; ++i)
    names.push_back("pump-" + std::to_string(i));
  return names;
}

/// One reading of each device, all at the same time. Returns how many twins have answered.
std::size_t send_round(zlink::host& host, const std::vector<std::string>& devices, std::size_t round) {
  std::vector<zlink::task<summary>> answers;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const reading measured{20.0 + static_cast<double>(i) + static_cast<double>(round % 5) / 2};
    answers.push_back(host.spots()
                        .request_to_spot(devices[i], measured)
                        .instance_spot(twin::type) // a device that has no twin yet gets one, and it starts with this
                        .submit<summary>());
  }
  std::size_t answered = 0;
  std::string failed;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto outcome = zlink::sync_wait(zlink::as_result(std::move(answers[i])));
    if (outcome)
      ++answered;
    else
      failed += "; " + devices[i] + " " + zlink::to_string(outcome.error().kind());
  }
  std::cout << "round " << round << ": " << answered << " of " << devices.size() << " answered" << failed << std::endl;
  return answered;
}

/// What the twins know. One that is not there stays so: the question carries no marker.
void print_summaries(zlink::host& host, const std::vector<std::string>& devices) {
  std::printf("\n%-10s %-44s %8s %8s %8s %8s\n", "device", "node", "readings", "mean", "least", "most");
  for (const auto& device : devices) {
    auto asking = host.spots().request_to_spot(device, sum_up{}).submit<summary>();
    const auto known = zlink::sync_wait(zlink::as_result(std::move(asking)));
    if (known)
      std::printf("%-10s %-44s %8llu %8.2f %8.2f %8.2f\n", device.c_str(), known->node.c_str(),
                  static_cast<unsigned long long>(known->readings), known->mean, known->least, known->most);
    else
      std::printf("%-10s %s\n", device.c_str(), zlink::to_string(known.error()).c_str());
  }
  std::fflush(stdout);
}

} // namespace

int feed(const options& chosen) {
  const stop_signal stop; // before any thread
  client here{chosen};
  const auto devices = device_names(chosen.devices);
  bool all = true;
  for (std::size_t round = 1; chosen.rounds == 0 || round <= chosen.rounds; ++round) {
    all = send_round(here.host(), devices, round) == devices.size() && all;
    if (round == chosen.rounds || stop.await_for(1s))
      break;
  }
  print_summaries(here.host(), devices);
  return all ? 0 : 1;
}
