// What the program does. Each returns the exit code.
#pragma once

#include "arena.hpp"
#include "options.hpp"

/// Three nodes, matches that go on, and deploys: everything below as child processes of this one.
int show(const options& chosen);
/// A node that holds matches, until SIGTERM or SIGINT.
int serve(const arena& where, const options& chosen);
/// Opens the matches and seats their players.
int open_matches(const arena& where, const options& chosen);
/// Plays in them until SIGTERM or SIGINT, then reports.
int play(const arena& where, const options& chosen);
/// What the nodes say about themselves.
int nodes(const arena& where);
/// A node hands over all it has.
int drain(const arena& where, const options& chosen);
