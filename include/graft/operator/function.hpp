// Helpers to write the ONNX function of an operator.
#pragma once

#include <string>
#include <string_view>

#include "graft/operator/operator.hpp"

namespace graft {

/// Returns the ONNX function of an operator with one input x and one output y. `maths` contains the lines that compute
/// `y32` from `x32` in f32. The function casts floating-point inputs to f32 and the result back, so that one function
/// called `name` serves all floating-point types. For i8 and f8e4m3fn, functions called `name`_i8 and `name`_f8
/// dequantize x with the attribute x_scale and quantize y with y_scale; `name`_f8 needs a model in opset 19 or later.
[[nodiscard]] Function function_in_f32(std::string_view name, DType dtype, std::string_view maths);

}  // namespace graft
