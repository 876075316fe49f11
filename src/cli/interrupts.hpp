// Ctrl-C and SIGTERM: end at once, or, while files are being made, as soon as those are taken away again.
#pragma once

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

}  // namespace graft::cli
