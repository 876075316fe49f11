// The signal handlers only use atomic variables and functions that are safe in a signal handler.
#include "cli/interrupts.hpp"

#include <unistd.h>

#include <atomic>
#include <cctype>
#include <csignal>
#include <string_view>

#include "graft/toolkit/files.hpp"

namespace graft::cli {
namespace {

std::atomic<int> depth{0};   // the number of objects that defer signals
std::atomic<int> strict{0};  // the number of these that defer signals without temporary files too
std::atomic<int> pending{0};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);
toolkit::CancelToken* token = nullptr;  // created before the handlers are installed, and never destroyed

void on_signal(int number) {
  const bool is_deferred = strict.load() != 0 || (depth.load() != 0 && toolkit::has_temporary_files());
  if (!is_deferred) ::_exit(128 + number);
  pending.store(number);
  token->cancel();
}

void write_error(std::string_view text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

/// Reports that a memory-mapped file was truncated while it was read, and ends the program.
void on_bus_error(int number, ::siginfo_t* info, void* /*context*/) {
  const char* path = toolkit::mapped_file_at(info->si_addr);
  if (path == nullptr) {
    (void)std::signal(number, SIG_DFL);  // when the handler returns, the access fails again and ends the program
    return;
  }
  write_error("error: ");
  for (const char* c = path; *c != '\0'; ++c)
    write_error(std::iscntrl(static_cast<unsigned char>(*c)) == 0 ? std::string_view(c, 1) : "?");
  write_error(
      ": the file was truncated while it was read, or its disk failed\nRun the command again while no other program "
      "writes the file\n");
  ::_exit(2);
}

}  // namespace

void install_interrupt_handlers() {
  static_cast<void>(interruption());
  struct ::sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  (void)::sigaction(SIGINT, &action, nullptr);
  (void)::sigaction(SIGTERM, &action, nullptr);
  struct ::sigaction bus_error {};
  bus_error.sa_sigaction = on_bus_error;
  ::sigemptyset(&bus_error.sa_mask);
  bus_error.sa_flags = SA_SIGINFO;
  (void)::sigaction(SIGBUS, &bus_error, nullptr);
  // With SIGXFSZ ignored, a file-size limit makes a write fail, like a full disk, instead of ending the program.
  (void)std::signal(SIGXFSZ, SIG_IGN);
}

DeferInterrupts::DeferInterrupts(bool only_with_temporary_files)
    : only_with_temporary_files_(only_with_temporary_files) {
  ++depth;
  if (!only_with_temporary_files_) ++strict;
}

DeferInterrupts::~DeferInterrupts() {
  if (!only_with_temporary_files_) --strict;
  if (--depth == 0 && interrupted()) ::_exit(128 + pending.load());
}

bool interrupted() { return pending.load() != 0; }

toolkit::CancelToken interruption() {
  if (token == nullptr) token = new toolkit::CancelToken;
  return *token;
}

}  // namespace graft::cli
