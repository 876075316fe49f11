// No kernel: the operator is loaded and not run.
#include "function_under_test/function_under_test.hpp"

graft::Status my::run(const FunctionUnderTest& /*op*/, const graft::Problem& /*problem*/,
                      const graft::Buffers& /*buffers*/, const graft::CpuContext& /*context*/) {
  return graft::invalid_argument("FunctionUnderTest has no kernel");
}
