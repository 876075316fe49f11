// Replaces an If by the nodes of one of its branches.
#pragma once

#include "onnx/model.hpp"

namespace graft::passes {

/// Replaces an If by the nodes of one of its branches. The branch must have at least as many outputs as the If. Values
/// and nodes of the branch keep their names unless another value or node has the name.
void inline_branch(onnx::Node& node, const onnx::Graph& branch);

}  // namespace graft::passes
