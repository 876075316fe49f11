// Finds nodes that a release of TensorRT runs as plugins alone, so that no build without plugins succeeds.
#pragma once

#include <string>

#include "inspect/tensorrt_release.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns a description of the first node that a release is not known to run without a plugin. It is a custom operator
/// without a function in the model, or a standard operator that one of Graft's plugins computes; nodes inside functions
/// count too. Returns the error message if the functions of the model cannot be inlined, and an empty string if the
/// model can be built without plugins.
[[nodiscard]] std::string find_plugin_need(const onnx::Model& model, const Release& release);

}  // namespace graft::inspect
