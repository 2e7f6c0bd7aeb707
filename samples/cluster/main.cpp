// A node of a cluster of machines, and the tools to see what it does.
#include "commands.hpp"
#include "options.hpp"

#include <zlink/error.hpp>

#include <exception>
#include <iostream>

namespace {

int run(const options& chosen) {
  switch (chosen.what) {
    case command::serve: return serve(chosen);
    case command::feed: return feed(chosen);
    case command::show: return show(chosen);
    case command::release: return release(chosen);
  }
  return 2;
}

} // namespace

int main(int argc, char** argv) {
  const auto parsed = parse_options(argc, argv);
  const auto* chosen = std::get_if<options>(&parsed);
  if (chosen == nullptr)
    return std::get<int>(parsed);
  try {
    return run(*chosen);
  } catch (const zlink::configuration_error& mistakes) {
    std::cerr << "cluster: " << mistakes.what() << '\n';
    return 2;
  } catch (const std::exception& failure) {
    std::cerr << "cluster: " << failure.what() << '\n';
    return 1;
  }
}
