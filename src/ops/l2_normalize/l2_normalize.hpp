// L2Normalize: divides vectors by their Euclidean norm over any set of axes.
#pragma once

#include "core/inverse_norm.hpp"
#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"
#include "graft/operator/quantization.hpp"

namespace graft::ops {

using graft::EpsilonMode;

/// The operator L2Normalize. Sums of squares are stored in f32, so they become infinite if |x| exceeds about 1.8e19, as
/// in the frameworks.
struct L2Normalize {
  static constexpr auto name = "L2Normalize";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y = x / norm(x) with the Euclidean norm over `axes`; epsilon_mode selects how a division by zero is avoided: "
      "max: x * rsqrt(max(sum(x^2), epsilon)); norm: x / max(sqrt(sum(x^2)), epsilon); add: x / sqrt(sum(x^2) + "
      "epsilon).";
  static constexpr auto source =
      "tf.math.l2_normalize (max), torch.nn.functional.normalize (norm), Caffe NormalizeLayer (add)";
  static constexpr auto why_plugin =
      "no single TensorRT layer has this epsilon (LpNormalization has no epsilon); the plugin reads the tensor once "
      "and sums in f32";

  std::vector<std::int64_t> axes{1};
  float epsilon = 1e-12F;
  EpsilonMode epsilon_mode = EpsilonMode::max;
  float x_scale = 1;
  float y_scale = 1;

  static constexpr auto attributes() {
    return std::tuple{
        attribute("axes", &L2Normalize::axes, "the axes of the norm; negative axes count from the end"),
        attribute("epsilon", &L2Normalize::epsilon, "the value that avoids a division by zero, see epsilon_mode",
                  {.lowest = 0, .finite = true}),
        attribute("epsilon_mode", &L2Normalize::epsilon_mode, "the place of epsilon in the formula"),
        attribute("x_scale", &L2Normalize::x_scale, x_scale_doc, positive_and_finite()),
        attribute("y_scale", &L2Normalize::y_scale, y_scale_doc, positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{input("x", "T", "any of rank 1 to 8", "the vectors to normalize").scaled_by("x_scale"),
                      output("y", "T", "as x", "same type as x").scaled_by("y_scale")};
  }
  static constexpr auto types() { return std::array{every_format}; }
  /// Returns false for a channel-vector layout unless the norm is computed over the channels; true for other layouts.
  [[nodiscard]] bool accepts(const TypeRow& row, std::span<const int> input_ranks) const;
  [[nodiscard]] static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {inputs[0]}; }
  [[nodiscard]] Status check_attributes() const;
  [[nodiscard]] Status check(const Problem& problem) const;
  /// The size in bytes of the sums of vectors that several blocks share. It does not depend on the shape, so that one
  /// workspace serves a whole range of shapes.
  static constexpr std::size_t split_workspace = 65536;
  [[nodiscard]] static std::size_t workspace(const Problem& /*problem*/) { return split_workspace; }
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
};

[[nodiscard]] Status run(const L2Normalize& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<L2Normalize>> cuda_kernels(const L2Normalize& op);

}  // namespace graft::ops
