// Swish: y = x * sigmoid(x). It is not one of Graft's operators: fused_operator_test.py adds its folder to a copy of
// the tree.
#pragma once

#include <cmath>

#include "graft/operator/elementwise.hpp"

namespace graft::ops {

struct Swish : Elementwise {
  static constexpr auto name = "Swish";
  static constexpr int version = 1;
  static constexpr auto doc = "y = x / (1 + exp(-x)), element by element.";
  static constexpr auto source = "Ramachandran et al. 2017, Searching for Activation Functions";
  static constexpr auto why_plugin = "TensorRT would run two layers, each of which reads and writes the tensor";

  static constexpr auto attributes() { return with_scales(); }
  template <class T>
  GRAFT_HOST_DEVICE T apply(T x) const {
    using std::exp;
    return x / (T(1) + exp(-x));
  }
  static std::optional<Function> function(const FunctionInputs& inputs) {
    return function_in_f32(name, inputs.dtype, "gate = Sigmoid(x32)\ny32 = Mul(x32, gate)");
  }
};

[[nodiscard]] Status run(const Swish& op, const Problem& problem, const Buffers& buffers, const CpuContext& context);
[[nodiscard]] std::span<const Variant<Swish>> cuda_kernels(const Swish& op);

}  // namespace graft::ops
