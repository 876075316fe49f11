// Lists the bodies that the functions of an operator can have.
#pragma once

#include <map>
#include <string>

#include "graft/operator/operator.hpp"

namespace graft::onnx {

/// The rank (N,C,H,W) with which function_bodies() computes functions that depend on the rank of the first input.
inline constexpr int usual_rank = 4;

/// Returns the text of every function that the operator may have in a model, by the function's name. There is one for
/// each combination of the values of attributes with few values, the types of the inputs, and the number of inputs (at
/// most two variadic ones). Other attributes have their defaults.
[[nodiscard]] std::map<std::string, std::string> function_bodies(const OperatorType& type);

/// Throws Error if the function body or the native form (see make_native_form()) of an operator cannot be parsed, or is
/// refused by ONNX's schemas in an opset >= 17 (as make_function does). Also throws Error if its types are wrong for a
/// combination of types that the operator accepts, or if two bodies that differ in more than spaces and comments have
/// the same name.
void check_bodies(const OperatorType& type);

}  // namespace graft::onnx
