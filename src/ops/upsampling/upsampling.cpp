// Definition of Upsampling: shapes, checks, ONNX function, drop-ins.
#include "ops/upsampling/upsampling.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <stdexcept>

#include "ops/upsampling/sampling.hpp"

namespace graft::ops {
namespace {

constexpr std::int64_t largest = Upsampling::largest_size;

/// Returns the fraction with the smallest denominator strictly between two positive numbers. It is computed from their
/// continued fractions, up to the first term in which these differ.
Ratio simplest_between(double low, double high) {
  const double whole = std::floor(low);
  if (whole >= static_cast<double>(largest)) return {largest + 1, 1};
  const auto integer = static_cast<std::int64_t>(whole);
  if (whole + 1 < high) return {integer + 1, 1};
  // If `low` is an integer, the interval of the reciprocal is unbounded: any number above its lower end 1 / (high -
  // whole) serves as its upper end.
  const double above = low > whole ? 1 / (low - whole) : 2 / (high - whole) + 2;
  const Ratio rest = simplest_between(1 / (high - whole), above);
  if (rest.numerator > largest) return {largest + 1, 1};
  return {integer * rest.numerator + rest.denominator, rest.numerator};
}

[[nodiscard]] std::size_t spatial_rank(std::size_t rank) {
  if (rank < 3 || rank > 2 + Upsampling::max_spatial) {
    throw std::invalid_argument("x has rank " + std::to_string(rank) +
                                "; the rank must be between 3 and 5: N, C and 1 to 3 spatial axes");
  }
  return rank - 2;
}

}  // namespace

std::optional<Ratio> simplest_ratio(float value) {
  const auto exact = static_cast<double>(value);
  if (!(exact > 0) || !std::isfinite(exact)) return std::nullopt;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const double low = (exact + static_cast<double>(std::nextafter(value, 0.F))) / 2;
  const double high = (exact + static_cast<double>(std::nextafter(value, infinity))) / 2;
  const Ratio ratio = simplest_between(low, high);
  if (ratio.numerator > largest || ratio.denominator > largest) return std::nullopt;
  const auto quotient = static_cast<double>(ratio.numerator) / static_cast<double>(ratio.denominator);
  return static_cast<float>(quotient) == value ? std::optional(ratio) : std::nullopt;
}

std::array<SampledAxis, Upsampling::max_spatial> sampled_axes(const Upsampling& op, const Problem& problem) {
  const Extents& in = problem.inputs[0].extents;
  const Extents& out = problem.outputs[0].extents;
  const std::size_t spatial = static_cast<std::size_t>(in.rank()) - 2;
  std::array<SampledAxis, Upsampling::max_spatial> axes{};
  for (std::size_t i = 0; i < spatial; ++i) {
    SampledAxis& axis = axes[Upsampling::max_spatial - spatial + i];
    axis.in = in[static_cast<int>(i) + 2];
    axis.out = out[static_cast<int>(i) + 2];
    Ratio scale{axis.out, axis.in};
    if (!op.scales.empty()) {
      scale = simplest_ratio(op.scales[op.scales.size() == 1 ? 0 : i]).value_or(Ratio{});
    }
    switch (op.coordinate_mode) {
      case CoordinateMode::half_pixel:
        axis.step = 2 * scale.denominator;
        axis.offset = scale.denominator - scale.numerator;
        axis.divisor = 2 * scale.numerator;
        break;
      case CoordinateMode::align_corners:
        axis.step = axis.out > 1 ? axis.in - 1 : 0;
        axis.divisor = axis.out > 1 ? axis.out - 1 : 1;
        break;
      case CoordinateMode::asymmetric:
        axis.step = scale.denominator;
        axis.divisor = scale.numerator;
        break;
    }
    if (op.mode == Interpolation::nearest) {
      // ceil(a / b) = floor((a + b - 1) / b); rounding is floor(a / b + 1/2) or ceil(a / b - 1/2).
      const bool rounds =
          op.nearest_mode == NearestMode::round_prefer_floor || op.nearest_mode == NearestMode::round_prefer_ceil;
      if (rounds) {
        axis.step *= 2;
        axis.offset = 2 * axis.offset + axis.divisor - (op.nearest_mode == NearestMode::round_prefer_floor ? 1 : 0);
        axis.divisor *= 2;
      }
      if (op.nearest_mode == NearestMode::ceil) axis.offset += axis.divisor - 1;
    }
    const std::int64_t common = std::gcd(std::gcd(axis.step, axis.offset), axis.divisor);
    axis.step /= common;
    axis.offset /= common;
    axis.divisor /= common;
  }
  return axes;
}

bool Upsampling::accepts(const TypeRow& row, std::span<const int> /*input_ranks*/) const {
  return row.formats[0].dtype != DType::f8e4m3fn || (is_data_movement() && x_scale == y_scale);
}

std::vector<Shape> Upsampling::infer_shapes(std::span<const Shape> inputs) const {
  Shape y = inputs[0];
  const std::size_t spatial = spatial_rank(y.size());
  const bool by_size = !sizes.empty();
  const std::size_t given = by_size ? sizes.size() : scales.size();
  if (given == 0) throw std::invalid_argument("the attributes `scales` and `sizes` are missing; set one of them");
  if (given != spatial && (by_size || given != 1)) {
    throw std::invalid_argument("attribute `" + std::string(by_size ? "sizes" : "scales") + "` has " +
                                std::to_string(given) + " elements; it must have one for each of the " +
                                std::to_string(spatial) + " spatial axes of x" + (by_size ? "" : ", or one for all"));
  }
  for (std::size_t i = 0; i < spatial; ++i) {
    Dim& size = y[2 + i];
    if (by_size) {
      size = sizes[i];
      continue;
    }
    const Ratio scale = simplest_ratio(scales[given == 1 ? 0 : i]).value_or(Ratio{});
    if (scale.numerator != 1) size = size * scale.numerator;
    if (scale.denominator != 1) size = floor_div(size, scale.denominator);
  }
  return {y};
}

Status Upsampling::check_attributes() const {
  if (!scales.empty() && !sizes.empty()) {
    return invalid_argument("the attributes `scales` and `sizes` are both set; set only one of them");
  }
  if (scales.size() > max_spatial || sizes.size() > max_spatial) {
    return invalid_argument(
        "attribute `scales` or `sizes` has more than 3 elements; it may have one for each of at most 3 spatial axes");
  }
  for (const float scale : scales) {
    if (!simplest_ratio(scale)) {
      return invalid_argument("attribute `scales` contains " + std::to_string(scale) +
                              ", which is not the ratio of two integers of at most 2^30");
    }
  }
  return {};
}

Status Upsampling::check(const Problem& problem) const {
  const Extents& in = problem.inputs[0].extents;
  const Extents& out = problem.outputs[0].extents;
  for (int axis = 2; axis < in.rank(); ++axis) {
    const std::string where = "axis " + std::to_string(axis) + " of x: ";
    if (in[axis] > largest || out[axis] > largest) {
      return unsupported(where + "sizes up to 2^30 are supported, found " + std::to_string(in[axis]) +
                         " resampled to " + std::to_string(out[axis]));
    }
    if (in[axis] == 0 && out[axis] > 0) return invalid_argument(where + "this axis has no elements to sample from");
    if (scales.empty()) continue;
    // The frameworks compute the size in float. The exact size differs if the float product is rounded to the other
    // side of an integer.
    const float scale = scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(axis - 2)];
    const auto expected = static_cast<std::int64_t>(std::floor(static_cast<float>(in[axis]) * scale));
    if (expected != out[axis]) {
      return unsupported(where + std::to_string(in[axis]) + " times " + std::to_string(scale) + " is " +
                         std::to_string(expected) + " in float arithmetic and " + std::to_string(out[axis]) +
                         " exactly; set the attribute `sizes` instead of `scales`");
    }
  }
  return {};
}

