// SpatialPyramidPooling: pools images of any size to vectors of one length.
#pragma once

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"
#include "graft/operator/quantization.hpp"
#include "ops/spatial_pyramid_pooling/bins.hpp"

namespace graft::ops {

enum class PoolingMode : std::uint8_t { max, average };
constexpr std::array<Choice<PoolingMode>, 2> choices(PoolingMode /*tag*/) {
  return {{{"max", PoolingMode::max}, {"average", PoolingMode::average}}};
}
constexpr std::array<Choice<Binning>, 3> choices(Binning /*tag*/) {
  return {{{"adaptive", Binning::adaptive}, {"window", Binning::window}, {"caffe", Binning::caffe}}};
}

struct SpatialPyramidPooling {
  static constexpr auto name = "SpatialPyramidPooling";
  static constexpr int version = 1;
  static constexpr auto doc =
      "For each level n, C x H x W is pooled to C x n x n and flattened; the levels are concatenated to N x C*sum(n^2) "
      "for every H and W. Bin i of n covers, with `binning` adaptive, floor(i*H/n) to ceil((i+1)*H/n); with window, "
      "ceil(H/n) from i*floor(H/n) on; with caffe, kernel = ceil(H/n) from i*kernel - pad on, pad = floor((kernel*n - "
      "H + 1)/2), where an average divides by kernel^2. A bin with a NaN is NaN.";
  static constexpr auto source =
      "He et al. 2015, Spatial Pyramid Pooling in Deep Convolutional Networks for Visual Recognition (window); "
      "torch.nn.AdaptiveMaxPool2d, AdaptiveAvgPool2d (adaptive); Caffe SPPLayer (caffe)";
  static constexpr auto why_plugin =
      "TensorRT would read the tensor once for each level, and its pooling windows cannot depend on dynamic sizes; the "
      "plugin reads it once for all levels";

  std::vector<std::int64_t> levels{4, 2, 1};
  PoolingMode mode = PoolingMode::max;
  Binning binning = Binning::adaptive;
  float x_scale = 1;
  float y_scale = 1;

  static constexpr auto attributes() {
    return std::tuple{
        attribute("levels", &SpatialPyramidPooling::levels, "the number of bins along each side, level by level",
                  {.lowest = 1, .highest = 1024}),
        attribute("mode", &SpatialPyramidPooling::mode, "the pooling of a bin: its maximum or its average"),
        attribute("binning", &SpatialPyramidPooling::binning, "the rule that determines the elements of each bin"),
        attribute("x_scale", &SpatialPyramidPooling::x_scale, x_scale_doc, positive_and_finite()),
        attribute("y_scale", &SpatialPyramidPooling::y_scale, y_scale_doc, positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{
        input("x", "T", "N,C,H,W", "images or feature maps").scaled_by("x_scale"),
        output("y", "T", "N,C*sum(n^2)", "same type as x; C x n x n level by level").scaled_by("y_scale")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16, i8)};
  }
  [[nodiscard]] static bool accepts(const TypeRow& /*row*/, std::span<const int> input_ranks) {
    return input_ranks[0] == 4;
  }
  [[nodiscard]] bool is_data_movement() const { return mode == PoolingMode::max; }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const;
  [[nodiscard]] Status check_attributes() const;
  [[nodiscard]] Status check(const Problem& problem) const;
  /// The size in bytes of the workspace for the strips of planes that blocks share. It does not depend on the shape, so
  /// that one workspace serves a whole range of shapes.
  static constexpr std::size_t shared_planes_workspace = 262144;
  [[nodiscard]] static std::size_t workspace(const Problem& /*problem*/) { return shared_planes_workspace; }
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] static std::vector<DropIn> drop_ins();

  [[nodiscard]] std::int64_t bins_per_channel() const;
};

[[nodiscard]] Status run(const SpatialPyramidPooling& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<SpatialPyramidPooling>> cuda_kernels(const SpatialPyramidPooling& op);

}  // namespace graft::ops
