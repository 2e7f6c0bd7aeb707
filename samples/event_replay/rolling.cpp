#include "rolling.hpp"

#include "cluster.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds share_lasts = 1s;

} // namespace

rolling_pace::rolling_pace(std::size_t lines, std::size_t nodes)
  : lines_(lines), shares_(nodes + 2), replaced_(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {
  if (replaced_ < 0)
    throw std::runtime_error{"no eventfd: the system has no room for it"};
}

rolling_pace::~rolling_pace() { ::close(replaced_); }

void rolling_pace::await_line(std::size_t index, cluster& nodes) {
  while (share_ + 1 < shares_ && index >= first_of(share_ + 1)) {
    if (share_ > 0) {
      await_node();
      nodes.await_all();
    }
    if (++share_ + 1 == shares_)
      break;
    begun_ = clock_.now();
    ::kill(::getppid(), share_has_begun);
  }
  if (share_ == 0 || share_ + 1 == shares_)
    return;
  const auto done = index - first_of(share_);
  const auto all = first_of(share_ + 1) - first_of(share_);
  const auto early = begun_ + share_lasts * static_cast<std::int64_t>(done) / static_cast<std::int64_t>(all) - clock_.now();
  if (const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(early); wait > 0ms)
    ::poll(nullptr, 0, static_cast<int>(wait.count()));
}

void rolling_pace::await_node() const {
  std::uint64_t one = 0;
  if (::read(replaced_, &one, sizeof one) != sizeof one)
    throw std::runtime_error{"nobody says whether the node is replaced"};
}

void rolling_pace::node_replaced() const {
  const std::uint64_t one = 1;
  if (::write(replaced_, &one, sizeof one) != sizeof one)
    throw std::runtime_error{"nobody can be told that the node is replaced"};
}
