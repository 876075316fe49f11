// Resize as a product with a matrix for each axis: what each number of the input weighs in one of the output.
//
// For antialias the kernel is as much wider as the image gets smaller. Beyond its ends the input repeats its last
// number, or, with exclude_outside, weighs nothing. After ONNX's reference implementation of Resize.
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
  std::string mode;         // "linear", "cubic", "nearest"
  std::string coordinates;  // coordinate_transformation_mode
  std::string nearest_mode;
  double cubic_a = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
};

/// What becomes of one axis.
struct AxisScale {
  std::int64_t from = 0;
  std::int64_t to = 0;
  double scale = 1;
  double roi_begin = 0;
  double roi_end = 1;
};

[[nodiscard]] Interpolation interpolation_of(const Node& resize);

/// The axes that sizes or scales are given for, from the front, of an input of that rank; nothing where one is beyond
/// it.
[[nodiscard]] std::optional<std::vector<std::int64_t>> resized_axes(const Node& resize, std::size_t rank);

/// What becomes of an axis of `from` numbers, by its element of the input `sizes`, or of `scales`, which is of floats.
[[nodiscard]] AxisScale scale_axis(std::int64_t from, double wanted, bool by_sizes);

/// Where in the input the number `at` of the output lies.
[[nodiscard]] double resize_source(std::int64_t at, const AxisScale& axis, const std::string& coordinates);

/// [to, from].
[[nodiscard]] std::vector<double> resize_matrix(const AxisScale& axis, const Interpolation& how);

}  // namespace graft::onnx
