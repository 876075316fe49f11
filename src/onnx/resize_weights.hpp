// Expresses Resize as a product with one matrix per axis, which contains the weight of each input element in each
// output element.
//
// With antialias, the kernel is widened by the factor by which the image shrinks. Beyond its ends the input repeats its
// last element or, with exclude_outside, has no weight. Follows ONNX's reference implementation of Resize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace graft::onnx {

/// The attributes of a Resize.
struct Interpolation {
  std::string mode;         // The mode: "linear", "cubic" or "nearest".
  std::string coordinates;  // The attribute coordinate_transformation_mode.
  std::string nearest_mode;
  double cubic_a = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
};

/// The sizes and the scale of an axis.
struct AxisScale {
  std::int64_t from = 0;
  std::int64_t to = 0;
  double scale = 1;
  double roi_begin = 0;
  double roi_end = 1;
};

[[nodiscard]] Interpolation interpolation_of(const Node& resize);

/// Returns the axes to which `sizes` or `scales` refer, counted from the front, for an input of that rank; nothing if
/// an axis is out of range.
[[nodiscard]] std::optional<std::vector<std::int64_t>> resized_axes(const Node& resize, std::size_t rank);

/// Returns the scale of an axis with `from` elements and its size after resizing. `wanted` is the element of the input
/// `sizes` (if `by_sizes`) or `scales` for this axis.
[[nodiscard]] AxisScale scale_axis(std::int64_t from, double wanted, bool by_sizes);

/// Returns the position in the input, in elements, that corresponds to element `at` of the output. `coordinates` is the
/// attribute coordinate_transformation_mode.
[[nodiscard]] double resize_source(std::int64_t at, const AxisScale& axis, const std::string& coordinates);

/// Returns the weights with which Resize interpolates along one axis, as a row-major matrix of shape [to, from]: row i
/// contains the weight of each input element in output element i.
[[nodiscard]] std::vector<double> resize_matrix(const AxisScale& axis, const Interpolation& how);

}  // namespace graft::onnx
