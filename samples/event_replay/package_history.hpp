// One line of the package log as an event, and what a sequence of such events amounts to. Spots and the sequential fold
// that checks them share this file, so that nothing but the way of the messages can make them differ.
#pragma once

#include <zlink/zlink.hpp>

#include <cstdint>
#include <string>

/// A line that names a package, without the package's name.
struct package_event {
  std::uint64_t line = 0; ///< in the log, the first being 1
  std::string when;       ///< "2025-06-24 14:36:25"
  std::string action;     ///< "install", "upgrade", "remove" ..., or "status"
  std::string status;     ///< what a status line says: "unpacked", "installed" ...
  std::string version;    ///< the one that a status line names, else the one that the action leads to
};

/// Everything the log has said of one package so far.
struct package_history {
  std::uint64_t lines = 0;
  std::uint64_t installs = 0;
  std::uint64_t upgrades = 0;
  std::uint64_t removals = 0;
  std::string status;
  std::string version;
  std::string first_seen;
  std::string last_seen;
  /// Depends on every field of every event and on their order: one that was lost, doubled or overtaken shows.
  std::uint64_t fingerprint = 14695981039346656037ULL;

  void apply(const package_event& event);
  friend bool operator==(const package_history&, const package_history&) = default;
};

ZLINK_PACKET(package_event, "packages.event", line, when, action, status, version)
ZLINK_PACKET(package_history, "packages.history", lines, installs, upgrades, removals, status, version, first_seen,
             last_seen, fingerprint)
