// What an object says it has served, and what the evidence says it has.
#pragma once

#include <cstdint>
#include <string>

namespace zlink::test {

/// Of all turns of an id in order, whatever incarnation had them: one that was lost, doubled or overtaken shows.
struct tally {
  std::uint64_t turns = 0;
  std::uint64_t fingerprint = 14695981039346656037ULL;

  void take(const std::string& sender, std::uint64_t number) {
    ++turns;
    const auto step = [this](unsigned char byte) { fingerprint = (fingerprint ^ byte) * 1099511628211ULL; };
    for (const char c : sender + ' ' + std::to_string(number) + '\n')
      step(static_cast<unsigned char>(c));
  }
  friend bool operator==(const tally&, const tally&) = default;
};

/// "TURNS:FINGERPRINT".
inline std::string to_string(const tally& one) { return std::to_string(one.turns) + ':' + std::to_string(one.fingerprint); }

} // namespace zlink::test
