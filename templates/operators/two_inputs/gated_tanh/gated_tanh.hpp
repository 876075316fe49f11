// GatedTanh: y = tanh(x) * sigmoid(steepness * gate), a value and a gate that decides how much of the value passes.
#pragma once

#include "graft/operator/define_operator.hpp"

namespace my_ops {

struct GatedTanh {
  static constexpr auto name = "GatedTanh";
  static constexpr int version = 1;
  static constexpr auto doc = "y = tanh(x) * sigmoid(steepness * gate), element by element.";
  static constexpr auto source = "van den Oord et al. 2016, WaveNet: A Generative Model for Raw Audio";
  static constexpr auto why_plugin = "one kernel reads both tensors once";

  float steepness = 1;

  static constexpr auto attributes() {
    return std::tuple{graft::attribute("steepness", &GatedTanh::steepness, "how steep the gate is at 0",
                                       graft::positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{graft::input("x", "T", "any", "the values"),
                      graft::input("gate", "T", "as x", "before the sigmoid"),
                      graft::output("y", "T", "as x", "of the type of x")};
  }
  /// The types that each name in the ports may have.
  static constexpr auto types() {
    using enum graft::DType;
    return std::array{graft::TypeConstraint("T", f32, f16, bf16)};
  }
  /// Infers the shape of each output.
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) { return {inputs[0]}; }

  /// Checks sizes that are known only at run time.
  static graft::Status check(const graft::Problem& problem) {
    const graft::Extents& x = problem.inputs[0].extents;
    const graft::Extents& gate = problem.inputs[1].extents;
    if (x == gate) return {};
    return graft::invalid_argument("GatedTanh: `gate` is " + to_string(gate) + ", allowed is the shape of `x`, " +
                                   to_string(x));
  }
  /// Returns the operator as standard ONNX operators, for runtimes without this library. It computes in f32, as the
  /// kernels do, whatever the type of the inputs.
  static std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) {
    return graft::Function{name,
                           "x32 = Cast<to=f32>(x)\n"
                           "gate32 = Cast<to=f32>(gate)\n"
                           "steepness = Constant<value_float=@steepness>()\n"
                           "steep = Mul(steepness, gate32)\n"
                           "value = Tanh(x32)\n"
                           "share = Sigmoid(steep)\n"
                           "y32 = Mul(value, share)\n"
                           "y = CastLike(y32, x)"};
  }
};

graft::Status run(const GatedTanh& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<GatedTanh>> cuda_kernels(const GatedTanh& op);

}  // namespace my_ops
