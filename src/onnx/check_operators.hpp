// Whether the operators of a model take what their nodes give them.
#pragma once

#include <map>
#include <string>

#include "onnx/model.hpp"

namespace graft::onnx {

/// Throws Error naming file, node and attribute where an operator, Graft's or one of a library of operators, is given
/// wrong attributes, numbers of inputs or sizes. `input_shapes` replace those that the file declares. What is wrong
/// with other nodes is not looked at. The model stays as it is.
void check_operators(const Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes = {});

/// Throws Error naming file and node where there is no kernel of an operator, only the function that the file has of
/// it: no library that is loaded has the operator.
void check_has_kernels(const Model& model);

}  // namespace graft::onnx
