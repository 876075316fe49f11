// Element types of tensors, as ONNX, TensorRT and the kernels share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace graft {

enum class DType : std::uint8_t { f32, f16, bf16, i8, u8, i32, i64, boolean, f8e4m3fn };

/// Returns the size of an element in bytes; a boolean takes one byte.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::i64: return 8;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
    case DType::f8e4m3fn: return 1;
  }
  return 0;
}

/// Returns whether the type is f32, f16 or bf16: real numbers without a scale.
[[nodiscard]] constexpr bool is_floating_point(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Returns whether the type stores scaled values: real value = scale * stored value. The port declares the scale, see
/// Port::scale.
[[nodiscard]] constexpr bool is_quantized(DType dtype) { return dtype == DType::i8 || dtype == DType::f8e4m3fn; }

/// Returns "f32", "f16", "bf16", "i8", "u8", "i32", "i64", "bool" or "f8e4m3fn".
[[nodiscard]] std::string_view to_string(DType dtype);

/// Parses the result of to_string; returns nothing for any other text.
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view text);

}  // namespace graft
