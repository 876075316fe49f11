// Where the elements of a tensor lie in another one that was made of it by reshaping, transposing and slicing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::passes::deformable_attention {

/// The axes of all tensors of an attention.
enum AttentionAxis : std::size_t { item, pixel, query, head, channel, point, coordinate };

/// An axis of the tensor that it began with, or a part of one: every `stride`-th of its elements, `size` of them.
struct AxisFactor {
  std::size_t axis = 0;
  std::int64_t stride = 1;
  std::int64_t size = 0;  ///< 0 where it is not known; such a factor is a whole axis.
  friend bool operator==(const AxisFactor&, const AxisFactor&) = default;
};

/// Each axis as the factors that it runs over, the last one fastest, and the element of each axis of the beginning at
/// which it starts. The heads of [B,S,M,D], transposed and reshaped to [B*M,D,S], are the second factor of axis 0.
class AxisLayout {
 public:
  static constexpr std::size_t max_axes = 8;
  using Axes = std::vector<std::vector<AxisFactor>>;
  using Starts = std::array<std::int64_t, max_axes>;

  AxisLayout(Axes axes, Starts starts);
  /// Of a tensor itself, whose axis i is axis names[i] of the beginning. Neighbors of one name are parts of one axis.
  /// Nothing where they are not of fixed sizes.
  [[nodiscard]] static std::optional<AxisLayout> of(const onnx::Value& value, const std::vector<std::size_t>& names);

  /// After a node that only moves elements, of which `output` is one; nothing where it is no such node, or does what
  /// cannot be said in this way.
  [[nodiscard]] std::optional<AxisLayout> after(const onnx::Node& node, const onnx::Value& output) const;

  [[nodiscard]] const Axes& axes() const { return axes_; }
  [[nodiscard]] const Starts& starts() const { return starts_; }
  /// The same elements in the same places.
  friend bool operator==(const AxisLayout&, const AxisLayout&) = default;

 private:
  [[nodiscard]] std::optional<AxisLayout> reshaped(const Shape& shape) const;
  [[nodiscard]] std::optional<AxisLayout> transposed(const std::vector<std::int64_t>& perm) const;
  /// `size` elements of an axis from `begin` on.
  [[nodiscard]] std::optional<AxisLayout> sliced(std::int64_t axis, std::int64_t begin, std::int64_t size) const;
  [[nodiscard]] std::optional<AxisLayout> after_slice(const onnx::Node& node, const onnx::Value& output) const;
  [[nodiscard]] std::optional<AxisLayout> after_split(const onnx::Node& node, const onnx::Value& output) const;
  [[nodiscard]] std::optional<AxisLayout> after_gather(const onnx::Node& node, const onnx::Value& output) const;

  Axes axes_;  // without factors of size 1, and neighbors that are one factor together
  Starts starts_{};
};

/// Of a dimension that is a constant; 0 of any other, and of one that is not there.
[[nodiscard]] std::int64_t fixed_size(const onnx::Value* value, std::size_t axis);

/// 0 where it is not known.
[[nodiscard]] std::size_t rank_of(const onnx::Value* value);

}  // namespace graft::passes::deformable_attention
