// Memory layouts of tensors, under TensorRT's names for them.
#pragma once

#include <cstdint>
#include <string_view>

namespace graft {

/// The order of the elements in memory of a tensor of logical shape N,C,spatial...
enum class Layout : std::uint8_t {
  linear,  ///< Row-major, no padding; any rank.
  hwc8,    ///< N,spatial,C with C padded to a multiple of 8 (TensorRT kHWC8); 16-bit types, f32 outside of TensorRT.
  chw32,   ///< N,ceil(C/32),spatial,32 (TensorRT kCHW32); i8.
};

/// Returns the number of channels that are contiguous in memory and padded together; 1 for linear.
[[nodiscard]] constexpr std::int64_t channels_per_vector(Layout layout) {
  switch (layout) {
    case Layout::hwc8: return 8;
    case Layout::chw32: return 32;
    case Layout::linear: return 1;
  }
  return 1;
}

/// Returns "linear", "hwc8" or "chw32".
[[nodiscard]] std::string_view to_string(Layout layout);

}  // namespace graft
