// Prints the messages of TensorRT.
#pragma once

#include <string>
#include <vector>

#include "cli/console.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::cli {

/// Returns a function that prints the command of the driver and TensorRT's messages. It removes the bar of `progress`
/// before it prints. Returns an empty function without -v.
[[nodiscard]] toolkit::LogCallback log_of(const Console& console, Progress& progress);

/// Prints TensorRT's warnings, except with -v, where they have already been printed.
void warn_of(const Console& console, const std::vector<std::string>& warnings);

}  // namespace graft::cli
