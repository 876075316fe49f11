// Cases of BetaSwish: the problems with which its kernels are tested.
#pragma once

#include "beta_swish/beta_swish.hpp"
#include "ops/elementwise_cases.hpp"

namespace my_ops {

/// Returns cases of every type, layout and many sizes for two sets of attributes. `roundings` is the number of f32
/// roundings that `apply` performs in sequence.
inline std::vector<graft::ops::OperatorCase> cases(const BetaSwish& /*tag*/) {
  constexpr double roundings = 12;
  return graft::ops::elementwise_cases<BetaSwish>({{{"beta", 1.F}}, {{"beta", 1.5F}}}, roundings);
}

/// Returns the problems that `graft bench` times.
inline std::vector<graft::ops::TimedCase> timings(const BetaSwish& /*tag*/) {
  return graft::ops::in_formats(graft::ops::linear_formats, {{.inputs = {{.extents = {1, 64, 56, 56}}}}});
}

}  // namespace my_ops
