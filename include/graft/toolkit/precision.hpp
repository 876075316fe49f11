// The types to which a model can be quantized.
#pragma once

#include <cstdint>

namespace graft::toolkit {

enum class Precision : std::uint8_t {
  f16,
  bf16,
  int8,  ///< i8 with scales.
  f8,    ///< f8e4m3fn with scales; TensorRT supports it on devices of compute capability 8.9 and later.
};

}  // namespace graft::toolkit
