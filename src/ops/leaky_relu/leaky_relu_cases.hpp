// Cases of LeakyReLU.
#pragma once

#include "ops/elementwise_cases.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"

namespace graft {

[[nodiscard]] inline std::vector<OperatorCase> cases(const LeakyReLU& /*tag*/) {
  return elementwise_cases<LeakyReLU>({{{"alpha", 0.01F}}, {{"alpha", 0.F}}, {{"alpha", -1.5F}}}, 1);
}

}  // namespace graft
