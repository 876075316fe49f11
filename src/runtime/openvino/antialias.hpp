// Antialiased Resize, which OpenVINO 2026.4 computes otherwise than ONNX (by as much as the image itself).
#pragma once

#include "onnx/model.hpp"

namespace graft::runtime {

/// Where sizes are fixed, each becomes products with matrices. Where they are open it stays OpenVINO's.
void compute_antialias(onnx::Model& model);

}  // namespace graft::runtime
