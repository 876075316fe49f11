// The engine driver with this program's progress bar, messages, options and interruption.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "toolkit/engine_driver.hpp"

namespace graft::cli {

/// Shows with -v which driver runs and what TensorRT says.
[[nodiscard]] toolkit::DriverListener listener_of(const Console& console, Progress& progress);

/// TensorRT's own warnings; with -v they have been shown.
void warn_of(const Console& console, const std::vector<std::string>& warnings);

/// Runs a command of the engine driver. TensorRT's warnings appear on standard error when it succeeds, its errors in
/// the EngineError where that has no reason of its own; with -v every message appears at once.
[[nodiscard]] nlohmann::json ask_engine_driver(const Console& console, const std::vector<std::string>& arguments,
                                               const engine::Renamings& renamings = {});

}  // namespace graft::cli
