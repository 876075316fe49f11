// CausalConvWithState: a depthwise convolution along a sequence that reads only past elements, and returns the last K-1
// of them as the state of the next call.
#pragma once

#include "graft/operator/define_operator.hpp"

namespace graft::ops {

/// The activation that is applied to the sums before they are stored. ONNX has two names, silu and swish, for one
/// function.
enum class CausalActivation : std::uint8_t { none, silu, swish };
constexpr std::array<Choice<CausalActivation>, 3> choices(CausalActivation /*tag*/) {
  return {{{"none", CausalActivation::none}, {"silu", CausalActivation::silu}, {"swish", CausalActivation::swish}}};
}

/// A causal 1-D convolution with a state. An optional input that is missing while a later one is present (a state
/// without a bias) is passed as a tensor without elements.
struct CausalConvWithState {
  static constexpr auto name = "CausalConvWithState";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y[n,c,l] = activation(sum over k of weight[c,0,k] * s[n,c,l+k] + bias[c]), where s is past_state followed by x. "
      "present_state is the last K-1 elements of s: a sequence can be computed in chunks, each with the present_state "
      "of the chunk before it. Sums are accumulated in f32. silu and swish are z / (1 + exp(-z)).";
  static constexpr auto source = "ONNX CausalConvWithState 27; Gu and Dao 2023, Mamba; torch.nn.functional.conv1d";
  static constexpr auto why_plugin = "TensorRT has no convolution layer with a state";

  /// The indices of the inputs.
  enum : std::size_t { x, weight, bias, past_state };

  CausalActivation activation = CausalActivation::none;
  bool in_place = false;

  static constexpr auto attributes() {
    return std::tuple{
        attribute("activation", &CausalConvWithState::activation, "the activation that is applied to the sums"),
        attribute("in_place", &CausalConvWithState::in_place,
                  "with 1, TensorRT stores present_state in the memory of past_state, which is then required")};
  }
  static constexpr auto ports() {
    return std::array{
        input("x", "T", "N,C,L", "the sequence or, if it is computed in chunks, its next chunk"),
        input("weight", "T", "C,1,K", "the factors of each channel; the last factor is for the newest element"),
        optional_input("bias", "T", "C", "the bias that is added to the sums; 0 if the input is absent or empty"),
        optional_input("past_state", "T", "N,C,K-1", "the elements before x; 0 if the input is absent"),
        output("y", "T", "N,C,L", "the results, with the length of x"),
        output("present_state", "T", "N,C,K-1", "the state after x, which is the past_state of the next chunk")};
  }
  static constexpr auto types() {
    using enum DType;
    return std::array{TypeConstraint("T", f32, f16, bf16)};
  }
  [[nodiscard]] static OnnxForm onnx_form() { return {.name = "CausalConvWithState", .needs_override = true}; }
  [[nodiscard]] static std::vector<Shape> infer_shapes(std::span<const Shape> inputs);
  [[nodiscard]] std::optional<std::size_t> aliased_input(std::size_t output) const {
    return in_place && output == 1 ? std::optional<std::size_t>(past_state) : std::nullopt;
  }
  [[nodiscard]] static Status check(const Problem& problem);
  [[nodiscard]] static TensorDesc constant(std::size_t port, std::span<const TensorDesc> given);
  static void fill_constant(std::size_t /*port*/, const TensorDesc& /*desc*/, std::byte* /*bytes*/) {}
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
};

[[nodiscard]] Status run(const CausalConvWithState& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<CausalConvWithState>> cuda_kernels(const CausalConvWithState& op);

}  // namespace graft::ops
