// Whether the sizes of a tensor are known before the model runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "onnx/model.hpp"

namespace graft::onnx {

[[nodiscard]] inline bool has_known_sizes(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_constant(); });
}
/// Returns false for a tensor without a shape.
[[nodiscard]] inline bool has_known_sizes(const Value& value) { return value.shape && has_known_sizes(*value.shape); }

/// Returns the size of an axis, which counts from the end if it is negative; nothing if it is dynamic or does not
/// exist.
[[nodiscard]] inline std::optional<std::int64_t> known_size(const Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front < 0 || from_front >= rank) return std::nullopt;
  const Dim& dim = shape[static_cast<std::size_t>(from_front)];
  return dim.is_constant() ? std::optional(dim.value()) : std::nullopt;
}
/// Does the same for a tensor. Returns nothing for null and for a tensor without a shape.
[[nodiscard]] inline std::optional<std::int64_t> known_size(const Value* value, std::int64_t axis) {
  return value == nullptr || !value->shape ? std::nullopt : known_size(*value->shape, axis);
}

}  // namespace graft::onnx
