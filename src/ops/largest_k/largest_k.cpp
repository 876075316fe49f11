// Definition of LargestK: workspace, ONNX function, TensorRT's own layer.
#include "ops/largest_k/largest_k.hpp"

#include "ops/largest_k/plan.hpp"

namespace graft::ops {
namespace {

std::string top_k_of(const std::string& x, const std::string& values, std::int64_t k) {
  return "count = Constant<value_ints=[" + std::to_string(k) + "]>()\n" + values +
         ", indices = TopK<axis=@axis, largest=@largest, sorted=@sorted>(" + x + ", count)";
}

}  // namespace

std::size_t LargestK::workspace(const Problem& problem) const {
  return static_cast<std::size_t>(LargestPlan(LargestRows(*this, problem), problem.inputs[0].dtype).bytes);
}

std::optional<Function> LargestK::function(const FunctionInputs& inputs) const {
  const std::string own_name = std::string(name) + "_" + std::to_string(k);
  if (inputs.dtype != DType::f16 && inputs.dtype != DType::bf16) return Function{own_name, top_k_of("x", "values", k)};
  return Function{own_name + "_narrow",
                  "x32 = Cast<to=1>(x)\n" + top_k_of("x32", "values32", k) + "\nvalues = CastLike(values32, x)"};
}

std::optional<std::string> LargestK::native_form(const FunctionInputs& /*inputs*/) const {
  constexpr std::int64_t most_native = 3840;
  if (k > most_native) return std::nullopt;
  return top_k_of("x", "values", k);
}

}  // namespace graft::ops
