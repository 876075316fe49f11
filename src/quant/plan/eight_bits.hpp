// The two types of 8 bits that networks are quantized to, both with a scale and with 0 as their zero point.
#pragma once

#include <cstdint>
#include <string_view>

#include "graft/operator/dtype.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::quant {

enum class EightBits : std::uint8_t {
  int8,  ///< Steps of one size.
  f8,    ///< f8e4m3fn: steps of 1/16 to 1/8 of the number, from 2^-6 to 448.
};
/// Returns "int8" or "f8".
[[nodiscard]] std::string_view to_string(EightBits type);
[[nodiscard]] DType dtype_of(EightBits type);
[[nodiscard]] onnx::ElementType element_type_of(EightBits type);

/// Returns the largest number that is stored: 127 (-128 is not used, as in TensorRT) or 448.
[[nodiscard]] double largest_of(EightBits type);
/// Returns the nearest number that is stored, ties to even; larger numbers become the largest.
[[nodiscard]] double round_to(EightBits type, double number);

}  // namespace graft::quant
