// RegionAlign: pools regions of feature maps to a fixed size, each bin from bilinear samples.
#pragma once

#include <stdexcept>

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"

namespace graft::ops {

/// The position of pixel centers: half_pixel if centers lie at half-integer coordinates, so that 0.5 is subtracted from
/// the corners of a region; output_half_pixel if they lie at integer coordinates.
enum class RegionCoordinates : std::uint8_t { half_pixel, output_half_pixel };
constexpr std::array<Choice<RegionCoordinates>, 2> choices(RegionCoordinates /*tag*/) {
  return {{{"half_pixel", RegionCoordinates::half_pixel}, {"output_half_pixel", RegionCoordinates::output_half_pixel}}};
}

enum class RegionPooling : std::uint8_t { avg, max };
constexpr std::array<Choice<RegionPooling>, 2> choices(RegionPooling /*tag*/) {
  return {{{"avg", RegionPooling::avg}, {"max", RegionPooling::max}}};
}

struct RegionAlign {
  static constexpr auto name = "RegionAlign";
  static constexpr int version = 1;
  static constexpr auto doc =
      "A region, multiplied by spatial_scale to be in pixels of x, is divided into output_height x output_width bins, "
      "and a bin into equal cells. The sample at the center of a cell is interpolated bilinearly from the four pixels "
      "around it; more than a pixel outside the map it is 0. y is the mean of a bin's samples (avg), or the largest "
      "product of a pixel and its weight in a sample, as in ONNX (max). A pixel of weight 0 does not change a mean, "
      "even if it is NaN; NaN is the largest value. A region of an item that x does not have is 0.";
  static constexpr auto source = "He et al. 2017, Mask R-CNN; ONNX RoiAlign 16; torchvision.ops.roi_align";
  static constexpr auto why_plugin =
      "TensorRT-RTX builds RoiAlign with NVIDIA's plugin, which calls CUDA when it is created and fails without a GPU";

  RegionCoordinates coordinate_transformation_mode = RegionCoordinates::half_pixel;
  RegionPooling mode = RegionPooling::avg;
  std::int64_t output_height = 1;
  std::int64_t output_width = 1;
  std::int64_t sampling_ratio = 0;
  float spatial_scale = 1;

  static constexpr auto attributes() {
    using Self = RegionAlign;
    constexpr Range size{.lowest = 1, .highest = 1 << 15};
    return std::tuple{
        attribute("coordinate_transformation_mode", &Self::coordinate_transformation_mode,
                  "half_pixel subtracts half a pixel from coordinates; output_half_pixel does not, and regions are at "
                  "least a pixel wide and high"),
        attribute("mode", &Self::mode, "the way in which the samples of a bin are combined"),
        attribute("output_height", &Self::output_height, "the number of rows of bins", size),
        attribute("output_width", &Self::output_width, "the number of columns of bins", size),
        attribute(
            "sampling_ratio", &Self::sampling_ratio,
            "the number of samples along each side of a bin; 0 means the length of the side in pixels, rounded up",
            {.lowest = 0, .highest = 1 << 15}),
        attribute("spatial_scale", &Self::spatial_scale,
                  "the size of the map divided by the size of the image to which regions refer",
                  positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N,C,H,W", "the feature maps"),
                      input("rois", "T", "R,4", "the corners x1, y1, x2, y2 of each region"),
                      input("batch_indices", DType::i64, "R", "the index of the item of x for each region"),
                      output("y", "T", "R,C,output_height,output_width", "the pooled map of each region")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16)};
  }
  [[nodiscard]] static OnnxForm onnx_form() {
    return {.name = "RoiAlign", .changed_defaults = {"coordinate_transformation_mode"}, .needs_override = true};
  }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const {
    constexpr std::array<std::size_t, 3> ranks{4, 2, 1};
    for (std::size_t port = 0; port < ranks.size(); ++port) {
      if (inputs[port].size() == ranks[port]) continue;
      throw std::invalid_argument("`" + std::string(ports()[port].name) + "` has rank " +
                                  std::to_string(inputs[port].size()) + "; the rank must be " +
                                  std::to_string(ranks[port]));
    }
    return {{inputs[1][0], inputs[0][1], output_height, output_width}};
  }
  [[nodiscard]] static Status check(const Problem& problem) {
    const Extents& x = problem.inputs[0].extents;
    const Extents& rois = problem.inputs[1].extents;
    const Extents& items = problem.inputs[2].extents;
    if (rois[1] != 4 || rois[0] != items[0]) {
      return invalid_argument("RegionAlign: rois has shape " + to_string(rois) + " and batch_indices has shape " +
                              to_string(items) + "; the shapes must be R,4 and R");
    }
    constexpr std::int64_t most = 0x7FFFFFFF;  // The kernels index the pixels of a map in 32 bits.
    if (x[2] == 0 || x[3] <= most / x[2]) return {};
    return invalid_argument("RegionAlign: x has shape " + to_string(x) +
                            "; its maps may have at most 2147483647 pixels");
  }
  [[nodiscard]] static std::optional<Function> function(const FunctionInputs& inputs) {
    return function_in_f32(name, inputs.dtype,
                           "rois32 = Cast<to=1>(rois)\n"
                           "y32 = RoiAlign<coordinate_transformation_mode=@coordinate_transformation_mode, mode=@mode, "
                           "output_height=@output_height, output_width=@output_width, sampling_ratio=@sampling_ratio, "
                           "spatial_scale=@spatial_scale>(x32, rois32, batch_indices)");
  }
};

[[nodiscard]] Status run(const RegionAlign& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<RegionAlign>> cuda_kernels(const RegionAlign& op);

}  // namespace graft::ops
