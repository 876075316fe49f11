// The types to which a model can be quantized.
#pragma once

#include <cstdint>
#include <string_view>

namespace graft::toolkit {

enum class Precision : std::uint8_t {
  f16,
  bf16,
  int8,  ///< i8 with scales.
  f8,    ///< f8e4m3fn with scales; TensorRT supports it on devices of compute capability 8.9 and later.
};

[[nodiscard]] inline bool has_8_bits(Precision precision) {
  return precision == Precision::int8 || precision == Precision::f8;
}

/// Returns "f16", "bf16", "int8" or "f8".
[[nodiscard]] inline std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::f16: return "f16";
    case Precision::bf16: return "bf16";
    case Precision::int8: return "int8";
    case Precision::f8: return "f8";
  }
  return "";
}

}  // namespace graft::toolkit
