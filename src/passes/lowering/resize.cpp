// Resize in forms that TensorRT does not have (antialias, tf_crop_and_resize, half_pixel_symmetric,
// keep_aspect_ratio_policy): for fixed sizes each axis is a product with a matrix.
//
//   Resize<antialias=1>(x)      becomes   MatMul(MatMul(rows, x), columns)
//   Resize<mode=nearest>(x)     becomes   Gather(Gather(x, rows), columns)
//
// A row of the matrix holds the weights of all elements of the input in one element of the output: with antialias the
// kernel is as much wider as the image gets smaller. Beyond its ends the input repeats its last number, or, with
// exclude_outside, has the weight 0. The matrix is on the left of the image for its rows, on the right for its columns.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "onnx/resize_weights.hpp"
#include "passes/lowering/refused_forms.hpp"
#include "passes/lowering/windows.hpp"

namespace graft::passes {
namespace {

using onnx::AxisScale;
using onnx::Interpolation;

/// Returns whether the coordinate_transformation_mode of a Resize is tf_crop_and_resize.
bool crops(const onnx::Node& resize) {
  return resize.string_or("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
}

/// Returns the scale of each axis of the input, which has these `sizes`; `axes` are the axes that the Resize changes.
/// Returns an empty list, and stores the reason with site.no(), if the scales or sizes of the Resize are not constant
/// or their number differs from that of `axes`.
std::vector<AxisScale> scales_of(Site& site, const std::vector<std::int64_t>& sizes,
                                 const std::vector<std::int64_t>& axes) {
  const auto refuse = [&](const char* why) {
    static_cast<void>(site.no(why));
    return std::vector<AxisScale>();
  };
  const bool by_sizes = site.has_input(3);
  const auto wanted = by_sizes ? site.numbers(3) : site.numbers(2);
  if (!wanted) return refuse(by_sizes ? "its sizes are not a constant" : "its scales are not a constant");
  if (wanted->size() != axes.size())
    return refuse(by_sizes ? "the number of its sizes differs from the number of its axes"
                           : "the number of its scales differs from the number of its axes");
  std::vector<double> roi;
  if (crops(site.node())) {
    roi = site.numbers(1).value_or(std::vector<double>());
    if (roi.size() != 2 * axes.size()) return refuse("its roi is not a constant");
  }
  std::vector<AxisScale> result(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) result[i] = {sizes[i], sizes[i], 1, 0, 1};
  double least = 0;
  double most = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    AxisScale& axis = result[static_cast<std::size_t>(axes[i])];
    if (axis.from < 1) return refuse("an axis of its input has no elements");
    axis = onnx::scale_axis(axis.from, (*wanted)[i], by_sizes);
    if (!roi.empty()) {
      axis.roi_begin = roi[i];
      axis.roi_end = roi[i + axes.size()];
    }
    if (axis.to < 1) return refuse("an axis of its output would have no elements");
    least = i == 0 ? axis.scale : std::min(least, axis.scale);
    most = i == 0 ? axis.scale : std::max(most, axis.scale);
  }
  if (by_sizes && keeps_aspect_ratio(site.node())) {
    const double scale = site.node().string_or("keep_aspect_ratio_policy", "") == "not_larger" ? least : most;
    for (const std::int64_t i : axes) {
      AxisScale& axis = result[static_cast<std::size_t>(i)];
      axis.scale = scale;
      axis.to = std::llround(scale * static_cast<double>(axis.from));
    }
  }
  return result;
}

/// Returns the size of each axis of the input of a Resize that changes the axes `axes`. A dynamic axis has size 0 if it
/// is not in `axes`, and size 1 if its scale is the constant 1. Returns nothing, and stores the reason with site.no(),
/// for any other dynamic axis in `axes`.
std::optional<std::vector<std::int64_t>> sizes_of(Site& site, std::size_t rank, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    sizes.push_back(site.size(0, static_cast<std::int64_t>(axis)).value_or(0));
  }
  const auto given = site.has_input(3) ? std::nullopt : site.numbers(2);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t& size = sizes[static_cast<std::size_t>(axes[i])];
    if (size != 0) continue;
    if (!given || i >= given->size() || (*given)[i] != 1 || crops(site.node())) {
      return site.no_size("a size that it changes is dynamic");
    }
    size = 1;
  }
  return sizes;
}

