// Checks whether the operators of a model, Graft's and ONNX's, accept the attributes and inputs of their nodes.
#pragma once

#include <map>
#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Throws Error naming file, node and attribute if a node of an operator, Graft's or a loaded library's, has wrong
/// attributes, a wrong number of inputs or wrong sizes. `input_shapes` replace the shapes that the file declares.
/// Faults of other nodes are ignored. The model is not changed.
void check_operators(const Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes = {});

/// Infers types and shapes before a conversion, starting from `input_shapes` if there are any. Throws Error naming
/// file, node and attribute if a node of ONNX, Graft or a loaded library contradicts itself or its inputs, because no
/// pass can fix such a node. Unknown operators are not checked, nor are the element types that check_types_and_outputs
/// checks.
void infer_and_check_nodes(Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes = {});

/// Throws the Errors of infer_and_check_nodes. The model is not changed.
void check_nodes(const Model& model);

/// Throws Error naming file and node for a call of an operator that no loaded library contains. Such a call has no
/// kernel, only the function in the file.
void check_has_kernels(const Model& model);

}  // namespace graft::onnx
