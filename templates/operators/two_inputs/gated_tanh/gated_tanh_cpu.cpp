// Reference kernel of GatedTanh: computes in double.
#include <cmath>

#include "gated_tanh/gated_tanh.hpp"
#include "ops/reference.hpp"

graft::Status my_ops::run(const GatedTanh& op, const graft::Problem& problem, const graft::Buffers& buffers,
                          const graft::CpuContext& context) {
  return graft::ops::dispatch(problem.inputs[0].dtype, [&](auto element) -> graft::Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    const auto* gate = static_cast<const Element*>(buffers.inputs[1]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(problem.inputs[0].extents.element_count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double share = 1 / (1 + std::exp(-double{op.steepness} * graft::ops::load(gate[i], 1)));
        y[i] = graft::ops::store<Element>(std::tanh(graft::ops::load(x[i], 1)) * share, 1);
      }
    });
    return {};
  });
}
