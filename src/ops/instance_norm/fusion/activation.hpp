// The activation after an instance normalization becomes part of it.
#pragma once

#include "onnx/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes::instance_norm {

/// Relu, LeakyRelu and LeakyReLU after InstanceNormalization or InstanceNorm become its attribute.
void fuse_activations(Rewriter& rewriter, onnx::Graph& graph);

}  // namespace graft::passes::instance_norm
