// Convolution: 1-D to 3-D, with groups, dilation, bias and a fused activation.
#pragma once

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"
#include "graft/operator/quantization.hpp"

namespace graft::ops {

/// The activation that is applied to sums before they are stored.
enum class Activation : std::uint8_t { none, relu, relu6, leaky_relu };
constexpr std::array<Choice<Activation>, 4> choices(Activation /*tag*/) {
  return {{{"none", Activation::none},
           {"relu", Activation::relu},
           {"relu6", Activation::relu6},
           {"leaky_relu", Activation::leaky_relu}}};
}

/// A 1-D to 3-D convolution. Padding adds zeros that are multiplied like any other element: an infinite weight on
/// padding yields NaN, as in a matrix product.
struct Convolution {
  static constexpr auto name = "Convolution";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y = activation(sum(weight * x) + bias), the sum over a window of the zero-padded x and the channels of a group. "
      "Sums are accumulated in f32, and sums of i8 exactly in 32-bit integers; i8 weights have a scale for each "
      "channel of y.";
  static constexpr auto source = "ONNX Conv; torch.nn.functional.conv1d, conv2d, conv3d; Caffe ConvolutionLayer";
  static constexpr auto why_plugin =
      "the input and output are int8 with scales per channel, the weights are fields of the plugin, or an older "
      "network uses the plugin CONVOLUTION";
  static constexpr auto why_plugin_for_floats =
      "its weights are fields of the plugin, or its activation is applied to the sums before they are stored, which no "
      "single TensorRT layer does; or an older network uses the plugin CONVOLUTION";
  static constexpr bool timed_variants = true;

  /// The indices of the inputs.
  enum : std::size_t { x, weight, bias, scale };
  static constexpr Int8Weight int8_weight{
      .input = weight, .numbers = "kernel_weights", .slices = "num_output", .scales = "weight_scale"};

  std::int64_t num_output = 0;
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> stride;
  std::vector<std::int64_t> pad;
  std::vector<std::int64_t> dilation;
  std::int64_t group = 1;
  Activation activation = Activation::none;
  float alpha = 0.01F;
  std::vector<float> kernel_weights;
  std::vector<float> bias_weights;
  bool allow_tf32 = false;
  float x_scale = 1;
  float y_scale = 1;
  std::vector<float> weight_scale;

  static constexpr auto attributes() {
    using C = Convolution;
    return std::tuple{
        attribute("num_output", &C::num_output, "the number of channels of y; with 0, it follows from the input weight",
                  at_least(0)),
        attribute("kernel", &C::kernel,
                  "the size of the window along each spatial axis; if empty, it follows from the input weight",
                  at_least(1)),
        attribute("stride", &C::stride, "the stride of the window along each spatial axis; if empty, 1", at_least(1)),
        attribute("pad", &C::pad,
                  "the number of zeros added before each spatial axis, followed by the number added after each, or one "
                  "value per axis for both sides; if empty, 0",
                  at_least(0)),
        attribute("dilation", &C::dilation,
                  "the distance between elements of the window along each spatial axis; if empty, 1", at_least(1)),
        attribute("group", &C::group, "the number of groups of channels, which are convolved separately", at_least(1)),
        attribute("activation", &C::activation, "the activation that is applied to the sums"),
        attribute("alpha", &C::alpha, "the slope of leaky_relu for negative values"),
        attribute("kernel_weights", &C::kernel_weights,
                  "the weights, row-major (num_output, channels / group, window), if the input weight is absent"),
        attribute("bias_weights", &C::bias_weights,
                  "the bias of each channel of y, if the input bias is absent; if empty, 0"),
        attribute("allow_tf32", &C::allow_tf32, "whether f32 is multiplied in TF32, which has 10 bits of fraction"),
        attribute("x_scale", &C::x_scale, x_scale_doc, positive_and_finite()),
        attribute("y_scale", &C::y_scale, y_scale_doc, positive_and_finite()),
        attribute("weight_scale", &C::weight_scale,
                  "for i8, the real value of one step of weight, for each channel of y or one for all, if the input "
                  "scale is absent; if empty, 1",
                  positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{
        input("x", "T", "N,C,spatial with 1 to 3 spatial axes", "the tensor to convolve").scaled_by("x_scale"),
        optional_input("weight", "T", "K,C/group,window",
                       "the weights; if absent, kernel_weights, which are quantized with weight_scale for i8")
            .scaled_by("weight_scale"),
        optional_input("bias", DType::f32, "K", "the bias; if absent, bias_weights"),
        optional_input("scale", DType::f32, "K", "for i8, the scales of the weights; if absent, weight_scale"),
        output("y", "T", "N,K,spatial", "same type as x").scaled_by("y_scale"),
    };
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16, i8, Format(f16, Layout::hwc8), Format(bf16, Layout::hwc8),
                                     Format(i8, Layout::chw32), Format(f32, Layout::hwc8))};
  }
  /// Returns false for f32 in hwc8 unless allow_tf32 is set, because f32 in that layout is for tensor cores, which
  /// multiply it in TF32.
  [[nodiscard]] bool accepts(const TypeRow& row, std::span<const int> /*input_ranks*/) const {
    return row.formats[x] != Format(DType::f32, Layout::hwc8) || allow_tf32;
  }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const;
  [[nodiscard]] Status check_attributes() const;
  [[nodiscard]] Status check(const Problem& problem) const;
  [[nodiscard]] TensorDesc constant(std::size_t port, std::span<const TensorDesc> given) const;
  void fill_constant(std::size_t port, const TensorDesc& desc, std::byte* bytes) const;
  [[nodiscard]] std::size_t workspace(const Problem& problem) const;
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] std::optional<std::string> native_form(const FunctionInputs& inputs) const;
  [[nodiscard]] static std::vector<NativeEquivalent> native_equivalents() {
    return {{.op = "Conv",
             .attributes = {{"kernel_shape", "kernel"},
                            {"strides", "stride"},
                            {"pads", "pad"},
                            {"dilations", "dilation"},
                            {"group", "group"}}}};
  }
  [[nodiscard]] static std::vector<DropIn> drop_ins();

  [[nodiscard]] std::int64_t stride_of(std::size_t axis) const { return stride.empty() ? 1 : stride[axis]; }
  [[nodiscard]] std::int64_t dilation_of(std::size_t axis) const { return dilation.empty() ? 1 : dilation[axis]; }
  [[nodiscard]] std::int64_t pad_before(std::size_t axis) const { return pad.empty() ? 0 : pad[axis]; }
  [[nodiscard]] std::int64_t pad_after(std::size_t axis, std::size_t axes) const {
    return pad.empty() ? 0 : pad[pad.size() > axes ? axes + axis : axis];
  }
};

[[nodiscard]] Status run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<Convolution>> cuda_kernels(const Convolution& op);

}  // namespace graft::ops
