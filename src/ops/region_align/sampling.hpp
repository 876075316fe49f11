// Where RegionAlign samples one axis of a map, and with which weights: the same bits on the CPU and on a GPU, in ONNX
// Runtime's order of operations.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define GRAFT_SAMPLING_INLINE __host__ __device__ inline
#else
#define GRAFT_SAMPLING_INLINE inline
#endif

namespace graft::ops {

/// What all regions have in common on one axis.
struct RegionGrid {
  int size = 0;   ///< Of the map.
  int bins = 0;   ///< Of a region.
  int ratio = 0;  ///< Samples of a bin; 0: as many as it has pixels.
  float scale = 1;
  bool is_half_pixel = true;

  /// At least the sum of what SampleRange says of all bins of a region. Adaptive samples lie more than half a pixel
  /// apart where a bin has several of them.
  [[nodiscard]] constexpr std::int64_t most_samples() const {
    constexpr std::int64_t beyond = 5;
    return ratio > 0 ? std::int64_t{ratio} * bins : 2 * (std::int64_t{size} + 1) + beyond * bins + 1;
  }
};

/// One region's part of an axis, in pixels of the map.
struct RegionAxis {
  float start = 0;
  float bin = 0;    ///< Its size.
  int samples = 0;  ///< Of each bin.
};

/// The weight of a pixel. `index` counts elements of memory.
struct Tap {
  int index;
  float weight;
};

namespace region_align {

/// A product that no compiler joins with the sum after it.
GRAFT_SAMPLING_INLINE float product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

/// To 0 to `most`; NaN to 0.
GRAFT_SAMPLING_INLINE int clamped(double value, int most) {
  if (!(value > 0)) return 0;
  return value < most ? static_cast<int>(value) : most;
}

}  // namespace region_align

GRAFT_SAMPLING_INLINE RegionAxis axis_of(float low, float high, const RegionGrid& grid) {
  constexpr int most_adaptive = 1 << 30;
  const float offset = grid.is_half_pixel ? 0.5F : 0.F;
  RegionAxis axis{};
  axis.start = region_align::product(low, grid.scale) - offset;
  float length = region_align::product(high, grid.scale) - offset - axis.start;
  if (!grid.is_half_pixel && length < 1.F) length = 1.F;
  axis.bin = length / static_cast<float>(grid.bins);
  axis.samples =
      grid.ratio > 0 ? grid.ratio : region_align::clamped(static_cast<double>(ceilf(axis.bin)), most_adaptive);
  return axis;
}

GRAFT_SAMPLING_INLINE float start_of(const RegionAxis& axis, int bin) {
  return axis.start + region_align::product(static_cast<float>(bin), axis.bin);
}

/// The samples of a bin, from `first` up to `end`, among which are all that do not lie beyond the map.
struct SampleRange {
  int first = 0;
  int end = 0;
};

/// A region may be many times as large as the map, and have as many adaptive samples.
GRAFT_SAMPLING_INLINE SampleRange range_of(const RegionAxis& axis, const RegionGrid& grid, int bin) {
  if (grid.size == 0) return {};
  if (grid.ratio > 0 || axis.samples == 0) return {0, axis.samples};
  const auto begin = static_cast<double>(start_of(axis, bin));
  const double spacing = static_cast<double>(axis.bin) / axis.samples;
  return {region_align::clamped((-1 - begin) / spacing - 2, axis.samples),
          region_align::clamped((grid.size - begin) / spacing + 2, axis.samples)};
}

/// Pixels between which a sample lies, and their weights.
struct Sample {
  bool is_inside = false;
  Tap low{};
  Tap high{};
};

GRAFT_SAMPLING_INLINE Sample sample_at(const RegionAxis& axis, const RegionGrid& grid, int bin, int index) {
  const float within = region_align::product(static_cast<float>(index) + 0.5F, axis.bin);
  float position = start_of(axis, bin) + within / static_cast<float>(axis.samples);
  if (!(position >= -1.F && position <= static_cast<float>(grid.size))) return {};
  if (position <= 0.F) position = 0.F;
  const int last = grid.size - 1;
  const int low = static_cast<int>(position);
  if (low >= last) return {true, {last, 1.F}, {last, 0.F}};
  const float share = position - static_cast<float>(low);
  return {true, {low, 1.F - share}, {low + 1, share}};
}

/// The pixels of one axis that a bin is made of.
struct Taps {
  int count = 0;
  bool has_outside = false;  ///< Samples that lie beyond the map.
};

/// Writes them to `taps`, two for each sample of `range` at most, their indices times `stride`. For a mean, all samples
/// of one pixel become one tap, and pixels of no weight are left out.
GRAFT_SAMPLING_INLINE Taps write_taps(const RegionAxis& axis, const RegionGrid& grid, int bin, const SampleRange& range,
                                      bool is_mean, int stride, Tap* taps) {
  Taps written;
  int inside = 0;
  for (int index = range.first; index < range.end; ++index) {
    const Sample sample = sample_at(axis, grid, bin, index);
    if (!sample.is_inside) continue;
    ++inside;
    const Tap both[2] = {sample.low, sample.high};
    for (const Tap& given : both) {
      const Tap tap{given.index * stride, is_mean ? given.weight / static_cast<float>(axis.samples) : given.weight};
      if (is_mean && tap.weight == 0.F) continue;
      // Samples come in their order along the axis, so that of a pixel they are next to each other.
      int known = written.count - 1;
      if (known > 0 && taps[known].index != tap.index) --known;
      if (is_mean && known >= 0 && taps[known].index == tap.index) {
        taps[known].weight += tap.weight;
      } else {
        taps[written.count++] = tap;
      }
    }
  }
  written.has_outside = inside < axis.samples;
  return written;
}

/// Of two products of a maximum; NaN is the largest.
template <class Number>
GRAFT_SAMPLING_INLINE Number larger(Number a, Number b) {
  return b > a || b != b ? b : a;
}

}  // namespace graft::ops
