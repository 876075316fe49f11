// The position of a tensor's elements in another tensor that is computed from it by reshaping, transposing and slicing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "onnx/model.hpp"

namespace graft::passes::deformable_attention {

/// The names of the axes of all tensors of an attention.
enum AttentionAxis : std::size_t { item, pixel, query, head, channel, point, coordinate };

/// An axis of the original tensor, or a factor of it if the axis is split as by Reshape: `size` elements that lie
/// `stride` elements apart.
struct AxisFactor {
  std::size_t axis = 0;
  std::int64_t stride = 1;
  std::int64_t size = 0;  ///< The size; 0 if it is unknown. A factor of unknown size is a whole axis.
  friend bool operator==(const AxisFactor&, const AxisFactor&) = default;
};

/// The axes of a tensor in terms of an original tensor. Each axis is a list of factors of the original axes, of which
/// the last one varies fastest. The tensor starts at a given element of each original axis. For example, the heads of
/// [B,S,M,D], transposed and reshaped to [B*M,D,S], are the second factor of axis 0.
class AxisLayout {
 public:
  static constexpr std::size_t max_axes = 8;
  using Axes = std::vector<std::vector<AxisFactor>>;
  using Starts = std::array<std::int64_t, max_axes>;

  AxisLayout(Axes axes, Starts starts);
  /// Returns the layout of an original tensor whose axis i is called names[i]. Neighboring axes with the same name are
  /// treated as one axis that is split into factors. Returns nothing if such a factor has no fixed size, or if the
  /// ranks differ.
  [[nodiscard]] static std::optional<AxisLayout> of(const onnx::Value& value, const std::vector<std::size_t>& names);

  /// Returns the layout of `output`, the result of a node that only moves elements. Returns nothing for any other node,
  /// and if AxisLayout cannot express the result.
  [[nodiscard]] std::optional<AxisLayout> after(const onnx::Node& node, const onnx::Value& output) const;

  [[nodiscard]] const Axes& axes() const { return axes_; }
  [[nodiscard]] const Starts& starts() const { return starts_; }
  /// Returns whether two layouts have the same elements at the same positions.
  friend bool operator==(const AxisLayout&, const AxisLayout&) = default;

 private:
  [[nodiscard]] std::optional<AxisLayout> reshaped(const Shape& shape) const;
  [[nodiscard]] std::optional<AxisLayout> transposed(const std::vector<std::int64_t>& perm) const;
  /// Returns the layout of `size` elements of an axis from `begin` on.
  [[nodiscard]] std::optional<AxisLayout> sliced(std::int64_t axis, std::int64_t begin, std::int64_t size) const;
  [[nodiscard]] std::optional<AxisLayout> after_slice(const onnx::Node& node, const onnx::Value& output) const;
  [[nodiscard]] std::optional<AxisLayout> after_split(const onnx::Node& node, const onnx::Value& output) const;
  [[nodiscard]] std::optional<AxisLayout> after_gather(const onnx::Node& node, const onnx::Value& output) const;

  Axes axes_;  // has no factors of size 1; neighboring factors are joined
  Starts starts_{};
};

/// Returns the size of axis `axis` of a value; 0 if it is dynamic or does not exist, or if the value is null.
[[nodiscard]] std::int64_t fixed_size(const onnx::Value* value, std::size_t axis);

/// Returns the rank of a value, or 0 if it is unknown.
[[nodiscard]] std::size_t rank_of(const onnx::Value* value);

}  // namespace graft::passes::deformable_attention
