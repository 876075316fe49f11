// The engine driver with this program's progress bar, messages and interruption.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/console.hpp"
#include "engine/driver.hpp"

namespace graft::cli {

/// Texts to put in the place of others in messages: the user's file for a temporary one.
using Renamings = std::vector<std::pair<std::string, std::string>>;

/// Runs a command of the engine driver. TensorRT's warnings appear on standard error when it succeeds, its errors in
/// the EngineError where that has no reason of its own; with -v every message appears at once.
[[nodiscard]] nlohmann::json ask_engine_driver(const Console& console, const std::vector<std::string>& arguments,
                                               const Renamings& renamings = {});

/// The driver's error, with the names that this program gives to its options.
[[nodiscard]] EngineError with_options_of_this_program(const EngineError& error);

/// Graft's own plugin library, beside the program as it is built or installed. `expected` is where it would be.
struct PluginLibrary {
  std::filesystem::path path;
  bool exists = false;
};
[[nodiscard]] PluginLibrary own_plugin_library();
/// Whether it, or a copy of it, is among libraries that were named.
[[nodiscard]] bool has_own_plugin_library(const std::vector<std::string>& libraries);
/// libgraft_stand_ins.so, beside it.
[[nodiscard]] PluginLibrary own_stand_ins();

/// Throws Error for a --plugin-lib that is not there.
void check_libraries(const std::vector<std::string>& libraries);

/// "TensorRT-RTX 1.7.1.116", from the driver's account of itself.
[[nodiscard]] std::string tensorrt_text(const nlohmann::json& identity);

}  // namespace graft::cli
