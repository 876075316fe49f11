// Tells a process that hangs from one that computes for long.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace graft::runtime {

/// Watches a child process during one wait for it. No run is too long: a process counts as hanging only when it has
/// used no processor time for `limit_s` seconds. A process that waits for a disk or is held by a debugger is left
/// alone.
class IdleWatch {
 public:
  IdleWatch(::pid_t process, int limit_s) : process_(process), limit_s_(limit_s) {}

  /// To be called about once a second. Calls are counted, not the clock: a laptop that sleeps and a container that is
  /// frozen stop the process and this one alike.
  [[nodiscard]] bool is_hanging();

 private:
  ::pid_t process_;
  int limit_s_;
  int idle_s_ = 0;
  std::optional<std::uint64_t> used_;  ///< Processor time at the last call, in ticks.
};

}  // namespace graft::runtime
