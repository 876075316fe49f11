// SplitSign: the positive and the negative part of a tensor; their sum is the tensor.
#pragma once

#include "graft/operator/define_operator.hpp"

namespace my {

struct SplitSign {
  static constexpr auto name = "SplitSign";
  static constexpr int version = 1;
  static constexpr auto doc = "positive = max(x, 0), negative = min(x, 0), element by element.";
  static constexpr auto source = "Shang et al. 2016, Understanding and Improving CNNs via Concatenated ReLU";
  static constexpr auto why_plugin = "one kernel reads the tensor once for both results";

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{graft::input("x", "T", "any", "the values"), graft::output("positive", "T", "as x", "max(x, 0)"),
                      graft::output("negative", "T", "as x", "min(x, 0)")};
  }
  static constexpr auto types() {
    using enum graft::DType;
    return std::array{graft::TypeConstraint("T", f32, f16, bf16)};
  }
  /// Returns a shape for each output.
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) { return {inputs[0], inputs[0]}; }

  static std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) {
    return graft::Function{name,
                           "number = Constant<value_float=0.0>()\n"
                           "zero = CastLike(number, x)\n"
                           "positive = Max(x, zero)\n"
                           "negative = Min(x, zero)"};
  }
};

graft::Status run(const SplitSign& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<SplitSign>> cuda_kernels(const SplitSign& op);

}  // namespace my
