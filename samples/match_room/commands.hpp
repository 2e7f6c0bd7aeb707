// What the program does. Each returns the exit code.
#pragma once

#include "arena.hpp"
#include "options.hpp"

#include <functional>

/// Three nodes, matches that go on, and deploys: everything below as child processes of this one.
int show(const options& chosen);
/// A node that holds matches, until SIGTERM or SIGINT.
int serve(const arena& where, const options& chosen);
/// Opens the matches and seats their players.
int open_matches(const arena& where, const options& chosen);
/// Plays in them until SIGTERM or SIGINT, then reports. `begun` is called when it is about to.
int play(const arena& where, const options& chosen, const std::function<void()>& begun = [] {});
/// What the nodes say about themselves.
int nodes(const arena& where);
/// A node hands over all it has.
int drain(const arena& where, const options& chosen);
