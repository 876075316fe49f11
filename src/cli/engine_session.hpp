// The engine driver with this program's progress bar, messages and interruption.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.hpp"

namespace graft::cli {

/// Runs a command of the engine driver; its warnings and errors appear on standard error, everything with -v.
[[nodiscard]] nlohmann::json ask_engine_driver(const Console& console, const std::vector<std::string>& arguments);

/// Graft's own plugin library, beside the program as it is built or installed. `expected` is where it would be.
struct PluginLibrary {
  std::filesystem::path path;
  bool exists = false;
};
[[nodiscard]] PluginLibrary own_plugin_library();

/// "TensorRT-RTX 1.7.1.116", from the driver's account of itself.
[[nodiscard]] std::string tensorrt_text(const nlohmann::json& identity);

}  // namespace graft::cli
