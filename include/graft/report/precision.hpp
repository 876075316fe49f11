// The types to which a model can be quantized.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace graft::report {

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

/// Returns the precision of a name: "f16" or "fp16", "bf16", "int8", "f8" or "fp8". Returns nothing for other text.
[[nodiscard]] inline std::optional<Precision> find_precision(std::string_view name) {
  if (name == "f16" || name == "fp16") return Precision::f16;
  if (name == "bf16") return Precision::bf16;
  if (name == "int8") return Precision::int8;
  return name == "f8" || name == "fp8" ? std::optional(Precision::f8) : std::nullopt;
}

}  // namespace graft::report
