// Upsampling: resamples the spatial axes of N,C,spatial by factors or to sizes.
#pragma once

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"
#include "graft/operator/quantization.hpp"

namespace graft::ops {

enum class Interpolation : std::uint8_t { nearest, linear, cubic };
constexpr std::array<Choice<Interpolation>, 3> choices(Interpolation /*tag*/) {
  return {{{"nearest", Interpolation::nearest}, {"linear", Interpolation::linear}, {"cubic", Interpolation::cubic}}};
}

/// The position of the center of output element i in the input.
enum class CoordinateMode : std::uint8_t {
  half_pixel,     ///< Output element i lies at (i + 0.5) / scale - 0.5.
  align_corners,  ///< Output element i lies at i * (in - 1) / (out - 1), or at 0 if out is 1.
  asymmetric,     ///< Output element i lies at i / scale.
};
constexpr std::array<Choice<CoordinateMode>, 3> choices(CoordinateMode /*tag*/) {
  return {{{"half_pixel", CoordinateMode::half_pixel},
           {"align_corners", CoordinateMode::align_corners},
           {"asymmetric", CoordinateMode::asymmetric}}};
}

/// The rule by which mode "nearest" rounds a position to the index of an element.
enum class NearestMode : std::uint8_t { floor, round_prefer_floor, round_prefer_ceil, ceil };
constexpr std::array<Choice<NearestMode>, 4> choices(NearestMode /*tag*/) {
  return {{{"floor", NearestMode::floor},
           {"round_prefer_floor", NearestMode::round_prefer_floor},
           {"round_prefer_ceil", NearestMode::round_prefer_ceil},
           {"ceil", NearestMode::ceil}}};
}

/// Resizes the spatial axes of x. A scale is the simplest fraction that rounds to the given float, such as 13/10 for
/// 1.3, so that sizes and coordinates are exact. Elements outside the tensor equal the element at the edge. If a
/// coordinate is an integer, the result is the element at this coordinate, whatever its neighbors are.
struct Upsampling {
  static constexpr auto name = "Upsampling";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y[i] = x at (i + 0.5) / scale - 0.5 (half_pixel), i * (in - 1) / (out - 1) (align_corners) or i / scale "
      "(asymmetric) along every spatial axis: the nearest element, linear interpolation of two neighbors, or Keys' "
      "cubic convolution of four. Sizes are floor(in * scale), or the attribute sizes.";
  static constexpr auto source =
      "torch.nn.functional.interpolate, ONNX Resize; cubic: Keys 1981, Cubic Convolution Interpolation for Digital "
      "Image Processing";
  static constexpr auto why_plugin =
      "TensorRT's Resize has no int8 input and output and rounds coordinates to float; UpsamplePlugin is not part of "
      "TensorRT";
  static constexpr auto why_plugin_for_floats =
      "TensorRT's Resize rounds coordinates to float; plugins named UpsamplePlugin and ResizeNearest_TRT are not part "
      "of TensorRT 11";
  // TensorRT times the variants, because a later variant took .47 to .82 of the time of the first one that fits in 3 of
  // 60 random problems on an H200.
  static constexpr bool timed_variants = true;
  static constexpr int max_spatial = 3;
  static constexpr std::int64_t largest_size = std::int64_t{1} << 30;  ///< Products of two sizes fit into 64 bits.

  Interpolation mode = Interpolation::nearest;
  std::vector<float> scales;
  std::vector<std::int64_t> sizes;
  CoordinateMode coordinate_mode = CoordinateMode::half_pixel;
  NearestMode nearest_mode = NearestMode::round_prefer_floor;
  float cubic_a = -0.75F;
  float x_scale = 1;
  float y_scale = 1;

  static constexpr auto attributes() {
    return std::tuple{
        attribute("mode", &Upsampling::mode, "the method by which values between elements are interpolated"),
        attribute("scales", &Upsampling::scales,
                  "the output size divided by the input size, one value for all spatial axes or one for each",
                  positive_and_finite()),
        attribute("sizes", &Upsampling::sizes, "the output sizes of the spatial axes, instead of scales",
                  {.lowest = 1, .highest = largest_size}),
        attribute("coordinate_mode", &Upsampling::coordinate_mode,
                  "the formula for the position of an output element in the input"),
        attribute("nearest_mode", &Upsampling::nearest_mode,
                  "for the mode nearest, the rounding that selects the neighbor"),
        attribute("cubic_a", &Upsampling::cubic_a, "for the mode cubic, the slope of the kernel at distance 1",
                  {.finite = true}),
        attribute("x_scale", &Upsampling::x_scale, x_scale_doc, positive_and_finite()),
        attribute("y_scale", &Upsampling::y_scale, y_scale_doc, positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N,C,spatial of rank 3 to 5", "the tensor to resample").scaled_by("x_scale"),
                      output("y", "T", "N,C and the new spatial sizes", "same type as x").scaled_by("y_scale")};
  }
  static constexpr auto types() { return std::array{every_format_and_f8}; }
  /// Returns false for f8e4m3fn unless the mode is "nearest" and the scales are equal, in which case elements are only
  /// copied.
  [[nodiscard]] bool accepts(const TypeRow& row, std::span<const int> input_ranks) const;
  [[nodiscard]] bool is_data_movement() const { return mode == Interpolation::nearest; }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const;
  [[nodiscard]] Status check_attributes() const;
  [[nodiscard]] Status check(const Problem& problem) const;
  /// Returns the ONNX function, or nothing for a single scale with an unknown rank, and for cubic interpolation of any
  /// other number of axes than two, which ONNX Runtime does not support.
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] static std::vector<DropIn> drop_ins();
};

[[nodiscard]] Status run(const Upsampling& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<Upsampling>> cuda_kernels(const Upsampling& op);

}  // namespace graft::ops
