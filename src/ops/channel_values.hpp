// Attributes that replace a missing input of one f32 number per channel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graft/operator/tensor.hpp"

namespace graft::ops {

/// Returns the description of an f32 input with one value per channel that an attribute replaces. Its length is that of
/// the attribute, or `count` if the attribute is empty.
[[nodiscard]] inline TensorDesc channel_values(const std::vector<float>& values, std::int64_t count) {
  return {.dtype = DType::f32,
          .layout = Layout::linear,
          .extents = {values.empty() ? count : static_cast<std::int64_t>(values.size())}};
}

/// Fills `bytes` with the attribute's values, or with `otherwise` for every element if the attribute is empty.
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
