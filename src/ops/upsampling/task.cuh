// The parameters of the CUDA kernels of Upsampling, and the division of the work among threads.
#pragma once

#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "kernels/vector.cuh"
#include "ops/upsampling/sampling.hpp"

namespace graft::ops {

/// A SampledAxis for threads that visit consecutive elements: only the position of the first element needs a division.
struct IncrementalAxis {
  int in;
  int out;
  std::int64_t step;
  std::int64_t offset;
  std::int64_t divisor;
  std::int64_t whole_step;  ///< The integer part of step / divisor: step = whole_step * divisor + part_step.
  std::int64_t part_step;
  float inverse;  ///< The value 1 / divisor.
  bool identity;

  [[nodiscard]] static IncrementalAxis make(const SampledAxis& axis) {
    return {.in = static_cast<int>(axis.in),
            .out = static_cast<int>(axis.out),
            .step = axis.step,
            .offset = axis.offset,
            .divisor = axis.divisor,
            .whole_step = axis.step / axis.divisor,
            .part_step = axis.step % axis.divisor,
            .inverse = static_cast<float>(1 / static_cast<double>(axis.divisor)),
            .identity = axis.is_identity()};
  }

  struct Place {
    int index;               ///< The index of the element, rounded down; may lie outside of the input.
    std::int64_t remainder;  ///< The part after `index`, in units of 1 / divisor.
  };
  [[nodiscard]] __device__ Place at(int i) const {
    const std::int64_t place = step * i + offset + divisor;  // offset >= -divisor
    const std::int64_t quotient = divide(place, divisor);
    return {static_cast<int>(quotient) - 1, place - quotient * divisor};
  }
  __device__ void advance(Place& place) const {
    place.index += static_cast<int>(whole_step);
    place.remainder += part_step;
    if (place.remainder >= divisor) {
      place.remainder -= divisor;
      ++place.index;
    }
  }
  [[nodiscard]] __device__ float fraction(const Place& place) const {
    return static_cast<float>(static_cast<unsigned>(place.remainder)) * inverse;
  }
  [[nodiscard]] __device__ int clamp(int index) const { return ::min(::max(index, 0), in - 1); }
};

/// A division of numbers below 2^31 by a divisor that is known on the host, computed as a multiplication.
struct QuickDivision {
  unsigned divisor = 1;
  unsigned multiplier = 0;
  unsigned shift = 0;

  [[nodiscard]] static QuickDivision by(std::int64_t divisor) {
    QuickDivision quick{.divisor = static_cast<unsigned>(divisor)};
    unsigned bits = 0;
    while ((std::int64_t{1} << bits) < divisor) ++bits;
    if (bits == 0) return quick;
    quick.multiplier = static_cast<unsigned>((std::uint64_t{1} << (31 + bits)) / quick.divisor + 1);
    quick.shift = bits - 1;
    return quick;
  }
  [[nodiscard]] __device__ unsigned operator()(unsigned number) const {
    return divisor == 1 ? number : __umulhi(number, multiplier) >> shift;
  }
};

/// The sizes and parameters of a problem in which a thread computes `rows` rows of one group of neighboring elements.
struct UpsamplingTask {
  static constexpr std::int64_t most_quick_items = std::int64_t{1} << 31;
  IncrementalAxis z;
  IncrementalAxis y;
  IncrementalAxis x;
  std::int64_t planes = 0;
  std::int64_t in_row = 0;   ///< The number of elements in a row of x.
  std::int64_t out_row = 0;  ///< The number of elements in a row of y.
  int pitch = 1;             ///< The number of elements from one column to the next.
  int parts = 1;             ///< The number of groups in a column: vectors of channels.
  std::int64_t groups = 0;
  int strips = 0;
  int rows = 0;
  std::int64_t items = 0;  ///< The number of threads.
  QuickDivision by_groups = {};
  QuickDivision by_strips = {};
  QuickDivision by_slices = {};
  QuickDivision by_parts = {};
  // In channel-vector layouts, `blocks` ranges of `pitch` channels contain `channels` channels and padding.
  std::int64_t blocks = 1;
  int channels = 0;
  float cubic_a = 0;
  float x_scale = 1;
  float y_scale = 1;
  float ratio = 1;  ///< The ratio x_scale / y_scale for i8, otherwise 1.

  /// Returns the number of channels from channel `channel` of the block of plane `plane` to the end of the block,
  /// without padding. Not positive for a channel of padding.
  [[nodiscard]] __device__ int channels_from(std::int64_t plane, int channel) const {
    const int block = blocks == 1 ? 0 : static_cast<int>(plane - divide(plane, blocks) * blocks);
    return channels - block * pitch - channel;
  }

  /// Divides the work between threads: each thread computes `row_count` rows of one of `group_count` groups, of
  /// `axis_rows` rows in all.
  void distribute(std::int64_t group_count, int axis_rows, int row_count) {
    groups = group_count;
    by_parts = QuickDivision::by(parts);
    rows = row_count;
    strips = static_cast<int>(ceil_divide(axis_rows, rows));
    items = planes * z.out * groups * strips;
    if (items < most_quick_items) {
      by_groups = QuickDivision::by(groups);
      by_strips = QuickDivision::by(strips);
      by_slices = QuickDivision::by(z.out);
    }
  }
  [[nodiscard]] bool fills(const DeviceTraits& device) const {
    return items >= std::int64_t{1} * device.multiprocessors * device.threads_per_multiprocessor;
  }
};

/// The indices of the group, strip of rows, slice and plane of the output that one thread computes.
struct Share {
  std::int64_t group;
  int strip;
  int slice;
  std::int64_t plane;

  /// Returns the share of thread `item`. Requires a task of less than most_quick_items threads.
  [[nodiscard]] __device__ static Share quick(unsigned item, const UpsamplingTask& task) {
    const unsigned line = task.by_groups(item);
    const unsigned section = task.by_strips(line);
    const unsigned plane = task.by_slices(section);
    return {item - line * task.by_groups.divisor, static_cast<int>(line - section * task.by_strips.divisor),
            static_cast<int>(section - plane * task.by_slices.divisor), plane};
  }
  [[nodiscard]] __device__ static Share of(std::int64_t item, const UpsamplingTask& task) {
    if (task.items < UpsamplingTask::most_quick_items) return quick(static_cast<unsigned>(item), task);
    const std::int64_t line = divide(item, task.groups);
    const std::int64_t section = divide(line, task.strips);
    const std::int64_t plane = task.z.out == 1 ? section : divide(section, task.z.out);
    return {item - line * task.groups, static_cast<int>(line - section * task.strips),
            static_cast<int>(section - plane * task.z.out), plane};
  }
};

/// Returns a + f * (b - a). If Finite is true, b - a must be finite; the compiler may then compute the difference once
/// for two results.
template <bool Finite>
[[nodiscard]] __device__ float between(float a, float b, float f) {
  if constexpr (Finite) return fmaf(f, b - a, a);
  return fmaf(f, b, (1.F - f) * a);
}

}  // namespace graft::ops
