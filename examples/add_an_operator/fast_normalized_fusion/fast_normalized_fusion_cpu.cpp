// Reference kernel of FastNormalizedFusion, in double.
#include <vector>

#include "fast_normalized_fusion/fast_normalized_fusion.hpp"
#include "ops/reference.hpp"

graft::Status my::run(const FastNormalizedFusion& op, const graft::Problem& problem, const graft::Buffers& buffers,
                      const graft::CpuContext& context) {
  return graft::ops::dispatch(problem.inputs[0].dtype, [&](auto element) -> graft::Status {
    using Element = decltype(element);
    const auto* w = static_cast<const Element*>(buffers.inputs[0]);
    const std::size_t maps = problem.inputs.size() - 1;
    std::vector<double> weights;
    double divisor = op.epsilon;
    for (std::size_t i = 0; i < maps; ++i) {
      const double weight = graft::ops::load(w[i], 1);
      weights.push_back(weight < 0 ? 0 : weight);  // NaN stays NaN
      divisor += weights.back();
    }
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(problem.outputs[0].extents.element_count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; ++at) {
        double sum = 0;
        for (std::size_t i = 0; i < maps; ++i) {
          const auto* x = static_cast<const Element*>(buffers.inputs[1 + i]);
          sum += weights[i] / divisor * graft::ops::load(x[at], 1);
        }
        y[at] = graft::ops::store<Element>(sum, 1);
      }
    });
    return {};
  });
}
