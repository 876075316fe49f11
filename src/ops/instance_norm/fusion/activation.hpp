// The activation after an instance normalization becomes part of it.
#pragma once

#include "graph/model.hpp"
#include "passes/rewriter.hpp"

namespace graft::instance_norm {

/// Relu, LeakyRelu and LeakyReLU after InstanceNormalization or InstanceNorm become its attribute.
void fuse_activations(Rewriter& rewriter, Graph& graph);

}  // namespace graft::instance_norm
