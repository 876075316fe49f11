// Ctrl-C and SIGTERM end the program at once, or, while files are being written, after the temporary files are removed.
#pragma once

#include "graft/toolkit/progress.hpp"

namespace graft::cli {

/// Installs signal handlers: SIGINT and SIGTERM end the program with exit code 128 + signal, SIGBUS reports a truncated
/// file, and SIGXFSZ is ignored.
void install_interrupt_handlers();

/// Defers signals: while an object of this class exists, a signal is only recorded. The destructor of the last object
/// ends the program if a signal was recorded. Create objects that own temporary files after this object, so that they
/// are destroyed first.
class DeferInterrupts {
 public:
  /// If `only_with_temporary_files` is set, a signal ends the program at once unless a temporary file or folder exists.
  /// This suits work that takes long before it writes and can seldom be cancelled.
  explicit DeferInterrupts(bool only_with_temporary_files = false);
  ~DeferInterrupts();
  DeferInterrupts(const DeferInterrupts&) = delete;
  DeferInterrupts& operator=(const DeferInterrupts&) = delete;

 private:
  bool only_with_temporary_files_;
};

/// Returns whether a signal was recorded.
[[nodiscard]] bool interrupted();

/// Returns the token that a deferred signal cancels, for work of the toolkit.
[[nodiscard]] toolkit::CancelToken interruption();

}  // namespace graft::cli
