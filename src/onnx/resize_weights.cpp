// Sums the weights of each output element. With antialias or exclude_outside they are divided by that sum.
#include "onnx/resize_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace graft::onnx {
namespace {

double cubic(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

double linear(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

/// Returns the input position that the mode selects for the fractional position `source`.
std::int64_t nearest(double source, const std::string& mode) {
  const double below = std::floor(source);
  const double part = source - below;
  const auto first = static_cast<std::int64_t>(below);
  if (part == 0) return first;
  if (mode == "floor") return first;
  if (mode == "ceil") return first + 1;
  return mode == "round_prefer_ceil" ? first + (part >= 0.5 ? 1 : 0) : first + (part > 0.5 ? 1 : 0);
}

}  // namespace

Interpolation interpolation_of(const Node& resize) {
  Interpolation how;
  how.mode = resize.string_or("mode", "nearest");
  how.coordinates = resize.string_or("coordinate_transformation_mode", "half_pixel");
  how.nearest_mode = resize.string_or("nearest_mode", "round_prefer_floor");
  how.cubic_a = resize.float_or("cubic_coeff_a", -0.75F);
  how.antialias = resize.int_or("antialias", 0) != 0 && how.mode != "nearest";
  how.exclude_outside = resize.int_or("exclude_outside", 0) != 0;
  return how;
}

std::optional<std::vector<std::int64_t>> resized_axes(const Node& resize, std::size_t rank) {
  std::vector<std::int64_t> axes = resize.ints("axes").value_or(std::vector<std::int64_t>());
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  const auto count = static_cast<std::int64_t>(rank);
  for (std::int64_t& axis : axes) {
    axis += axis < 0 ? count : 0;
    if (axis < 0 || axis >= count) return std::nullopt;
  }
  return axes;
}

AxisScale scale_axis(std::int64_t from, double wanted, bool by_sizes) {
  const auto length = static_cast<double>(from);
  AxisScale axis;
  axis.from = from;
  axis.scale = by_sizes ? wanted / length : static_cast<double>(static_cast<float>(wanted));
  axis.to = static_cast<std::int64_t>(by_sizes ? wanted : std::floor(axis.scale * length));
  return axis;
}

double resize_source(std::int64_t at, const AxisScale& axis, const std::string& coordinates) {
  const auto x = static_cast<double>(at);
  const auto from = static_cast<double>(axis.from);
  const double length = axis.scale * from;  // The length of the output before rounding.
  if (coordinates == "align_corners") return length == 1 ? 0 : x * (from - 1) / (length - 1);
  if (coordinates == "asymmetric") return x / axis.scale;
  if (coordinates == "tf_crop_and_resize") {
    const double begin = axis.roi_begin * (from - 1);
    const double extent = (axis.roi_end - axis.roi_begin) * (from - 1);
    return length == 1 ? begin + extent / 2 : begin + x * extent / (length - 1);
  }
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (coordinates == "pytorch_half_pixel") return length == 1 ? -0.5 : half_pixel;
  if (coordinates == "half_pixel_symmetric") return from / 2 * (1 - static_cast<double>(axis.to) / length) + half_pixel;
  return half_pixel;
}

std::vector<double> resize_matrix(const AxisScale& axis, const Interpolation& how) {
  std::vector<double> matrix(static_cast<std::size_t>(axis.from * axis.to), 0);
  const double narrow = how.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = (how.mode == "cubic" ? 2.0 : 1.0) / narrow;
  for (std::int64_t row = 0; row < axis.to; ++row) {
    const double source = resize_source(row, axis, how.coordinates);
    std::vector<double> weights(static_cast<std::size_t>(axis.from), 0);
    double sum = 0;
    const auto add = [&](std::int64_t place, double weight) {
      const bool is_outside = place < 0 || place >= axis.from;
      if (is_outside && how.exclude_outside) return;
      sum += weight;
      weights[static_cast<std::size_t>(std::clamp<std::int64_t>(place, 0, axis.from - 1))] += weight;
    };
    if (how.mode == "nearest") {
      add(nearest(source, how.nearest_mode), 1);
    } else {
      const auto last = static_cast<std::int64_t>(std::ceil(source + reach));
      for (auto place = static_cast<std::int64_t>(std::floor(source - reach)); place <= last; ++place) {
        const double distance = (static_cast<double>(place) - source) * narrow;
        const double weight = how.mode == "cubic" ? cubic(distance, how.cubic_a) : linear(distance);
        if (weight != 0) add(place, weight);
      }
    }
    const bool is_normalized = how.antialias || how.exclude_outside;
    for (std::int64_t place = 0; place < axis.from; ++place) {
      const double weight = weights[static_cast<std::size_t>(place)];
      matrix[static_cast<std::size_t>(row * axis.from + place)] = is_normalized && sum != 0 ? weight / sum : weight;
    }
  }
  return matrix;
}

}  // namespace graft::onnx
