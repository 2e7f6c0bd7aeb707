// What the program does. Each returns the exit code.
#pragma once

#include "options.hpp"

/// A node that holds twins, until SIGTERM or SIGINT.
int serve(const options& chosen);
/// Readings in, summaries out.
int feed(const options& chosen);
/// Nodes, whom they reach, and who owns which twin.
int show(const options& chosen);
/// Twins of dead nodes are given up.
int release(const options& chosen);
