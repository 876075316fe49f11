// Whether the sizes of a tensor are known before the model runs.
#pragma once

#include <algorithm>

#include "onnx/model.hpp"

namespace graft::onnx {

[[nodiscard]] inline bool has_known_sizes(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_constant(); });
}
/// Returns false for a tensor without a shape.
[[nodiscard]] inline bool has_known_sizes(const Value& value) { return value.shape && has_known_sizes(*value.shape); }

}  // namespace graft::onnx
