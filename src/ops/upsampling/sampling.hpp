// Where the elements of Upsampling's output lie in its input, in exact arithmetic. Shared by reference and CUDA
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

/// The fraction of the smallest denominator that rounds to this float. Nothing if that takes more than 30 bits.
[[nodiscard]] std::optional<Ratio> simplest_ratio(float value);

/// One axis. Output element i lies at (step * i + offset) / divisor.
struct SampledAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t step = 1;
  std::int64_t offset = 0;
  std::int64_t divisor = 1;

  struct Position {
    std::int64_t index = 0;      ///< Rounded down; may lie outside of the input.
    std::int64_t remainder = 0;  ///< What is missing, of `divisor`.
  };
  [[nodiscard]] Position at(std::int64_t i) const {
    const std::int64_t place = step * i + offset;
    const std::int64_t index = place >= 0 ? place / divisor : -((divisor - 1 - place) / divisor);
    return {index, place - index * divisor};
  }
  /// Every output element is the input element of the same index.
  [[nodiscard]] bool is_identity() const { return step == divisor && offset == 0; }
};

/// The spatial axes, innermost last; an axis in front that x does not have has one element. For "nearest", positions
/// are such that rounding them down gives the nearest element.
[[nodiscard]] std::array<SampledAxis, Upsampling::max_spatial> sampled_axes(const Upsampling& op,
                                                                            const Problem& problem);

}  // namespace graft::ops
