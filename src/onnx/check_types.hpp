// Checks what the other rules do not look at: the element types of the inputs of nodes, against the schemas of ONNX,
// and whether the model has outputs.
#pragma once

#include "onnx/model.hpp"

namespace graft::onnx {

/// Throws Error for a model without outputs, which TensorRT does not build, and, naming file, node, inputs and types,
/// for the first node of ai.onnx, in the graph or in a sub-graph, whose inputs have types that its schema does not
/// allow. The types are inferred in a copy; an input of unknown type is allowed. Before opset 13, only inputs that have
/// to be of one type are checked. The call costs one shape inference.
void check_types_and_outputs(const Model& model);

}  // namespace graft::onnx
