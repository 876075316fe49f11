// Measures the quality of a model with a command of the user.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// A command that prints the quality of a model file.
struct MetricCommand {
  /// The command for the shell, in which each {} stands for the model's file. Without {}, the file follows the command.
  std::string text;
  std::function<void(std::string_view line)> on_error = {};  ///< Receives each line of the command's standard error.
  CancelToken cancel = {};                                   ///< Ends the command; the call then throws Cancelled.
};

/// Returns the quality of a model, for Int8Options::metric. Writes the model to a temporary file, runs the command and
/// reads the number in the last line of its standard output that is not blank. Throws Error, quoting the command and
/// the end of its standard error, if the command fails or prints no finite number; Cancelled.
[[nodiscard]] GRAFT_API double measure(const MetricCommand& command, const Model& model);

}  // namespace graft::toolkit
