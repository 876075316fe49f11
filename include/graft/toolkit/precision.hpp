// The types that are narrower than f32.
#pragma once

#include <cstdint>

namespace graft::toolkit {

enum class Precision : std::uint8_t { f16, bf16, int8 };

}  // namespace graft::toolkit
