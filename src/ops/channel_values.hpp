// Numbers of an attribute that stand in for an input of one f32 number to each channel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graft/tensor.hpp"

namespace graft::ops {

/// The input that is left out: as long as the attribute, or `count` where that is empty.
[[nodiscard]] inline TensorDesc channel_values(const std::vector<float>& values, std::int64_t count) {
  return {.dtype = DType::f32,
          .layout = Layout::linear,
          .extents = {values.empty() ? count : static_cast<std::int64_t>(values.size())}};
}

/// Its data: the attribute's numbers, or `otherwise` throughout where there are none.
inline void fill_channel_values(const std::vector<float>& values, float otherwise, const TensorDesc& desc,
                                std::byte* bytes) {
  auto* numbers = reinterpret_cast<float*>(bytes);
  if (values.empty()) {
    std::fill_n(numbers, desc.extents[0], otherwise);
  } else {
    std::ranges::copy(values, numbers);
  }
}

}  // namespace graft::ops
