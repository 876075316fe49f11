// InstanceNorm: shifts and scales every channel of every item to mean 0 and variance 1.
#pragma once

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"
#include "graft/operator/quantization.hpp"

namespace graft::ops {

/// The activation after the normalization.
enum class InstanceNormActivation : std::uint8_t { none, relu, leaky_relu };
constexpr std::array<Choice<InstanceNormActivation>, 3> choices(InstanceNormActivation /*tag*/) {
  return {{{"none", InstanceNormActivation::none},
           {"relu", InstanceNormActivation::relu},
           {"leaky_relu", InstanceNormActivation::leaky_relu}}};
}

/// The operator InstanceNorm. The variance is stored in f32. If it overflows, which happens for deviations from about
/// 1.8e19 on, y is the bias.
struct InstanceNorm {
  static constexpr auto name = "InstanceNorm";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y = activation((x - mean) / sqrt(variance + epsilon) * scale + bias), with the mean and the variance (divided "
      "by "
      "the count) over the spatial axes of each channel of each item. leaky_relu: y >= 0 ? y : alpha * y.";
  static constexpr auto source =
      "Ulyanov et al. 2016, Instance Normalization: The Missing Ingredient for Fast Stylization; ONNX "
      "InstanceNormalization; torch.nn.functional.instance_norm";
  static constexpr auto why_plugin =
      "TensorRT's own InstanceNormalization has no int8 input and output and runs the activation as a separate layer; "
      "the plugin reads the tensor once and keeps the statistics in f32";
  static constexpr auto why_plugin_for_floats =
      "TensorRT's own InstanceNormalization runs the activation as a separate layer; the plugin reads the tensor once "
      "and keeps the statistics in f32";

  float epsilon = 1e-5F;
  InstanceNormActivation activation = InstanceNormActivation::none;
  float alpha = 0.01F;
  std::vector<float> scales;
  std::vector<float> bias;
  float x_scale = 1;
  float y_scale = 1;

  static constexpr auto attributes() {
    return std::tuple{
        attribute("epsilon", &InstanceNorm::epsilon, "the value that is added to the variance",
                  {.lowest = 0, .finite = true}),
        attribute("activation", &InstanceNorm::activation, "the activation that is applied after the normalization"),
        attribute("alpha", &InstanceNorm::alpha, "the slope of leaky_relu for negative y", {.finite = true}),
        attribute("scales", &InstanceNorm::scales,
                  "the factor of each channel, if the input scale is absent; if empty, 1"),
        attribute("bias", &InstanceNorm::bias, "the bias of each channel, if the input bias is absent; if empty, 0"),
        attribute("x_scale", &InstanceNorm::x_scale, x_scale_doc, positive_and_finite()),
        attribute("y_scale", &InstanceNorm::y_scale, y_scale_doc, positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{
        input("x", "T", "N,C,spatial...", "a tensor of rank 3 to 5").scaled_by("x_scale"),
        optional_input("scale", DType::f32, "C", "the factor of each channel; if absent, the attribute scales"),
        optional_input("bias", DType::f32, "C", "the bias of each channel; if absent, the attribute bias"),
        output("y", "T", "as x", "same type as x").scaled_by("y_scale")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16, i8)};
  }
  [[nodiscard]] static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {inputs[0]}; }
  [[nodiscard]] Status check(const Problem& problem) const;
  [[nodiscard]] TensorDesc constant(std::size_t port, std::span<const TensorDesc> given) const;
  void fill_constant(std::size_t port, const TensorDesc& desc, std::byte* bytes) const;
  /// The size in bytes of the statistics of channels that several blocks share. It does not depend on the shape, so
  /// that one workspace serves a whole range of shapes.
  static constexpr std::size_t split_workspace = 65536;
  [[nodiscard]] static std::size_t workspace(const Problem& /*problem*/) { return split_workspace; }
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] static std::vector<NativeEquivalent> native_equivalents() {
    return {{.op = "InstanceNormalization", .attributes = {{"epsilon", "epsilon"}}}};
  }
  [[nodiscard]] static std::vector<DropIn> drop_ins();

  /// Returns the negative slope of the activation: 1 without an activation, 0 for relu, `alpha` for leaky_relu.
  [[nodiscard]] float negative_slope() const {
    if (activation == InstanceNormActivation::none) return 1;
    return activation == InstanceNormActivation::relu ? 0 : alpha;
  }
};

[[nodiscard]] Status run(const InstanceNorm& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<InstanceNorm>> cuda_kernels(const InstanceNorm& op);

}  // namespace graft::ops
