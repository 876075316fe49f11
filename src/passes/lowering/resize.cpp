// Resize in forms that TensorRT does not have (antialias, tf_crop_and_resize, half_pixel_symmetric,
// keep_aspect_ratio_policy): for fixed sizes each axis is a product with a matrix.
//
//   Resize<antialias=1>(x)   becomes   MatMul(MatMul(rows, x), columns)
//
// A row of the matrix holds the weights of all numbers of the input in one number of the output: with antialias the
// kernel is as much wider as the image gets smaller. Beyond its ends the input repeats its last number, or, with
// exclude_outside, has the weight 0. The matrix is on the left of the image for its rows, on the right for its columns.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/resize_weights.hpp"
#include "passes/lowering/refused_forms.hpp"
#include "passes/lowering/windows.hpp"

namespace graft::passes {
namespace {

using onnx::AxisScale;
using onnx::Interpolation;

/// Returns the scale of each axis, or an empty list, after site.no(), if the scales are not fixed.
std::vector<AxisScale> scales_of(Site& site, const std::vector<std::int64_t>& sizes,
                                 const std::vector<std::int64_t>& axes) {
  const auto refuse = [&](const char* why) {
    static_cast<void>(site.no(why));
    return std::vector<AxisScale>();
  };
  const bool by_sizes = site.has_input(3);
  const auto wanted = by_sizes ? site.numbers(3) : site.numbers(2);
  if (!wanted || wanted->size() != axes.size()) return refuse("its sizes or scales are not constants");
  std::vector<double> roi;
  if (site.node().string_or("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") {
    roi = site.numbers(1).value_or(std::vector<double>());
    if (roi.size() != 2 * axes.size()) return refuse("its roi is not a constant");
  }
  std::vector<AxisScale> result(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) result[i] = {sizes[i], sizes[i], 1, 0, 1};
  double least = 0;
  double most = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    AxisScale& axis = result[static_cast<std::size_t>(axes[i])];
    if (axis.from < 1) return refuse("an axis has no size");
    axis = onnx::scale_axis(axis.from, (*wanted)[i], by_sizes);
    if (!roi.empty()) {
      axis.roi_begin = roi[i];
      axis.roi_end = roi[i + axes.size()];
    }
    if (axis.to < 1) return refuse("an axis has no size");
    least = i == 0 ? axis.scale : std::min(least, axis.scale);
    most = i == 0 ? axis.scale : std::max(most, axis.scale);
  }
  const std::string policy = site.node().string_or("keep_aspect_ratio_policy", "stretch");
  if (by_sizes && policy != "stretch") {
    const double scale = policy == "not_larger" ? least : most;
    for (const std::int64_t i : axes) {
      AxisScale& axis = result[static_cast<std::size_t>(i)];
      axis.scale = scale;
      axis.to = std::llround(scale * static_cast<double>(axis.from));
    }
  }
  return result;
}

}  // namespace

std::optional<Replacement> lower_resize(Site& site) {
  const Interpolation how = onnx::interpolation_of(site.node());
  const bool is_refused_otherwise = keeps_aspect_ratio(site.node()) || has_refused_coordinates(site.node());
  if (!how.antialias && !is_refused_otherwise) return std::nullopt;  // antialias with mode nearest
  if (keeps_aspect_ratio(site.node()) && how.mode == "nearest") {
    return site.no("the CPU engine ignores keep_aspect_ratio_policy, so the rewrite cannot be proven");
  }
  const Shape* shape = site.shape(0);
  if (shape == nullptr || !site.is_real(0)) return site.no("its rank or type is not known");
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto resized = onnx::resized_axes(site.node(), shape->size());
  if (!resized) return site.no("an axis is outside its rank");
  const std::vector<std::int64_t>& axes = *resized;
  // Axes that are not resized may be dynamic. A resized axis may only be dynamic if its scale is 1.
  std::vector<std::int64_t> sizes;
  for (std::int64_t axis = 0; axis < rank; ++axis) sizes.push_back(site.size(0, axis).value_or(0));
  std::vector<std::int64_t> open;
  for (const std::int64_t axis : axes) {
    if (sizes[static_cast<std::size_t>(axis)] == 0) open.push_back(axis);
  }
  if (!open.empty()) {
    // A dynamic batch is not changed by a scale of 1.
    const auto given = site.has_input(3) ? std::nullopt : site.numbers(2);
    for (const std::int64_t axis : open) {
      const auto place = static_cast<std::size_t>(std::find(axes.begin(), axes.end(), axis) - axes.begin());
      if (!given || place >= given->size() || (*given)[place] != 1 || how.coordinates == "tf_crop_and_resize") {
        return site.no_size("a size that it changes is dynamic");
      }
      sizes[static_cast<std::size_t>(axis)] = 1;
    }
  }
  const std::vector<AxisScale> scales = scales_of(site, sizes, axes);
  if (scales.empty()) return std::nullopt;
  const bool shrinks = std::any_of(scales.begin(), scales.end(), [](const AxisScale& axis) { return axis.scale < 1; });
  // Antialias changes nothing where nothing shrinks: the fusion into Upsampling removes it.
  if (!shrinks && !is_refused_otherwise) return std::nullopt;
  const bool extrapolates = how.coordinates == "tf_crop_and_resize";

  Replacement result;
  std::string x = result.in_f32("x0", site.type(0));
  std::vector<std::int64_t> changed;
  std::vector<std::int64_t> outside_shape(static_cast<std::size_t>(rank), 1);
  std::vector<std::vector<bool>> is_outside(static_cast<std::size_t>(rank), {false});
  std::vector<std::string> steps;
  for (std::int64_t i = 0; i < rank; ++i) {
    const AxisScale& axis = scales[static_cast<std::size_t>(i)];
    const bool is_whole = !extrapolates || (axis.roi_begin == 0 && axis.roi_end == 1);
    if (axis.scale == 1 && !is_whole)
      return site.no("runtimes disagree on a part (roi) of an axis that is not resized");
    if (axis.from == axis.to && axis.scale == 1 && is_whole) continue;
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) continue;
    if (axis.from > most_constants / axis.to) return site.no("its matrix would be too large");
    changed.push_back(i);
    if (extrapolates) {
      outside_shape[static_cast<std::size_t>(i)] = axis.to;
      std::vector<bool>& outside = is_outside[static_cast<std::size_t>(i)];
      outside.clear();
      for (std::int64_t at = 0; at < axis.to; ++at) {
        const double source = onnx::resize_source(at, axis, how.coordinates);
        outside.push_back(source < 0 || source > static_cast<double>(axis.from - 1));
      }
    }
    const std::vector<double> matrix = onnx::resize_matrix(axis, how);
    // For the last axis the matrix is on the right, transposed; for the axis before, on the left; any other axis is
    // moved to that place.
    if (i == rank - 1) {
      std::vector<double> turned;
      for (std::int64_t from = 0; from < axis.from; ++from) {
        for (std::int64_t to = 0; to < axis.to; ++to) {
          turned.push_back(matrix[static_cast<std::size_t>(to * axis.from + from)]);
        }
      }
      const std::string name = result.constant(fmt::format("matrix{}", i), f32_tensor({axis.from, axis.to}, turned));
      steps.push_back(fmt::format("MatMul(@, {})", name));
    } else {
      const std::string name = result.constant(fmt::format("matrix{}", i), f32_tensor({axis.to, axis.from}, matrix));
      std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(rank - 2)]);
      if (i != rank - 2) steps.push_back(fmt::format("Transpose<perm={}>(@)", order));
      steps.push_back(fmt::format("MatMul({}, @)", name));
      if (i != rank - 2) steps.push_back(fmt::format("Transpose<perm={}>(@)", order));
    }
  }
  if (rank < 2) return site.no("its rank is below 2");
  const double extrapolation = site.node().float_or("extrapolation_value", 0);
  if (extrapolates) {
    std::vector<double> flags;
    bool any = false;
    for_each_index(outside_shape, [&](const std::vector<std::int64_t>& at) {
      bool is_out = false;
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        is_out = is_out || is_outside[axis][static_cast<std::size_t>(at[axis])];
      }
      flags.push_back(is_out ? 1 : 0);
      any = any || is_out;
    });
    if (any) {
      const std::string is_out = result.constant(
          "is_outside", onnx::TensorData::from_numbers(onnx::ElementType::boolean, outside_shape, flags));
      const std::string filling = result.constant("filling", f32_tensor({}, {extrapolation}));
      steps.push_back(fmt::format("Where({}, {}, @)", is_out, filling));
    }
  }
  if (steps.empty()) steps.emplace_back("Identity(@)");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::string text = steps[i];
    text.replace(text.find('@'), 1, x);
    if (i + 1 == steps.size()) {
      result.give("y0", site.type(0), text);
    } else {
      x = fmt::format("step{}", i);
      result.line(fmt::format("{} = {}", x, text));
    }
  }
  result.summary = fmt::format("{} MatMul with matrices of weights", changed.size());
  return result;
}

}  // namespace graft::passes
