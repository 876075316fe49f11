// Prints each message when TensorRT writes it, or the warnings at the end.
#include "cli/engine_command.hpp"

#include <fmt/format.h>

#include <string_view>

namespace graft::cli {

toolkit::LogCallback log_of(const Console& console, Progress& progress) {
  if (!console.verbose) return {};
  return [&console, &progress](std::string_view severity, std::string_view message) {
    progress.clear();
    console.detail(severity == "command" ? fmt::format("engine driver: {}", message)
                                         : fmt::format("TensorRT {}: {}", severity, message));
  };
}

void warn_of(const Console& console, const std::vector<std::string>& warnings) {
  if (console.verbose) return;
  for (const std::string& warning : warnings) console.warn("TensorRT: " + warning);
}

}  // namespace graft::cli
