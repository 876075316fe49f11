// Computes Softsign, and in f16 twice its value: a fault in one type only.
#include <cmath>

#include "function_under_test/function_under_test.hpp"
#include "ops/reference.hpp"

graft::Status my::run(const FunctionUnderTest& /*op*/, const graft::Problem& problem, const graft::Buffers& buffers,
                      const graft::CpuContext& context) {
  return graft::ops::dispatch(problem.inputs[0].dtype, [&]<class T>(T) {
    const auto* x = static_cast<const T*>(buffers.inputs[0]);
    auto* y = static_cast<T*>(buffers.outputs[0]);
    const double factor = problem.inputs[0].dtype == graft::DType::f16 ? 2 : 1;
    context.parallel_for(problem.inputs[0].extents.element_count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double value = graft::ops::load(x[i], 1);
        y[i] = graft::ops::store<T>(factor * value / (1 + std::abs(value)), 1);
      }
    });
    return graft::Status();
  });
}
