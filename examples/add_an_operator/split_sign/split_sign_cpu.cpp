// Reference kernel of SplitSign.
#include "ops/reference.hpp"
#include "split_sign/split_sign.hpp"

graft::Status my::run(const SplitSign& /*op*/, const graft::Problem& problem, const graft::Buffers& buffers,
                      const graft::CpuContext& context) {
  return graft::ops::dispatch(problem.inputs[0].dtype, [&](auto element) -> graft::Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* positive = static_cast<Element*>(buffers.outputs[0]);
    auto* negative = static_cast<Element*>(buffers.outputs[1]);
    context.parallel_for(problem.inputs[0].extents.element_count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double value = graft::ops::load(x[i], 1);
        positive[i] = graft::ops::store<Element>(value < 0 ? 0 : value, 1);  // NaN stays NaN
        negative[i] = graft::ops::store<Element>(value > 0 ? 0 : value, 1);
      }
    });
    return {};
  });
}