std::optional<Function> Upsampling::function(const FunctionInputs& inputs) const {
  const std::size_t given = sizes.empty() ? scales.size() : sizes.size();
  const std::size_t spatial = given == 1 && sizes.empty() ? static_cast<std::size_t>(inputs.rank) - 2 : given;
  if (given == 0 || (given == 1 && sizes.empty() && (inputs.rank < 3 || inputs.rank > 5))) return std::nullopt;
  if (mode == Interpolation::cubic && spatial != 2) return std::nullopt;
  std::string function_name = std::string(name) + "_" + std::to_string(spatial) + "d";
  std::string body;
  std::string arguments;
  if (sizes.empty()) {
    // TensorRT reads scales only from a constant, so they are part of the body.
    function_name += "_by";
    std::string factors = "1.0, 1.0";
    for (std::size_t i = 0; i < spatial; ++i) {
      const float scale = scales[given == 1 ? 0 : i];
      const Ratio ratio = simplest_ratio(scale).value_or(Ratio{});
      function_name += "_" + std::to_string(ratio.numerator) + "_" + std::to_string(ratio.denominator);
      std::array<char, 64> text{};
      std::snprintf(text.data(), text.size(), "%.9e", static_cast<double>(scale));
      factors += std::string(", ") + text.data();
    }
    body = "factors = Constant<value_floats=[" + factors + "]>()\n";
    arguments = "x32, _, factors";
  } else {
    function_name += "_to_sizes";
    body =
        "outer = Shape<end=2>(x32)\n"
        "inner = Constant<value_ints=@sizes>()\n"
        "extents = Concat<axis=0>(outer, inner)\n";
    arguments = "x32, _, _, extents";
  }
  return function_in_f32(function_name, inputs.dtype,
                         body +
                             "y32 = Resize<mode=@mode, coordinate_transformation_mode=@coordinate_mode, "
                             "nearest_mode=@nearest_mode, cubic_coeff_a=@cubic_a>(" +
                             arguments + ")");
}

