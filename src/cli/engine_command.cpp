// Prints the messages of TensorRT on the console.
#include "cli/engine_command.hpp"

#include <fmt/format.h>

#include <string_view>

#include "cli/interrupts.hpp"
#include "cli/watch.hpp"

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

nlohmann::json ask_engine_driver(const Console& console, const std::vector<std::string>& arguments,
                                 const engine::Renamings& renamings) {
  const DeferInterrupts defer;
  std::vector<std::string> command = arguments;
  if (console.verbose && arguments.front() != "probe") command.emplace_back("--verbose");
  Progress progress(console);
  engine::EngineAnswer answer =
      toolkit::ask_engine_driver(command, renamings, log_of(console, progress), watch_of(progress));
  progress.clear();
  warn_of(console, answer.warnings);
  return std::move(answer.result);
}

}  // namespace graft::cli
