// Finds nodes that a release of TensorRT runs as plugins alone, so that no build without plugins succeeds.
#pragma once

#include <string>

#include "inspect/tensorrt_release.hpp"
#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns a description of the first node that a release is not known to run without a plugin: an operator that has no
/// function in the model, an operator of ONNX that a plugin of Graft computes, or a node in the function of an
/// operator. Returns an empty string if a build without plugins runs every node, because TensorRT can build the
/// operators from their functions.
[[nodiscard]] std::string find_plugin_need(const onnx::Model& model, const Release& release);

}  // namespace graft::inspect
