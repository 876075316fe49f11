// Distinguishes a process that hangs from one that computes for a long time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace graft::runtime {

/// Watches a child process during one wait for it. Runs have no time limit: a process counts as hanging only if it has
/// used no processor time for `limit_s` seconds. A process that waits for a disk or is stopped by a debugger does not
/// count as hanging.
class IdleWatch {
 public:
  IdleWatch(::pid_t process, int limit_s) : process_(process), limit_s_(limit_s) {}

  /// Returns whether the process hangs. Must be called about once per second. The class counts calls instead of reading
  /// the clock, because a sleeping laptop or a frozen container stops both processes.
  [[nodiscard]] bool is_hanging();

 private:
  ::pid_t process_;
  int limit_s_;
  int idle_s_ = 0;
  std::optional<std::uint64_t> used_;  ///< The processor time at the last call, in ticks.
};

}  // namespace graft::runtime
