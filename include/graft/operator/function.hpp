// Helpers to write the ONNX function of an operator.
#pragma once

#include <string>
#include <string_view>

#include "graft/operator/operator.hpp"

namespace graft {

/// Returns the ONNX function of an operator with one input x and one output y. `maths` has the lines that compute `y32`
/// from `x32` in f32. Floating-point types are cast to f32 and back, so one function called `name` serves all of them.
/// i8 and f8e4m3fn are dequantized and quantized with the attributes x_scale and y_scale, in functions called `name`_i8
/// and `name`_f8; `name`_f8 needs a model in opset 19 or later.
[[nodiscard]] Function function_in_f32(std::string_view name, DType dtype, std::string_view maths);

}  // namespace graft
