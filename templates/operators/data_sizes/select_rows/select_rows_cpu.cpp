// Reference kernel of SelectRows.
#include <algorithm>

#include "ops/reference.hpp"
#include "select_rows/select_rows.hpp"

graft::Status my_ops::run(const SelectRows& op, const graft::Problem& problem, const graft::Buffers& buffers,
                          const graft::CpuContext& /*context*/) {
  return graft::ops::dispatch(problem.inputs[0].dtype, [&](auto element) -> graft::Status {
    using Element = decltype(element);
    const std::int64_t rows = problem.inputs[0].extents[0];
    const std::int64_t columns = problem.inputs[0].extents[1];
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    const auto* score = static_cast<const Element*>(buffers.inputs[1]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    std::int64_t count = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      if (!(graft::ops::load(score[row], 1) > static_cast<double>(op.threshold))) continue;  // NaN is not selected
      std::copy_n(x + row * columns, columns, y + count * columns);
      ++count;
    }
    graft::ops::store_size(problem.outputs[1].dtype, count, buffers.outputs[1]);
    return {};
  });
}
