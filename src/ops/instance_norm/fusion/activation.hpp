// Fuses the activation after an instance normalization into it.
#pragma once

#include "onnx/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes::instance_norm {

/// Replaces InstanceNormalization or InstanceNorm -> Relu, LeakyRelu or LeakyReLU with InstanceNorm(activation). A
/// Transpose between the two nodes moves after the InstanceNorm.
void fuse_activations(Rewriter& rewriter, onnx::Graph& graph);

}  // namespace graft::passes::instance_norm
