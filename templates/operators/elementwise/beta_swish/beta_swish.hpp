// BetaSwish: y = x * sigmoid(beta * x), an activation.
#pragma once

#include <cmath>

#include "graft/operator/elementwise.hpp"

namespace my_ops {

struct BetaSwish : graft::Elementwise {
  static constexpr auto name = "BetaSwish";
  static constexpr int version = 1;
  static constexpr auto doc = "y = x * sigmoid(beta * x), element by element.";
  static constexpr auto source = "Ramachandran et al. 2017, Searching for Activation Functions";
  static constexpr auto why_plugin = "TensorRT would run it as several layers";

  float beta = 1;

  static constexpr auto attributes() {
    return with_scales(attribute("beta", &BetaSwish::beta, "how steep it is at 0", graft::positive_and_finite()));
  }
  /// Computes one element. The reference kernel calls this function with double, the CUDA kernels with float.
  template <class T>
  GRAFT_HOST_DEVICE T apply(T x) const {
    using std::exp;
    return x / (T(1) + exp(-T(beta) * x));
  }
  /// Returns the operator as standard ONNX operators, for runtimes without this library.
  static std::optional<graft::Function> function(const graft::FunctionInputs& inputs) {
    return graft::function_in_f32(name, inputs.dtype,
                                  "beta = Constant<value_float=@beta>()\n"
                                  "steep = Mul(beta, x32)\n"
                                  "gate = Sigmoid(steep)\n"
                                  "y32 = Mul(x32, gate)");
  }
};

graft::Status run(const BetaSwish& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<BetaSwish>> cuda_kernels(const BetaSwish& op);

}  // namespace my_ops
