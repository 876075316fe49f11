// Gate: y = x * sigmoid(gate), a value and what decides how much of it passes.
#pragma once

#include "graft/define_operator.hpp"

namespace my {

struct Gate {
  static constexpr auto name = "Gate";
  static constexpr int version = 1;
  static constexpr auto doc = "y = x * sigmoid(gate), element by element.";
  static constexpr auto source = "Dauphin et al. 2017, Language Modeling with Gated Convolutional Networks";
  static constexpr auto why_plugin = "one kernel reads both tensors once";

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{graft::input("x", "any", "the values"), graft::input("gate", "as x", "before the sigmoid"),
                      graft::output("y", "as x", "of the type of x")};
  }
  /// A type for each port, inputs first.
  static constexpr auto type_rows() {
    using enum graft::DType;
    return std::array{graft::TypeRow(f32, f32, f32), graft::TypeRow(f16, f16, f16), graft::TypeRow(bf16, bf16, bf16)};
  }
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) { return {inputs[0]}; }

  static graft::Status check(const graft::Problem& problem) {
    const graft::Extents& x = problem.inputs[0].extents;
    const graft::Extents& gate = problem.inputs[1].extents;
    if (x == gate) return {};
    return graft::invalid_argument("Gate: `gate` is " + to_string(gate) + ", allowed is the shape of `x`, " +
                                   to_string(x));
  }
  static std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) {
    return graft::Function{name,
                           "share = Sigmoid(gate)\n"
                           "y = Mul(x, share)"};
  }
};

graft::Status run(const Gate& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<Gate>> cuda_kernels(const Gate& op);

}  // namespace my
