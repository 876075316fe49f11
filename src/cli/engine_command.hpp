// Runs the engine driver with this program's progress bar, messages, options and interruption.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "toolkit/engine_driver.hpp"

namespace graft::cli {

/// Returns a function that prints the command of the driver and TensorRT's messages; empty without -v.
[[nodiscard]] toolkit::LogCallback log_of(const Console& console, Progress& progress);

/// Prints TensorRT's warnings, except with -v, where they have already been printed.
void warn_of(const Console& console, const std::vector<std::string>& warnings);

/// Runs a command of the engine driver. TensorRT's warnings are printed on standard error if the command succeeds; its
/// errors are in the EngineError if the driver has no other reason. With -v every message is printed immediately.
[[nodiscard]] nlohmann::json ask_engine_driver(const Console& console, const std::vector<std::string>& arguments,
                                               const engine::Renamings& renamings = {});

}  // namespace graft::cli
