// Which operators of ONNX may compute in f16 and bf16, by ONNX's own schemas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace graft {

/// The same letter stands for the same type; '.' for a port that is no f16 or bf16.
struct LowPrecisionSupport {
  std::string_view name;
  std::string_view inputs;  ///< The last one counts for all that follow.
  std::string_view outputs;
  std::int64_t f16_since = 0;  ///< The operator set from which on it is allowed; 0: in none.
  std::int64_t bf16_since = 0;

  [[nodiscard]] bool takes_input(std::size_t index) const;
  [[nodiscard]] bool gives_output(std::size_t index) const;
};

/// Null for an operator of ai.onnx that takes neither type.
[[nodiscard]] const LowPrecisionSupport* find_narrow_form(std::string_view op_type);

}  // namespace graft
