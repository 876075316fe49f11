// Checks whether the sizes of a tensor are known before the model runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

[[nodiscard]] inline bool has_known_sizes(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_constant(); });
}
/// Returns whether all sizes of a tensor are known; false for a tensor without a shape.
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
/// Returns the size of an axis of a tensor; an axis counts from the end if it is negative. Returns nothing if the size
/// is dynamic, the axis does not exist, or `value` is null or has no shape.
[[nodiscard]] inline std::optional<std::int64_t> known_size(const Value* value, std::int64_t axis) {
  return value == nullptr || !value->shape ? std::nullopt : known_size(*value->shape, axis);
}

/// Returns the sizes from axis `first` on, or nothing if one of them is dynamic.
[[nodiscard]] inline std::optional<std::vector<std::int64_t>> known_sizes(const Shape& shape, std::size_t first = 0) {
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = first; axis < shape.size(); ++axis) {
    if (!shape[axis].is_constant()) return std::nullopt;
    sizes.push_back(shape[axis].value());
  }
  return sizes;
}

/// Returns the target of a Reshape from the shape `before`, with -1 replaced by the inferred size. Returns the target
/// unchanged if that size is not known. Also returns it unchanged if a 0 in the target copies a dynamic dimension on
/// which the size depends, because no size can be inferred if that dimension is 0.
[[nodiscard]] inline std::vector<std::int64_t> with_inferred_size(const Shape& before,
                                                                  std::vector<std::int64_t> target) {
  const auto inferred = std::find(target.begin(), target.end(), -1);
  if (inferred == target.end()) return target;
  std::int64_t whole = 1;
  std::int64_t others = 1;
  for (std::size_t axis = 0; axis < std::max(before.size(), target.size()); ++axis) {
    if (axis < target.size() && target[axis] > 0 && __builtin_mul_overflow(others, target[axis], &others))
      return target;
    const bool is_copied = axis < target.size() && target[axis] == 0;
    if (is_copied || axis >= before.size()) continue;
    if (!before[axis].is_constant() || __builtin_mul_overflow(whole, before[axis].value(), &whole)) return target;
  }
  if (whole > 0 && whole % others == 0) *inferred = whole / others;
  return target;
}

}  // namespace graft::onnx