std::vector<DropIn> Upsampling::drop_ins() {
  const auto translate = [](std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) -> Status {
    for (const NamedAttribute& field : fields) {
      if (field.name == "scaleFactor") {
        attributes.push_back({"scales", std::vector{static_cast<float>(std::get<std::int64_t>(field.value))}});
      } else if (field.name == "scale") {
        const float scale = std::get<float>(field.value);
        attributes.push_back({"scales", std::vector{scale, scale}});  // H and W, all spatial axes of N,C,H,W
      } else if (std::get<std::int64_t>(field.value) != 0) {
        attributes.push_back({"coordinate_mode", std::string("align_corners")});
      }
    }
    return {};
  };
  return {{.plugin_name = "UpsamplePlugin",
           .version = "1",
           .fields = {{"scaleFactor", "", AttributeType::integer, "the factor of all spatial axes"},
                      {"alignCorners", "", AttributeType::integer, "1: align_corners, 0: half_pixel"}},
           .doc = "torch.nn.Upsample(mode=\"bilinear\") in networks from before TensorRT had Resize",
           .defaults = {{"mode", std::string("linear")}},
           .translate = translate},
          {.plugin_name = "ResizeNearest_TRT",
           .version = "1",
           .fields = {{.name = "scale",
                       .attribute = {},
                       .type = AttributeType::float_number,
                       .doc = "the factor of the last two axes",
                       .is_required = true}},
           .doc = "NVIDIA's plugin of TensorRT 5 to 11, for N,C,H,W",
           .defaults = {{"mode", std::string("nearest")},
                        {"coordinate_mode", std::string("asymmetric")},
                        {"nearest_mode", std::string("floor")}},
           .translate = translate}};
}

}  // namespace graft::ops
