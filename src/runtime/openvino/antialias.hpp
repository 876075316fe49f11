// Rewrites antialiased Resize nodes, for which OpenVINO 2026.4 differs from ONNX by as much as the image itself.
#pragma once

#include "onnx/model.hpp"

namespace graft::runtime {

/// Antialiased Resize(x) becomes MatMul(W0, ... MatMul(x, W1)), with one constant matrix per resized axis, if the sizes
/// are fixed. A Resize with dynamic sizes is left to OpenVINO.
void compute_antialias(onnx::Model& model);

}  // namespace graft::runtime
