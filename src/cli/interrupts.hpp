// Ctrl-C and SIGTERM: end at once, or, while files are being made, as soon as those are taken away again.
#pragma once

#include "graft/toolkit/progress.hpp"

namespace graft::cli {

/// After this, SIGINT and SIGTERM end the program with exit code 128 + signal, and SIGXFSZ is ignored.
void install_interrupt_handlers();

/// While one exists a signal is only remembered. The last one to go ends the program if there was one; objects that
/// hold temporary files are made after it, so that they are destroyed first.
class DeferInterrupts {
 public:
  DeferInterrupts();
  ~DeferInterrupts();
  DeferInterrupts(const DeferInterrupts&) = delete;
  DeferInterrupts& operator=(const DeferInterrupts&) = delete;
};

[[nodiscard]] bool interrupted();

/// The token that a deferred signal cancels, for work of the toolkit.
[[nodiscard]] toolkit::CancelToken interruption();

}  // namespace graft::cli
