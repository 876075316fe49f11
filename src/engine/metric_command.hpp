// How good a model is, as a command of the user's says it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "onnx/model.hpp"

namespace graft::engine {

struct MetricCommand {
  std::string text;                                                     ///< As the user wrote it.
  std::string option;                                                   ///< How messages call it: "--metric".
  std::function<std::string(const std::filesystem::path&)> with_model;  ///< What the shell runs for a model's file.
  std::function<void(std::string_view line)> on_error;                  ///< Each line of its standard error.
  std::function<bool()> should_stop;                                    ///< As in ProcessCallbacks.
};

/// Writes the model to a temporary file, runs the command and reads the number in the last line of its standard output
/// that is not blank. Throws Error, quoting the command and the end of its standard error, where it fails or prints no
/// finite number.
[[nodiscard]] double measure(const MetricCommand& command, const onnx::Model& model);

}  // namespace graft::engine
