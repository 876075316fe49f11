// The types that are narrower than f32.
#pragma once

#include <cstdint>

namespace graft::toolkit {

enum class Precision : std::uint8_t {
  f16,
  bf16,
  int8,  ///< With scales.
  f8,    ///< f8e4m3fn with scales; TensorRT has it on devices of compute capability 8.9 and later.
};

}  // namespace graft::toolkit
