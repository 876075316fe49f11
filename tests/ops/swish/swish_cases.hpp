// Cases of Swish.
#pragma once

#include "ops/elementwise_cases.hpp"
#include "ops/swish/swish.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const Swish& /*tag*/) { return elementwise_cases<Swish>({{}}, 3); }

[[nodiscard]] inline std::vector<TimedCase> timings(const Swish& /*tag*/) {
  return in_formats(linear_formats, std::vector<TimedCase>{{.inputs = {{.extents = {1, 64, 56, 56}}}}});
}

}  // namespace graft::ops
