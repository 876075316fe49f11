// The loop of the reference kernels that divide vectors by their Euclidean norm.
#pragma once

#include <cstdint>

#include "core/inverse_norm.hpp"
#include "core/reduction.hpp"
#include "ops/reference.hpp"

namespace graft::ops {

/// Computes y = x * inverse_norm(sum of squares) * weight(i) for element i of every vector of the plan, with sums in
/// double. `op` must have the members x_scale and y_scale.
template <class Definition, class Weight>
[[nodiscard]] Status normalize_cpu(const Definition& op, const ReductionPlan& plan, const InverseNorm& inverse_norm,
                                   const Weight& weight, const Problem& problem, const Buffers& buffers,
                                   const CpuContext& context) {
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(plan.kept_count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t vector = begin; vector < end; ++vector) {
        const std::int64_t base = offset_of(vector, plan.kept_extents, plan.kept_strides);
        const auto at = [&](std::int64_t i) { return base + offset_of(i, plan.reduced_extents, plan.reduced_strides); };
        double sum = 0;
        for (std::int64_t i = 0; i < plan.reduced_count; ++i) {
          const double value = load(x[at(i)], op.x_scale);
          sum += value * value;
        }
        // The CUDA kernels store the sum in f32. Rounding to f32 here lets the reference overflow for the same values.
        const double factor = inverse_norm(static_cast<double>(static_cast<float>(sum)));
        for (std::int64_t i = 0; i < plan.reduced_count; ++i) {
          y[at(i)] = store<Element>(load(x[at(i)], op.x_scale) * factor * weight(i), op.y_scale);
        }
      }
    });
    return {};
  });
}

}  // namespace graft::ops
