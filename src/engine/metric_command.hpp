// Measures the quality of a model with a command of the user.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::engine {

struct MetricCommand {
  std::string text;    ///< The command as the user wrote it.
  std::string option;  ///< The name of the option for messages: "--metric".
  /// Returns the command that the shell runs for a model file.
  std::function<std::string(const std::filesystem::path&)> with_model;
  std::function<void(std::string_view line)> on_error;  ///< Receives each line of the command's standard error.
  std::function<bool()> should_stop;                    ///< Stops the command: see ProcessCallbacks.
};

/// Returns the quality of a model. Writes the model to a temporary file, runs the command and reads the number in the
/// last line of its standard output that is not blank. Throws Error, quoting the command and the end of its standard
/// error, if the command fails or prints no finite number.
[[nodiscard]] double measure(const MetricCommand& command, const onnx::Model& model);

}  // namespace graft::engine
