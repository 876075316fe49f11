// L2NormHelper: the two elementwise parts, Rsqrt and Maximum, into which old graphs split l2_normalize.
#pragma once

#include "graft/operator/elementwise.hpp"

namespace graft::ops {

struct L2NormHelper : Elementwise {
  static constexpr auto name = "L2NormHelper";
  static constexpr int version = 1;
  static constexpr auto doc = "op_type 0: y = 1 / sqrt(x). op_type 1: y = max(x, eps). Deprecated: use L2Normalize.";
  static constexpr auto source = "the subgraph of tf.math.l2_normalize: Rsqrt and Maximum";
  static constexpr auto why_plugin = "an older network uses the plugin l2norm_helper";

  std::int64_t op_type = 0;
  float eps = 1e-12F;

  static constexpr auto attributes() {
    return with_scales(required_attribute("op_type", &L2NormHelper::op_type, "the operation: 0 is rsqrt, 1 is max",
                                          {.lowest = 0, .highest = 1}),
                       attribute("eps", &L2NormHelper::eps, "the lower bound for op_type 1; op_type 0 ignores it"));
  }
  template <class T>
  GRAFT_HOST_DEVICE T apply(T x) const {
    if (op_type == 0) return T(1) / sqrt(x);
    return x < T(eps) ? T(eps) : x;  // NaN is returned unchanged, as by tf.maximum.
  }
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const {
    if (op_type == 0)
      return function_in_f32("L2NormHelper_rsqrt", inputs.dtype, "root = Sqrt(x32)\ny32 = Reciprocal(root)");
    return function_in_f32("L2NormHelper_max", inputs.dtype,
                           "bound = Constant<value_float=@eps>()\ny32 = Max(x32, bound)");
  }
  static std::vector<DropIn> drop_ins() {
    return {
        {"l2norm_helper", "1", {{"op_type", "op_type"}, {"eps", "eps"}}, "plugin of the 3-D bounding-box write-up"}};
  }
};

[[nodiscard]] Status run(const L2NormHelper& op, const Problem& problem, const Buffers& buffers,
                         const CpuContext& context);
[[nodiscard]] std::span<const Variant<L2NormHelper>> cuda_kernels(const L2NormHelper& op);

}  // namespace graft::ops
