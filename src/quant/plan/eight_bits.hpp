// The two 8-bit types to which networks are quantized, both with a scale and with 0 as the zero point.
#pragma once

#include <cstdint>
#include <string_view>

#include "graft/operator/dtype.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::quant {

enum class EightBits : std::uint8_t {
  int8,  ///< The integers from -127 to 127, with steps of equal size.
  f8,    ///< The type f8e4m3fn, with steps of 1/16 to 1/8 of the value, for values from 2^-6 to 448.
};
/// Returns "int8" or "f8".
[[nodiscard]] std::string_view to_string(EightBits type);
[[nodiscard]] DType dtype_of(EightBits type);
[[nodiscard]] onnx::ElementType element_type_of(EightBits type);

/// Returns the largest number that the type stores: 127 for int8 (-128 is not used, as in TensorRT), 448 for f8.
[[nodiscard]] double largest_of(EightBits type);
/// Returns the nearest number that the type can store, ties to even. Numbers beyond the range become the largest number
/// of the same sign.
[[nodiscard]] double round_to(EightBits type, double number);

}  // namespace graft::quant
