// Cases of LeakyReLU.
#pragma once

#include "ops/elementwise_cases.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"

namespace graft {

[[nodiscard]] inline std::vector<OperatorCase> cases(const LeakyReLU& /*tag*/) {
  return elementwise_cases<LeakyReLU>({{{"alpha", 0.01F}}, {{"alpha", 0.F}}, {{"alpha", -1.5F}}}, 1);
}

[[nodiscard]] inline std::vector<TimedCase> timings(const LeakyReLU& /*tag*/) {
  const Attributes alpha{{"alpha", 0.1F}};
  const std::vector<TimedCase> shapes{
      {.attributes = alpha, .inputs = {{.extents = {16, 256, 128, 128}}}, .of_copy = 0.97},
      {.attributes = alpha, .inputs = {{.extents = {1, 64, 56, 56}}}},
  };
  return in_formats(linear_formats, shapes);
}

}  // namespace graft
