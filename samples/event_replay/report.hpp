// What the replay prints, and the verdict.
#pragma once

#include "cluster.hpp"
#include "package_log.hpp"
#include "replay.hpp"

/// Lines that could not be read.
void print_malformed(const package_log& log);
/// Spots and messages by node, rate, slowest.
void print_table(const replay_result& replayed, const histories& spots, const cluster& nodes);
/// Compares every Spot with a plain fold over the file, prints what differs. True: nothing differs, nothing failed.
bool print_verdict(const package_log& log, const replay_result& replayed, const histories& spots);
