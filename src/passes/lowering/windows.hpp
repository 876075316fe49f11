// The windows of pooling and of convolutions along each axis, from the attributes that these operators share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {

struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;
  /// The number of padding elements at the end that ceil_mode adds for the last window. They do not count in the
  /// divisor of an average.
  std::int64_t beyond = 0;

  [[nodiscard]] std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
  /// Returns the number of windows along an axis of `size` elements with this padding, rounded down.
  [[nodiscard]] std::int64_t count(std::int64_t size) const {
    return (size + pad_begin + pad_end - extent()) / stride + 1;
  }
};

/// Returns the windows along the axes 2, 3 ... of input 0, from the attributes strides, dilations, pads, auto_pad and
/// ceil_mode of the node. Returns nothing, and stores the reason with site.no(), if the attributes are invalid, or if
/// auto_pad or ceil_mode is used and a size is dynamic.
[[nodiscard]] std::optional<std::vector<Window>> windows_of(Site& site, const std::vector<std::int64_t>& kernel);

/// Returns the kernel size of the windows along each axis.
[[nodiscard]] std::vector<std::int64_t> kernel_of(const std::vector<Window>& windows);
[[nodiscard]] std::int64_t places_of(const std::vector<Window>& windows);

/// Calls `f` with each multi-dimensional index within `sizes`, in row-major order. Throws TableTooLarge if there are
/// more than most_constants indices.
void for_each_index(const std::vector<std::int64_t>& sizes,
                    const std::function<void(const std::vector<std::int64_t>&)>& f);

}  // namespace graft::passes