/// Writes a Resize as one MatMul with an interpolation matrix for each axis whose size changes.
class ResizeWriter {
 public:
  ResizeWriter(Site& site, const Interpolation& how, const std::vector<std::int64_t>& axes,
               const std::vector<AxisScale>& scales)
      : site_(site),
        how_(how),
        axes_(axes),
        scales_(scales),
        outside_shape_(scales.size(), 1),
        is_outside_(scales.size(), {false}) {}

  std::optional<Replacement> write() {
    std::string x = result_.in_f32("x0", site_.type(0));
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      if (!add_axis(i)) return std::nullopt;
    }
    if (scales_.size() < 2) return site_.no("the rank of its input is below 2");
    if (crops(site_.node())) fill_outside();
    if (steps_.empty()) steps_.emplace_back("Identity(@)");
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      std::string text = steps_[i];
      text.replace(text.find('@'), 1, x);
      if (i + 1 == steps_.size()) {
        result_.give("y0", site_.type(0), text);
      } else {
        x = fmt::format("step{}", i);
        result_.line(fmt::format("{} = {}", x, text));
      }
    }
    result_.summary = how_.mode == "nearest" ? fmt::format("{} Gather of the nearest elements", changed_)
                                             : fmt::format("{} MatMul with matrices of weights", changed_);
    // The CPU engine ignores the policy in mode nearest.
    result_.is_proven_by_onnxruntime = how_.mode == "nearest" && keeps_aspect_ratio(site_.node());
    return std::move(result_);
  }

 private:
  /// Appends to `steps_` the nodes that resize axis `i`, if its size changes. Returns false, and stores the reason with
  /// site.no(), if the axis cannot be resized.
  bool add_axis(std::size_t i) {
    const AxisScale& axis = scales_[i];
    const bool is_whole = !crops(site_.node()) || (axis.roi_begin == 0 && axis.roi_end == 1);
    if (axis.scale == 1 && !is_whole) return refuse("runtimes disagree on a part (roi) of an axis that is not resized");
    if (axis.from == axis.to && axis.scale == 1 && is_whole) return true;
    if (std::find(axes_.begin(), axes_.end(), static_cast<std::int64_t>(i)) == axes_.end()) return true;
    if (axis.from > most_constants / axis.to)
      return refuse("a matrix of its weights would have more than 16 M elements");
    ++changed_;
    if (crops(site_.node())) {
      outside_shape_[i] = axis.to;
      is_outside_[i].clear();
      for (std::int64_t at = 0; at < axis.to; ++at) {
        const double source = onnx::resize_source(at, axis, how_.coordinates);
        is_outside_[i].push_back(source < 0 || source > static_cast<double>(axis.from - 1));
      }
    }
    if (how_.mode == "nearest") {
      add_selection(i);
    } else {
      add_product(i);
    }
    return true;
  }

  /// Appends the Gather that selects the nearest elements of axis `i`.
  void add_selection(std::size_t i) {
    const AxisScale& axis = scales_[i];
    const std::vector<double> matrix = onnx::resize_matrix(axis, how_);  // A row has one 1.
    std::vector<std::int64_t> nearest;
    for (auto row = matrix.begin(); row != matrix.end(); row += axis.from) {
      nearest.push_back(std::find(row, row + axis.from, 1.0) - row);
    }
    steps_.push_back(fmt::format("Gather<axis={}>(@, {})", i, result_.ints(fmt::format("nearest{}", i), nearest)));
  }

  /// Appends the MatMul for axis `i`: by the transposed matrix from the right for the last axis, by the matrix from the
  /// left for the axis before it. Any other axis is first exchanged with the second-to-last axis by a Transpose, and
  /// back afterwards.
  void add_product(std::size_t i) {
    const AxisScale& axis = scales_[i];
    const std::vector<double> matrix = onnx::resize_matrix(axis, how_);
    const std::string name = fmt::format("matrix{}", i);
    const std::size_t rank = scales_.size();
    if (i + 1 == rank) {
      std::vector<double> turned;
      for (std::int64_t from = 0; from < axis.from; ++from) {
        for (std::int64_t to = 0; to < axis.to; ++to) {
          turned.push_back(matrix[static_cast<std::size_t>(to * axis.from + from)]);
        }
      }
      steps_.push_back(fmt::format("MatMul(@, {})", result_.constant(name, f32_tensor({axis.from, axis.to}, turned))));
      return;
    }
    std::vector<std::int64_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[i], order[rank - 2]);
    const std::string move = fmt::format("Transpose<perm={}>(@)", order);
    if (i + 2 != rank) steps_.push_back(move);
    steps_.push_back(fmt::format("MatMul({}, @)", result_.constant(name, f32_tensor({axis.to, axis.from}, matrix))));
    if (i + 2 != rank) steps_.push_back(move);
  }

  /// Appends the Where that writes extrapolation_value to elements outside the image, if there are any.
  void fill_outside() {
    std::vector<double> flags;
    bool any = false;
    for_each_index(outside_shape_, [&](const std::vector<std::int64_t>& at) {
      bool is_out = false;
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        is_out = is_out || is_outside_[axis][static_cast<std::size_t>(at[axis])];
      }
      flags.push_back(is_out ? 1 : 0);
      any = any || is_out;
    });
    if (!any) return;
    const std::string is_out = result_.constant(
        "is_outside", onnx::TensorData::from_numbers(onnx::ElementType::boolean, outside_shape_, flags));
    const std::string filling =
        result_.constant("filling", f32_tensor({}, {site_.node().float_or("extrapolation_value", 0)}));
    steps_.push_back(fmt::format("Where({}, {}, @)", is_out, filling));
  }

  bool refuse(const char* why) {
    static_cast<void>(site_.no(why));
    return false;
  }

  Site& site_;
  const Interpolation& how_;
  const std::vector<std::int64_t>& axes_;
  const std::vector<AxisScale>& scales_;
  Replacement result_;
  std::vector<std::string> steps_;  ///< Operator calls in which @ stands for the result of the previous step.
  std::size_t changed_ = 0;         ///< The number of axes that change.
  std::vector<std::int64_t> outside_shape_;
  std::vector<std::vector<bool>> is_outside_;  ///< Whether an element of the result is outside, for each axis.
};

}  // namespace

