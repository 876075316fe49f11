// Which calls of functions are operators.
#pragma once

#include "onnx/model.hpp"

namespace graft::onnx {

/// Whether a call of such a function is no operator, and may give way to the body that the file has: for
/// InlineOptions::which. What stands for an operator, Graft's or of a library of somebody's own, is left as it is.
[[nodiscard]] bool is_plain_call(const FunctionKey& function);

}  // namespace graft::onnx
