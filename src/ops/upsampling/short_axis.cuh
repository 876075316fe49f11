// An axis of Upsampling whose sizes and offsets fit into 31 bits.
#pragma once

#include "ops/upsampling/task.cuh"

namespace graft::ops {
namespace detail {

/// A SampledAxis whose positions, multiplied by the divisor, all fit into 31 bits.
struct ShortAxis {
  int in;
  int out;
  unsigned step;
  unsigned start;       ///< The offset plus the divisor, so that no number is negative.
  unsigned whole_step;  ///< The integer part of step / divisor: step = whole_step * divisor + part_step.
  unsigned part_step;
  float inverse;  ///< The value 1 / divisor.
  QuickDivision by_divisor;

  [[nodiscard]] static bool fits(const SampledAxis& axis) {
    return axis.step * axis.out + axis.offset + axis.divisor < UpsamplingTask::most_quick_items;
  }
  [[nodiscard]] static ShortAxis make(const SampledAxis& axis) {
    return {.in = static_cast<int>(axis.in),
            .out = static_cast<int>(axis.out),
            .step = static_cast<unsigned>(axis.step),
            .start = static_cast<unsigned>(axis.offset + axis.divisor),
            .whole_step = static_cast<unsigned>(axis.step / axis.divisor),
            .part_step = static_cast<unsigned>(axis.step % axis.divisor),
            .inverse = static_cast<float>(1 / static_cast<double>(axis.divisor)),
            .by_divisor = QuickDivision::by(axis.divisor)};
  }

  struct Place {
    int index;           ///< The index of the element, rounded down; may lie outside of the input.
    unsigned remainder;  ///< The part after `index`, in units of 1 / divisor.
    [[nodiscard]] __device__ bool is_whole() const { return remainder == 0; }
  };
  [[nodiscard]] __device__ Place at(int i) const {
    const unsigned place = step * static_cast<unsigned>(i) + start;
    const unsigned quotient = by_divisor(place);
    return {static_cast<int>(quotient) - 1, place - quotient * by_divisor.divisor};
  }
  __device__ void advance(Place& place) const {
    place.index += static_cast<int>(whole_step);
    place.remainder += part_step;
    if (place.remainder >= by_divisor.divisor) {
      place.remainder -= by_divisor.divisor;
      ++place.index;
    }
  }
  [[nodiscard]] __device__ float fraction(const Place& place) const {
    return static_cast<float>(place.remainder) * inverse;
  }
  [[nodiscard]] __device__ int clamp(int index) const { return ::min(::max(index, 0), in - 1); }
};

}  // namespace detail
}  // namespace graft::ops
