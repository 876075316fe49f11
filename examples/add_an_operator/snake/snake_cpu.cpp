// Reference kernel of Snake.
#include "ops/reference.hpp"
#include "snake/snake.hpp"

graft::Status my::run(const Snake& op, const graft::Problem& problem, const graft::Buffers& buffers,
                      const graft::CpuContext& context) {
  return graft::ops::elementwise_cpu(op, problem, buffers, context);
}
