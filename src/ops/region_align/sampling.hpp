// The positions at which RegionAlign samples one axis of a map, and their weights: bitwise equal on the CPU and on a
// GPU, in ONNX Runtime's order of operations.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define GRAFT_SAMPLING_INLINE __host__ __device__ inline
#else
#define GRAFT_SAMPLING_INLINE inline
#endif

namespace graft::ops {

/// The sizes along one axis that all regions share.
struct RegionGrid {
  int size = 0;  ///< The number of pixels that the map has along the axis.
  int bins = 0;  ///< The number of bins that a region has along the axis.
  int ratio =
      0;  ///< The number of samples that a bin has along the axis; 0 stands for one per pixel of the bin, rounded up.
  float scale = 1;
  bool is_half_pixel = true;

  /// Returns an upper bound of the number of samples in the SampleRange of all bins of a region. If a bin has several
  /// adaptive samples, they lie more than half a pixel apart.
  [[nodiscard]] constexpr std::int64_t most_samples() const {
    constexpr std::int64_t beyond = 5;
    return ratio > 0 ? std::int64_t{ratio} * bins : 2 * (std::int64_t{size} + 1) + beyond * bins + 1;
  }
};

/// The part of an axis that one region covers, in pixels of the map.
struct RegionAxis {
  float start = 0;
  float bin = 0;    ///< The size of a bin.
  int samples = 0;  ///< The number of samples that a bin has along the axis.
};

/// A pixel that contributes to a bin, and its weight. `index` is its offset in memory, in elements.
struct Tap {
  int index;
  float weight;
};

namespace region_align {

/// Returns a * b. __fmul_rn keeps the compiler from fusing the product with a following sum.
GRAFT_SAMPLING_INLINE float product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

/// Returns the value clamped to 0 to `most`; 0 for NaN.
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

/// A range of the samples of a bin, from `first` up to, but not including, `end`. It contains every sample of the bin
/// that lies on the map.
struct SampleRange {
  int first = 0;
  int end = 0;
};

/// Returns the range of samples of a bin. The range is needed because a region may be many times as large as the map,
/// with as many adaptive samples.
GRAFT_SAMPLING_INLINE SampleRange range_of(const RegionAxis& axis, const RegionGrid& grid, int bin) {
  if (grid.size == 0) return {};
  if (grid.ratio > 0 || axis.samples == 0) return {0, axis.samples};
  const auto begin = static_cast<double>(start_of(axis, bin));
  const double spacing = static_cast<double>(axis.bin) / axis.samples;
  return {region_align::clamped((-1 - begin) / spacing - 2, axis.samples),
          region_align::clamped((grid.size - begin) / spacing + 2, axis.samples)};
}

/// The two pixels around a sample, and their weights. is_inside is false for a sample outside the map.
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

/// The number of taps that write_taps() has written for a bin along one axis.
struct Taps {
  int count = 0;
  bool has_outside = false;  ///< Whether some samples lie outside the map.
};

/// Writes the taps of a bin to `taps` and returns their number, at most two for each sample of `range`. Indices are
/// multiplied by `stride`. For a mean, all samples of one pixel become one tap, and pixels with weight 0 are omitted.
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
      // Samples are visited in their order along the axis, so the samples of one pixel are consecutive.
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

/// Returns the larger of two numbers, the products of a pixel and its weight. NaN counts as larger than every number.
template <class Number>
GRAFT_SAMPLING_INLINE Number larger(Number a, Number b) {
  return b > a || b != b ? b : a;
}

}  // namespace graft::ops
