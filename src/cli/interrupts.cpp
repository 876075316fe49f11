// Signal handlers that touch nothing but two atomic integers.
#include "cli/interrupts.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace graft::cli {
namespace {

std::atomic<int> depth{0};
std::atomic<int> pending{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  if (depth.load() == 0) ::_exit(128 + number);
  pending.store(number);
}

}  // namespace

void install_interrupt_handlers() {
  struct ::sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  (void)::sigaction(SIGINT, &action, nullptr);
  (void)::sigaction(SIGTERM, &action, nullptr);
  // A file-size limit then is an error of the write, like a full disk, and not the end of the program.
  (void)std::signal(SIGXFSZ, SIG_IGN);
}

DeferInterrupts::DeferInterrupts() { ++depth; }

DeferInterrupts::~DeferInterrupts() {
  if (--depth == 0 && interrupted()) ::_exit(128 + pending.load());
}

bool interrupted() { return pending.load() != 0; }

}  // namespace graft::cli
