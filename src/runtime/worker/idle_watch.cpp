// Reads the processor time of a process from /proc/PID/stat (see proc(5)).
#include "runtime/worker/idle_watch.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <string>

namespace graft::runtime {
namespace {

struct Figures {
  char state = 0;
  std::uint64_t ticks = 0;
};

std::optional<Figures> read_figures(::pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t name_end = line.rfind(')');  // the process name may contain any character
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  Figures figures;
  fields >> figures.state;
  std::string skipped;
  constexpr int between_state_and_time = 10;
  for (int i = 0; i < between_state_and_time; ++i) fields >> skipped;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  figures.ticks = user + system;
  return figures;
}

}  // namespace

bool IdleWatch::is_hanging() {
  const std::optional<Figures> found = read_figures(process_);
  constexpr char waits_for_disk = 'D';
  constexpr char is_traced = 't';
  if (!found || found->state == waits_for_disk || found->state == is_traced || found->ticks != used_) {
    idle_s_ = 0;
  } else {
    ++idle_s_;
  }
  if (found) used_ = found->ticks;
  return idle_s_ >= limit_s_;
}

}  // namespace graft::runtime
