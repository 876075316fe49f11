// All bodies that the functions of an operator can have.
#pragma once

#include <map>
#include <string>

#include "graft/operator.hpp"

namespace graft::onnx {

/// N,C,H,W, where a body depends on the rank.
inline constexpr int usual_rank = 4;

/// By the names of the functions: one for each combination of what an attribute chooses between, of the types of the
/// inputs, and of their number, of variadic ones two. Other attributes have their defaults.
[[nodiscard]] std::map<std::string, std::string> function_bodies(const OperatorType& type);

/// Throws Error, as make_function does, where one of them or a native form cannot be read or ONNX's schemas refuse it
/// in an operator set from 17 on, where its types are wrong in one of the rows of types that the operator has, and
/// where two bodies that differ in more than spaces and comments have one name.
void check_bodies(const OperatorType& type);

}  // namespace graft::onnx
