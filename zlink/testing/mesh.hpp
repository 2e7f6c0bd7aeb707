// Own Spots under test: several hosts on one thread, with a clock, a network and stores that the test owns, and a seed that
// replays a run.
#pragma once

#include "zlink/host.hpp"
#include "zlink/location_store.hpp"
#include "zlink/task.hpp"
#include "zlink/testing/simulation.hpp"
#include "zlink/testing/store_faults.hpp"
#include "zlink/testing/task_end.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace zlink::testing {

/// Durations are virtual.
struct mesh_options {
  std::size_t hosts = 1; ///< at least 1
  /// Decides the order of everything; `ZLINK_TEST_SEED` in the environment overrides it.
  std::uint64_t seed = 1;
  /// A batch between two hosts takes from 0 up to this long.
  std::chrono::milliseconds max_link_delay{0};
  /// A store call takes up to this long there, and as long back.
  std::chrono::milliseconds max_store_delay{0};
  /// How long `run` and `run_until_idle` wait before they throw `stalled`.
  std::chrono::milliseconds patience = std::chrono::minutes{10};
  /// Changes the options of a host before it is made. What the fixture injects may be replaced, at one's own risk.
  std::function<void(std::size_t host, host_options& options)> adjust = nullptr;
};

/// Hosts 0 to n-1 of one process, all on the thread that made the mesh. Not thread-safe. Blocking waits inside handlers and
/// workers are not possible here; CAF actors spawned in `system()` take part, if they are neither detached nor blocking.
class mesh {
public:
  explicit mesh(std::size_t hosts);
  explicit mesh(mesh_options options);
  mesh(const mesh&) = delete;
  mesh& operator=(const mesh&) = delete;
  /// As `finish()`, but while an exception is on its way a complaint goes to stderr.
  ~mesh() noexcept(false);

  // -- life ------------------------------------------------------------------------------------------------------------

  /// Calls `registration(host&)`, or `registration(host&, std::size_t index)`, for every host, starts them all, and returns
  /// when each serves and knows all others. Throws what `host::start()` throws. Once.
  template <class F>
  void start(F registration) {
    if constexpr (std::is_invocable_v<F&, zlink::host&, std::size_t>)
      start_all(std::move(registration));
    else
      start_all(
        [registration = std::move(registration)](zlink::host& started, std::size_t) mutable { registration(started); });
  }
  /// Shuts all hosts down, destroys them and throws `std::logic_error` if something of them is left. After that only
  /// `seed()` and `trace_hash()` may be called. Any number of times.
  void finish();

  // -- driving ---------------------------------------------------------------------------------------------------------

  /// Drives everybody until `awaited` has ended; returns its value or throws what awaiting it throws. Time moves only while
  /// nothing can run. Throws `stalled` if the task cannot end, or not within the patience; it is left to itself then.
  template <class T>
  T run(task<T> awaited) {
    const std::string what = name_of(awaited);
    auto end = start_watched(std::move(awaited));
    drive([end] { return end->ended(); }, what);
    if (end->failure)
      std::rethrow_exception(end->failure);
    if constexpr (!std::is_void_v<T>)
      return std::move(*end->value);
  }
  /// Drives everybody until `done()`; throws `stalled` as `run` does.
  void run_until(const std::function<bool()>& done);
  /// Drives everybody until nothing can run and nothing is on its way; what waits for a timer stays.
  void run_until_idle();
  /// Lets so much time pass, with everything that happens meanwhile. Not negative.
  void advance(std::chrono::nanoseconds by);
  /// The clock of all machines jumps ahead while nothing runs, as after a machine slept. Not negative.
  void jump(std::chrono::nanoseconds by);
  /// Virtual time since the mesh was made.
  std::chrono::nanoseconds elapsed() const noexcept;

  // -- hosts -----------------------------------------------------------------------------------------------------------

  std::size_t size() const noexcept;
  /// Throws `std::out_of_range`.
  zlink::host& host(std::size_t index);
  /// The host where the Spot is. Throws `std::logic_error` if it is at none, or at several.
  std::size_t owner_of(std::string_view spot_id);
  /// All hosts share it; `configure()` is not needed.
  caf::actor_system& system() noexcept;
  /// What all hosts share, without the faults.
  const embedded_store& store() const noexcept;

  /// As SIGKILL: nothing of the host runs again, its peers lose their links, its lease expires by itself.
  void kill(std::size_t index);
  /// A new host in the place of one that was killed, registered as `start` did; returns when it serves.
  void restart(std::size_t index);
  /// As SIGSTOP: the host stands still, its links stay open.
  void freeze(std::size_t index);
  void thaw(std::size_t index);
  /// All threads that run handlers and callbacks of the host are busy until `free_handlers`; the layer's own go on.
  void occupy_handlers(std::size_t index);
  void free_handlers(std::size_t index);
  /// Sets the calendar of one host forward, or back.
  void shift_wall(std::size_t index, std::chrono::nanoseconds by);

  // -- network and stores ----------------------------------------------------------------------------------------------

  /// All links between the groups are lost, and no new ones come, until `heal()`.
  void partition(const std::vector<std::size_t>& some, const std::vector<std::size_t>& others);
  /// Nothing passes from one host to the other until `heal()`, and neither is told.
  void mute(std::size_t from, std::size_t to);
  /// The links between two hosts are lost once; new ones may be made at once.
  void lose_links(std::size_t a, std::size_t b);
  /// The host's store calls fail as unclear until `heal()`.
  void cut_store(std::size_t index);
  /// Ends every partition, mute and store cut.
  void heal();
  /// What shall go wrong with single store calls of that host.
  store_faults& faults(std::size_t index);

  // -- replay ----------------------------------------------------------------------------------------------------------

  std::uint64_t seed() const noexcept;
  /// Equal for runs that were equal so far, step by step.
  std::uint64_t trace_hash() const noexcept;

private:
  struct machine;
  struct state;

  template <class T>
  static std::string name_of(const task<T>& awaited) {
    if (const auto& operation = awaited.operation())
      return std::string{operation->verb} + (operation->subject.empty() ? "" : " \"" + operation->subject + '"');
    return "a coroutine";
  }
  void start_all(std::function<void(zlink::host&, std::size_t)> registration);
  void drive(const std::function<bool()>& done, const std::string& what);
  [[noreturn]] void fail(const std::string& what) const;
  machine& at(std::size_t index) const;
  std::unique_ptr<machine> make_machine(std::size_t index);
  void bring_up(const std::vector<machine*>& started);
  bool all_connected() const;
  void shut_down(std::vector<std::string>& complaints);
  void destroy_hosts(std::vector<std::string>& complaints);

  std::unique_ptr<state> state_;
};

} // namespace zlink::testing
