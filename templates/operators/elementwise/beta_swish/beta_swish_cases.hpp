// Cases of BetaSwish: what its kernels are tested with.
#pragma once

#include "beta_swish/beta_swish.hpp"
#include "ops/elementwise_cases.hpp"

namespace my_ops {

/// For two sets of attributes every type, layout and many sizes. `roundings`: in sequence, of `apply` in f32.
inline std::vector<graft::ops::OperatorCase> cases(const BetaSwish& /*tag*/) {
  constexpr double roundings = 12;
  return graft::ops::elementwise_cases<BetaSwish>({{{"beta", 1.F}}, {{"beta", 1.5F}}}, roundings);
}

/// What `graft bench` times.
inline std::vector<graft::ops::TimedCase> timings(const BetaSwish& /*tag*/) {
  return graft::ops::in_formats(graft::ops::linear_formats, {{.inputs = {{.extents = {1, 64, 56, 56}}}}});
}

}  // namespace my_ops
