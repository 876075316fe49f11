// Memory layouts of tensors, under TensorRT's names for them.
#pragma once

#include <cstdint>
#include <string_view>

namespace graft {

/// The order in memory of the elements of a tensor with the logical shape N,C,spatial...
enum class Layout : std::uint8_t {
  linear,  ///< Row-major without padding, for any rank.
  /// N,spatial,C with C padded to a multiple of 8 (TensorRT's kHWC8), for 16-bit types; outside of TensorRT also for
  /// f32.
  hwc8,
  chw32,  ///< N,ceil(C/32),spatial,32 (TensorRT's kCHW32), for i8.
};

/// Returns the number of channels that are contiguous in memory and padded together: 8 for hwc8, 32 for chw32, 1 for
/// linear.
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
