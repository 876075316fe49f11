// Cases of L2NormHelper.
#pragma once

#include "ops/elementwise_cases.hpp"
#include "ops/l2norm_helper/l2norm_helper.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const L2NormHelper& /*tag*/) {
  std::vector<OperatorCase> cases = elementwise_cases<L2NormHelper>(
      {{{"op_type", std::int64_t{0}}}, {{"op_type", std::int64_t{1}}, {"eps", 0.25F}}}, 2);
  for (OperatorCase& each : cases) each.may_overflow = true;  // The root of a negative number is NaN.
  return cases;
}

}  // namespace graft::ops
