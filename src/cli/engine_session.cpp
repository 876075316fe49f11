// Joins the engine driver to the console.
#include "cli/engine_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "cli/interrupts.hpp"
#include "engine/driver.hpp"
#include "graft/error.hpp"

namespace graft::cli {

namespace {

/// TensorRT's own messages, kept until it is known what became of the command.
struct Messages {
  std::vector<std::string> warnings;
  std::vector<std::string> errors;
};

std::string renamed(std::string text, const Renamings& renamings) {
  for (const auto& [from, to] : renamings) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

/// The builder says why it failed in messages alone; everywhere else the reason is in the error already.
EngineError completed(const EngineError& error, const Messages& messages, const Renamings& renamings) {
  std::string message = error.what();
  constexpr std::size_t most = 5;
  if (error.event().value("kind", "") == "build") {
    const std::size_t first = messages.errors.size() > most ? messages.errors.size() - most : 0;
    for (std::size_t i = first; i < messages.errors.size(); ++i) message += "\nTensorRT: " + messages.errors[i];
  }
  return {error.kind(), renamed(message, renamings), renamed(error.next_step(), renamings), error.event()};
}

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
  Messages messages;
  const auto on_log = [&](std::string_view severity, std::string_view message) {
    if (severity == "warning") messages.warnings.emplace_back(message);
    if (severity == "error" || severity == "internal_error") messages.errors.emplace_back(message);
    if (!console.verbose) return;
    progress.clear();
    console.detail(fmt::format("TensorRT {}: {}", severity, message));
  };
  try {
    nlohmann::json result =
        run_driver(driver, command,
                   {.on_progress = [&](std::string_view phase, double fraction) { progress.update(phase, fraction); },
                    .on_log = on_log,
                    .should_stop = interrupted});
    progress.clear();
    if (!console.verbose) {
      const bool has_defaults = loads_own_plugins_alone(arguments);
      for (const std::string& warning : messages.warnings) {
        if (has_defaults && warning.find("not found in plugin node!") != std::string::npos) continue;
        console.warn("TensorRT: " + warning);
      }
    }
    return result;
  } catch (const EngineError& error) {
    throw with_options_of_this_program(completed(error, messages, renamings));
  }
}

EngineError with_options_of_this_program(const EngineError& error) {
  return completed(error, {}, {{"--plugin-library", "--plugin-lib"}});
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

bool has_own_plugin_library(const std::vector<std::string>& libraries) {
  const std::filesystem::path own = own_plugin_library().path.filename();
  return std::any_of(libraries.begin(), libraries.end(),
                     [&](const std::string& library) { return std::filesystem::path(library).filename() == own; });
}

PluginLibrary own_stand_ins() {
  PluginLibrary library = own_plugin_library();
  library.path.replace_filename("libgraft_stand_ins.so");
  std::error_code ignored;
  library.exists = std::filesystem::is_regular_file(library.path, ignored);
  return library;
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
  const std::string flavor = identity.value("flavor", "");
  const char* name = flavor == "rtx" ? "TensorRT-RTX" : flavor == "lean" ? "TensorRT lean runtime" : "TensorRT";
  return fmt::format("{} {}", name, identity.value("version", ""));
}

}  // namespace graft::cli
