// DeformableConvolution: a convolution whose window samples the image at positions that an input moves.
#pragma once

#include "graft/operator/define_operator.hpp"

namespace graft::ops {

struct DeformableConvolution {
  static constexpr auto name = "DeformableConvolution";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y = sum(weight * mask * x at the window's elements, each moved by its offset) + bias. x is interpolated "
      "bilinearly from the four pixels around a position; pixels outside the image are 0, and a NaN position is "
      "outside. The channels of an offset group share offsets and mask. Positions are computed and sums are "
      "accumulated in f32. Kernels on tensor cores round f16 and bf16 samples to that type before they are multiplied, "
      "and compute "
      "each f32 product from three TF32 products.";
  static constexpr auto source =
      "Dai et al. 2017, Deformable Convolutional Networks; Zhu et al. 2018, Deformable ConvNets v2; ONNX DeformConv "
      "19; torchvision.ops.deform_conv2d";
  static constexpr auto why_plugin =
      "TensorRT-RTX has no layer for DeformConv; the plugin samples and multiplies in one kernel without an "
      "intermediate tensor";

  /// The indices of the inputs.
  enum : std::size_t { x, weight, offset, bias, mask };

  std::vector<std::int64_t> dilations;
  std::int64_t group = 1;
  std::vector<std::int64_t> kernel_shape;
  std::int64_t offset_group = 1;
  std::vector<std::int64_t> pads;
  std::vector<std::int64_t> strides;

  static constexpr auto attributes() {
    using D = DeformableConvolution;
    constexpr Range positive{.lowest = 1, .highest = 1 << 30};
    return std::tuple{
        attribute("dilations", &D::dilations,
                  "the vertical and the horizontal distance between elements of the window; if empty, 1", positive),
        attribute("group", &D::group, "the number of groups of channels, which are convolved separately", positive),
        attribute("kernel_shape", &D::kernel_shape,
                  "the height and width of the window; if empty, they follow from weight", positive),
        attribute("offset_group", &D::offset_group, "the number of groups of channels that share offsets", positive),
        attribute(
            "pads", &D::pads,
            "the number of rows and columns of zeros added above, left of, below and right of the image; if empty, 0",
            {.lowest = 0, .highest = 1 << 30}),
        attribute("strides", &D::strides, "the vertical and the horizontal stride of the window; if empty, 1",
                  positive)};
  }
  static constexpr auto ports() {
    return std::array{
        input("x", "T", "N,C,H,W", "the image"),
        input("weight", "T", "K,C/group,kernel_shape", "the filters"),
        input("offset", "T", "N,offset_group*window*2,OH,OW",
              "the vertical and then the horizontal offset of each element of the window, for each pixel of y"),
        optional_input("bias", "T", "K or 0", "the bias that is added to the sums; 0 if the input is absent or empty"),
        optional_input("mask", "T", "N,offset_group*window,OH,OW or 0",
                       "the factors of the samples; 1 if the input is absent or empty"),
        output("y", "T", "N,K,OH,OW", "same type as x")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16)};
  }
  [[nodiscard]] static OnnxForm onnx_form() { return {.name = "DeformConv"}; }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const;
  [[nodiscard]] Status check_attributes() const;
  [[nodiscard]] Status check(const Problem& problem) const;
  /// Returns the description of the tensor that replaces the bias or the mask if a node omits it: a tensor without
  /// elements, in the type of x. It has no elements because a mask of ones would take as much memory as a real mask.
  /// `given` are the descriptions of the node's inputs.
  [[nodiscard]] static TensorDesc constant(std::size_t /*port*/, std::span<const TensorDesc> given) {
    return {.dtype = given[x].dtype, .extents = {0}};
  }
  static void fill_constant(std::size_t /*port*/, const TensorDesc& /*desc*/, std::byte* /*bytes*/) {}
  [[nodiscard]] std::size_t workspace(const Problem& problem) const;
  [[nodiscard]] static std::vector<DropIn> drop_ins();
};

[[nodiscard]] Status run(const DeformableConvolution& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<DeformableConvolution>> cuda_kernels(const DeformableConvolution& op);

}  // namespace graft::ops
