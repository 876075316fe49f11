// Cases of LeakyReLU.
#pragma once

#include "ops/elementwise_cases.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"
#include "ops/random_cases.hpp"

namespace graft::ops {

[[nodiscard]] inline std::vector<OperatorCase> cases(const LeakyReLU& /*tag*/) {
  return elementwise_cases<LeakyReLU>({{{"alpha", 0.01F}}, {{"alpha", 0.F}}, {{"alpha", -1.5F}}}, 1);
}

[[nodiscard]] inline std::vector<TimedCase> timings(const LeakyReLU& /*tag*/) {
  const Attributes alpha{{"alpha", 0.1F}};
  const std::vector<TimedCase> shapes{
      {.attributes = alpha, .inputs = {{.extents = {16, 256, 128, 128}}}, .of_copy = 0.97},
      {.attributes = alpha, .inputs = {{.extents = {1, 64, 56, 56}}}},
  };
  std::vector<Format> formats = linear_formats;
  formats.emplace_back(DType::f8e4m3fn);
  return in_formats(formats, shapes);
}

/// Generates random tensors of rank 1 to 4.
[[nodiscard]] inline TimedCase draw(const LeakyReLU& /*tag*/, Draw& draw) {
  constexpr SizeRange rank{1, 4};
  constexpr SizeRange size{2, 1 << 22};
  const Extents extents = draw.shape([&] {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(draw.integer(rank)));
    for (std::int64_t& each : sizes) each = draw.size(size);
    return extents_of(sizes);
  });
  return {.attributes = {{"alpha", draw.one_of({0.01F, 0.1F, 0.3F})}},
          .inputs = {{.dtype = draw.one_of(drawn_dtypes), .extents = extents}}};
}

}  // namespace graft::ops
