// The operators of this test program: Graft's and those of the tests.
#include "test_operators.hpp"

#include "graft/operator/registry.hpp"
#include "ops/l2_normalize/l2_normalize.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"

namespace graft_test {

graft::Status run(const DoubledPlus& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context) {
  const auto* x = static_cast<const std::int64_t*>(buffers.inputs[0]);
  auto* y = static_cast<std::int64_t*>(buffers.outputs[0]);
  auto* z = static_cast<bool*>(buffers.outputs[1]);
  context.parallel_for(problem.inputs[0].extents.element_count(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = 2 * x[i] + op.bias;
      z[i] = x[i] > op.bias;
    }
  });
  return {};
}

std::span<const graft::Variant<DoubledPlus>> cuda_kernels(const DoubledPlus& /*op*/) { return {}; }

}  // namespace graft_test

std::span<const graft::OperatorType* const> graft::linked_operators() {
  static const std::array list{&graft::operator_type<graft::ops::LeakyReLU>(),
                               &graft::operator_type<graft::ops::L2Normalize>(),
                               &graft::operator_type<graft_test::DoubledPlus>()};
  return list;
}