std::optional<Replacement> lower_resize(Site& site) {
  const Interpolation how = onnx::interpolation_of(site.node());
  const bool is_refused_otherwise = keeps_aspect_ratio(site.node()) || has_refused_coordinates(site.node());
  if (!how.antialias && !is_refused_otherwise) return std::nullopt;  // antialias with mode nearest
  const Shape* shape = site.shape(0);
  if (shape == nullptr || !site.is_real(0))
    return site.no("its input must have a known rank and the type f32, f16 or bf16");
  const auto axes = onnx::resized_axes(site.node(), shape->size());
  if (!axes) return site.no("one of its axes is out of range for the rank of its input");
  const auto sizes = sizes_of(site, shape->size(), *axes);
  if (!sizes) return std::nullopt;
  const std::vector<AxisScale> scales = scales_of(site, *sizes, *axes);
  if (scales.empty()) return std::nullopt;
  const bool shrinks = std::any_of(scales.begin(), scales.end(), [](const AxisScale& axis) { return axis.scale < 1; });
  // Antialias changes nothing where nothing shrinks: the fusion into Upsampling removes it.
  if (!shrinks && !is_refused_otherwise) return std::nullopt;
  return ResizeWriter(site, how, *axes, scales).write();
}

}  // namespace graft::passes
