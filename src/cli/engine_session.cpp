// Joins the engine driver to the console.
#include "cli/engine_session.hpp"

#include <fmt/format.h>

#include <system_error>

#include "cli/interrupts.hpp"
#include "engine/driver.hpp"

namespace graft::cli {

nlohmann::json ask_engine_driver(const Console& console, const std::vector<std::string>& arguments) {
  const DeferInterrupts defer;
  const EngineDriver driver = find_engine_driver();
  console.detail(fmt::format("engine driver: {} -m graft.engine", driver.python.string()));
  std::vector<std::string> command = arguments;
  if (console.verbose && arguments.front() != "probe") command.emplace_back("--verbose");
  Progress progress(console);
  const auto on_log = [&](std::string_view severity, std::string_view message) {
    progress.clear();
    if (severity == "warning" || severity == "error" || severity == "internal_error") {
      console.warn(fmt::format("TensorRT: {}", message));
    } else {
      console.detail(fmt::format("TensorRT {}: {}", severity, message));
    }
  };
  return run_driver(driver, command,
                    {.on_progress = [&](std::string_view phase, double fraction) { progress.update(phase, fraction); },
                     .on_log = on_log,
                     .should_stop = interrupted});
}

PluginLibrary own_plugin_library() {
  namespace fs = std::filesystem;
  const fs::path folder = executable_folder().parent_path();
  std::error_code ignored;
  for (const char* lib : {"lib", "lib/x86_64-linux-gnu", "lib64"}) {
    const fs::path candidate = folder / lib / "libgraft_plugins.so";
    if (fs::is_regular_file(candidate, ignored)) return {.path = candidate, .exists = true};
  }
  return {.path = folder / "lib" / "libgraft_plugins.so", .exists = false};
}

std::string tensorrt_text(const nlohmann::json& identity) {
  const std::string flavour = identity.value("flavour", "");
  const char* name = flavour == "rtx" ? "TensorRT-RTX" : flavour == "lean" ? "TensorRT lean runtime" : "TensorRT";
  return fmt::format("{} {}", name, identity.value("version", ""));
}

}  // namespace graft::cli
