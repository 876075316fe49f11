// Helpers to write the ONNX function of an operator.
#pragma once

#include <string>
#include <string_view>

#include "graft/operator.hpp"

namespace graft {

/// Wraps `maths`, lines that make `y32` from `x32` in f32, for an operator with one input x and one output y.
/// Floating-point types are cast to f32 and back, so one function called `name` serves them all. i8 and
/// f8e4m3fn are dequantized and quantized with the attributes x_scale and y_scale, in functions of their own called
/// `name`_i8 and `name`_f8; the latter wants a model in operator set 19 or later.
[[nodiscard]] Function function_in_f32(std::string_view name, DType dtype, std::string_view maths);

}  // namespace graft
