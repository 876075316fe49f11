// Joins the engine driver to the console.
#include "cli/engine_command.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cli/interrupts.hpp"
#include "engine/plugin_library.hpp"
#include "graft/error.hpp"

namespace graft::cli {

namespace {

/// Whether the creators in question are Graft's alone, which have a default for what a node leaves out.
bool loads_own_plugins_alone(const std::vector<std::string>& arguments) {
  const std::string own = own_plugin_library().path.string();
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == "--plugin-library" && arguments[i + 1] != own) return false;
  }
  return true;
}

}  // namespace

nlohmann::json ask_engine_driver(const Console& console, const std::vector<std::string>& arguments,
                                 const Renamings& renamings) {
  const DeferInterrupts defer;
  const EngineDriver driver = find_engine_driver();
  console.detail(fmt::format("engine driver: {} -m graft.engine", driver.python.string()));
  std::vector<std::string> command = arguments;
  if (console.verbose && arguments.front() != "probe") command.emplace_back("--verbose");
  Progress progress(console);
  const auto on_log = [&](std::string_view severity, std::string_view message) {
    if (!console.verbose) return;
    progress.clear();
    console.detail(fmt::format("TensorRT {}: {}", severity, message));
  };
  try {
    EngineAnswer answer = graft::ask_engine_driver(
        driver, command,
        {.on_progress = [&](std::string_view phase, double fraction) { progress.update(phase, fraction); },
         .on_log = on_log,
         .should_stop = interrupted},
        renamings);
    progress.clear();
    if (!console.verbose) {
      const bool has_defaults = loads_own_plugins_alone(arguments);
      for (const std::string& warning : answer.warnings) {
        if (has_defaults && warning.find("not found in plugin node!") != std::string::npos) continue;
        console.warn("TensorRT: " + warning);
      }
    }
    return std::move(answer.result);
  } catch (const EngineError& error) {
    throw with_options_of_this_program(error);
  }
}

EngineError with_options_of_this_program(const EngineError& error) {
  return renamed(error, {{"--plugin-library", "--plugin-lib"}});
}

void check_libraries(const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(library, ignored)) continue;
    const bool is_folder = std::filesystem::is_directory(library, ignored);
    const char* why = is_folder                                   ? "it is a folder"
                      : std::filesystem::exists(library, ignored) ? "it is no regular file"
                                                                  : "no such file";
    throw EngineError(Error::Kind::bad_input, fmt::format("--plugin-lib {}: {}", library, why),
                      is_folder ? "Give the .so file in it; each library by itself"
                                : fmt::format("Graft's own is {}", own_plugin_library().path.string()),
                      {{"kind", "plugin_library"}, {"library", library}, {"cause", is_folder ? "folder" : "no_file"}});
  }
}

std::string tensorrt_text(const nlohmann::json& identity) {
  return graft::tensorrt_text(identity.value("flavor", ""), identity.value("version", ""));
}

}  // namespace graft::cli
