// The nodes of one branch in the place of an If.
#pragma once

#include "onnx/model.hpp"

namespace graft::passes {

/// Replaces an If by the nodes of one of its branches, which has as many outputs as the If at least. Values and
/// nodes of the branch keep their names unless another one has the name.
void inline_branch(onnx::Node& node, const onnx::Graph& branch);

}  // namespace graft::passes
