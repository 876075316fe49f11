// Definition of L2Normalize: checks and ONNX function.
#include "ops/l2_normalize/l2_normalize.hpp"

#include "core/reduction.hpp"

namespace graft::ops {

bool L2Normalize::accepts(const TypeRow& row, std::span<const int> input_ranks) const {
  if (row.formats[0].layout == Layout::linear) return true;
  return axes.size() == 1 && (axes[0] == 1 || axes[0] == 1 - input_ranks[0]);
}

Status L2Normalize::check_attributes() const {
  if (axes.empty()) return invalid_argument("attribute `axes` is empty; it must contain at least one axis");
  return {};
}

Status L2Normalize::check(const Problem& problem) const {
  ReductionPlan plan;
  return plan_reduction(problem.inputs[0].extents, axes, plan);
}

std::optional<Function> L2Normalize::function(const FunctionInputs& inputs) const {
  const std::string sum =
      "axes = Constant<value_ints=@axes>()\n"
      "bound = Constant<value_float=@epsilon>()\n"
      "squares = Mul(x32, x32)\n"
      "sum = ReduceSum<keepdims=1>(squares, axes)\n";
  switch (epsilon_mode) {
    case EpsilonMode::max:
      return function_in_f32("L2Normalize_max", inputs.dtype,
                             sum + "bounded = Max(sum, bound)\nnorm = Sqrt(bounded)\ny32 = Div(x32, norm)");
    case EpsilonMode::norm:
      return function_in_f32("L2Normalize_norm", inputs.dtype,
                             sum + "root = Sqrt(sum)\nnorm = Max(root, bound)\ny32 = Div(x32, norm)");
    case EpsilonMode::add:
      return function_in_f32("L2Normalize_add", inputs.dtype,
                             sum + "padded = Add(sum, bound)\nnorm = Sqrt(padded)\ny32 = Div(x32, norm)");
  }
  return std::nullopt;
}

}  // namespace graft::ops
