// The positions of the elements of Upsampling's output in its input, in exact arithmetic. Shared by reference and CUDA
// kernels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ops/upsampling/upsampling.hpp"

namespace graft::ops {

struct Ratio {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};

/// Returns the fraction with the smallest denominator that rounds to this float, or nothing if its terms exceed 2^30.
[[nodiscard]] std::optional<Ratio> simplest_ratio(float value);

/// The mapping of an axis of y to x: element i of y lies at position (step * i + offset) / divisor of x.
struct SampledAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t step = 1;
  std::int64_t offset = 0;
  std::int64_t divisor = 1;

  struct Position {
    std::int64_t index = 0;      ///< The index of the element, rounded down; may lie outside of the input.
    std::int64_t remainder = 0;  ///< The part after `index`, in units of 1 / divisor.
  };
  [[nodiscard]] Position at(std::int64_t i) const {
    const std::int64_t place = step * i + offset;
    const std::int64_t index = place >= 0 ? place / divisor : -((divisor - 1 - place) / divisor);
    return {index, place - index * divisor};
  }
  /// Returns whether every output element is the input element of the same index.
  [[nodiscard]] bool is_identity() const { return step == divisor && offset == 0; }
};

/// Returns the mappings of the spatial axes, innermost last; leading axes that x does not have get one element. For
/// "nearest", the positions are shifted so that rounding them down selects the nearest element.
[[nodiscard]] std::array<SampledAxis, Upsampling::max_spatial> sampled_axes(const Upsampling& op,
                                                                            const Problem& problem);

}  // namespace graft::ops
