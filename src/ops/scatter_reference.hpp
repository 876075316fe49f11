// The reference kernel of ScatterReduceND and ScatterReduceElements.
#pragma once

#include <type_traits>
#include <vector>

#include "core/scatter.hpp"
#include "ops/reference.hpp"

namespace graft::ops {

/// Computes y from data and the updates, in the order of the updates. f16 and bf16 are reduced in f32 and rounded once.
/// `row_of` returns the row of an update, or a negative number if the update is dropped.
template <class RowOf>
[[nodiscard]] Status scatter_cpu(ScatterReduction reduction, const ScatterSizes& sizes, DType dtype,
                                 const Buffers& buffers, const RowOf& row_of) {
  return dispatch_any(dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    using Sum = std::conditional_t<std::is_integral_v<Element>, Element, float>;
    const auto* data = static_cast<const Element*>(buffers.inputs[0]);
    const auto* updates = static_cast<const Element*>(buffers.inputs[2]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    std::vector<Sum> sums(data, data + sizes.rows * sizes.slice);
    for (std::int64_t update = 0; update < sizes.updates; ++update) {
      const std::int64_t row = row_of(update);
      if (row < 0) continue;
      for (std::int64_t i = 0; i < sizes.slice; ++i) {
        Sum& sum = sums[static_cast<std::size_t>(row * sizes.slice + i)];
        sum = reduced(reduction, sum, static_cast<Sum>(updates[update * sizes.slice + i]));
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) y[i] = static_cast<Element>(sums[i]);
    return {};
  });
}

}  // namespace graft::ops
