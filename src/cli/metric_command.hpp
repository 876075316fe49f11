// graft quantize --metric: measures the quality of a model with a command of the user.
#pragma once

#include <filesystem>
#include <string>

#include "cli/console.hpp"
#include "graft/toolkit/quantize.hpp"

namespace graft::cli {

/// Returns the command for the shell with the model's path in place of every {}, or at the end if there is no {}. A
/// path without characters that a shell interprets is not quoted, so that {} may also be inside quotes.
[[nodiscard]] std::string with_model(const std::string& command, const std::filesystem::path& model);

/// Returns a function that measures a model with the command. With -v the command's standard error is printed. Ctrl-C
/// also ends the command.
[[nodiscard]] toolkit::Metric metric_of(const Console& console, const std::string& command);

}  // namespace graft::cli
