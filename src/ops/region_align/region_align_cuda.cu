// CUDA kernels of RegionAlign. A mean of bilinear samples is a sum over rows of a sum over columns, and the pixels of a
// bin are the same for all channels. A block therefore first computes, for each row and each column of bins of its
// region, the pixels and their weights ("taps"), with one tap for all samples that share a pixel. Then it multiplies
// the taps with four channels at a time. A warp computes neighboring bins, whose pixels are near each other and whose
// results are contiguous.
#include <limits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/vector.cuh"
#include "ops/region_align/plan.hpp"

namespace graft::ops {
namespace {

constexpr int window_threads = 128;
constexpr int group_channels = 4;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The addresses of the channels that a thread processes at a time. Channels after the last one are replaced with the
/// last one.
template <class T>
struct Planes {
  const T* first[group_channels];

  __device__ Planes(const T* item, std::int64_t channel, std::int64_t channels, std::int64_t area) {
#pragma unroll
    for (int i = 0; i < group_channels; ++i) {
      first[i] = item + ::min(channel + i, channels - 1) * area;
      // The asm statement keeps the compiler from adding up the parts of the address at each load, in four instructions
      // instead of one.
      asm volatile("" : "+l"(first[i]));
    }
  }
};

/// The range of the weighted pixels (taps) of a bin along one axis, in shared memory.
struct alignas(16) TapWindow {
  int begin;
  int end;
  int has_outside;
};

/// The sizes that all blocks share.
struct WindowSizes {
  std::int64_t items;
  std::int64_t channels;
  RegionGrid rows;
  RegionGrid columns;
  Divisor columns_of_bins;
  Divisor bins;
  int bin_count;
  int chunks;        ///< The number of chunks into which a region's channels are divided; a block computes one chunk.
  int chunk_groups;  ///< The number of groups of channels in a chunk.
  int row_taps;      ///< The space for the taps of all rows of bins.
  int column_taps;   ///< The space for the taps of all columns of bins.
};

/// Returns the number of taps for which space is reserved for all earlier bins of the same axis.
__device__ int room_before(const TapWindow* windows, int bin) {
  int sum = 0;
  for (int other = 0; other < bin; ++other) sum += windows[other].end;
  return sum;
}

template <class T, bool is_mean>
__global__ void __launch_bounds__(window_threads)
    align_windows(const T* x, const T* rois, const std::int64_t* batch_indices, T* y, WindowSizes sizes) {
  extern __shared__ uint4 block_memory[];
  auto* windows = reinterpret_cast<TapWindow*>(block_memory);
  const int all_bins = sizes.rows.bins + sizes.columns.bins;
  auto* taps = reinterpret_cast<Tap*>(windows + all_bins);
  const std::int64_t region = blockIdx.x / static_cast<unsigned>(sizes.chunks);
  const int chunk = static_cast<int>(blockIdx.x % static_cast<unsigned>(sizes.chunks));
  const std::int64_t item = batch_indices[region];
  const bool has_item = item >= 0 && item < sizes.items;
  const T* corners = rois + region * 4;
  const RegionAxis row_axis = axis_of(static_cast<float>(corners[1]), static_cast<float>(corners[3]), sizes.rows);
  const RegionAxis column_axis = axis_of(static_cast<float>(corners[0]), static_cast<float>(corners[2]), sizes.columns);

  for (int each = static_cast<int>(threadIdx.x); each < all_bins; each += window_threads) {
    const bool is_row = each < sizes.rows.bins;
    const SampleRange range =
        is_row ? range_of(row_axis, sizes.rows, each) : range_of(column_axis, sizes.columns, each - sizes.rows.bins);
    windows[each].end = has_item ? 2 * ::max(range.end - range.first, 0) : 0;
  }
  __syncthreads();
  for (int each = static_cast<int>(threadIdx.x); each < all_bins; each += window_threads) {
    const bool is_row = each < sizes.rows.bins;
    windows[each].begin = is_row ? room_before(windows, each)
                                 : sizes.row_taps + room_before(windows + sizes.rows.bins, each - sizes.rows.bins);
  }
  __syncthreads();
  for (int each = static_cast<int>(threadIdx.x); each < all_bins; each += window_threads) {
    const bool is_row = each < sizes.rows.bins;
    const RegionGrid grid = is_row ? sizes.rows : sizes.columns;
    const RegionAxis axis = is_row ? row_axis : column_axis;
    const int bin = is_row ? each : each - sizes.rows.bins;
    const TapWindow window = windows[each];
    const int room_end = is_row ? sizes.row_taps : sizes.row_taps + sizes.column_taps;
    // With coordinates so large that f32 cannot resolve pixels, a bin may need more space than most_samples reserves.
    const bool has_room = window.end > 0 && window.begin + window.end <= room_end;
    const SampleRange range = has_room ? range_of(axis, grid, bin) : SampleRange{};
    const Taps written =
        write_taps(axis, grid, bin, range, is_mean, is_row ? sizes.columns.size : 1, taps + window.begin);
    windows[each] = {window.begin, window.begin + written.count, written.has_outside ? 1 : 0};
  }
  __syncthreads();

  const std::int64_t first_group = std::int64_t{chunk} * sizes.chunk_groups;
  const std::int64_t area = std::int64_t{sizes.rows.size} * sizes.columns.size;
  const T* item_of_x = x + (has_item ? item : 0) * sizes.channels * area;
  T* region_of_y = y + region * sizes.channels * sizes.bin_count;
  for (int unit = static_cast<int>(threadIdx.x); unit < sizes.chunk_groups * sizes.bin_count; unit += window_threads) {
    const int group = sizes.bins.quotient(unit);
    const int bin = unit - group * sizes.bin_count;
    const int row_of_bins = sizes.columns_of_bins.quotient(bin);
    const std::int64_t channel = (first_group + group) * group_channels;
    if (channel >= sizes.channels) return;
    const TapWindow rows = windows[row_of_bins];
    const TapWindow columns = windows[sizes.rows.bins + bin - row_of_bins * sizes.columns.bins];
    const Planes<T> planes(item_of_x, channel, sizes.channels, area);
    const bool is_empty = rows.begin == rows.end || columns.begin == columns.end;
    const bool has_zero = is_mean || is_empty || rows.has_outside != 0 || columns.has_outside != 0;
    float results[group_channels];
#pragma unroll
    for (float& each : results) each = has_zero ? 0.F : -infinity;
    for (int i = rows.begin; i < rows.end; ++i) {
      const Tap row = taps[i];
      float sums[group_channels] = {};
      for (int j = columns.begin; j < columns.end; ++j) {
        const Tap column = taps[j];
        const int pixel = row.index + column.index;
        const float weight = is_mean ? column.weight : row.weight * column.weight;
#pragma unroll
        for (int c = 0; c < group_channels; ++c) {
          const float value = static_cast<float>(__ldg(planes.first[c] + pixel));
          if constexpr (is_mean) {
            sums[c] = fmaf(weight, value, sums[c]);
          } else {
            results[c] = larger(results[c], weight * value);
          }
        }
      }
      if constexpr (is_mean) {
#pragma unroll
        for (int c = 0; c < group_channels; ++c) results[c] = fmaf(row.weight, sums[c], results[c]);
      }
    }
#pragma unroll
    for (int c = 0; c < group_channels; ++c) {
      if (channel + c < sizes.channels) region_of_y[(channel + c) * sizes.bin_count + bin] = static_cast<T>(results[c]);
    }
  }
}

std::int64_t window_bytes(const RegionSizes& sizes) {
  return (sizes.rows.bins + sizes.columns.bins) * std::int64_t{sizeof(TapWindow)} +
         2 * (sizes.rows.most_samples() + sizes.columns.most_samples()) * std::int64_t{sizeof(Tap)};
}

Status fits_windows(const RegionAlign& op, const Problem& problem) {
  constexpr std::int64_t most = 48 * 1024;
  const std::int64_t bytes = window_bytes(RegionSizes(op, problem));
  if (bytes <= most) return {};
  return unsupported("supports regions whose samples need at most " + std::to_string(most) +
                     " bytes of shared memory, found " + std::to_string(bytes));
}

/// Returns the number of groups of channels per block, between `least` and `most`, for which the fewest threads of a
/// block have no bin to compute.
std::int64_t fewest_idle(std::int64_t least, std::int64_t most, std::int64_t bins) {
  const auto busy = [&](std::int64_t groups) {
    const std::int64_t units = groups * bins;
    return static_cast<double>(units) / static_cast<double>(ceil_divide(units, window_threads) * window_threads);
  };
  std::int64_t best = least;
  for (std::int64_t groups = least + 1; groups <= most; ++groups) {
    if (busy(groups) > busy(best)) best = groups;
  }
  return best;
}

Status run_windows(const RegionAlign& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  constexpr int blocks_of_multiprocessor = 64;
  constexpr std::int64_t most_groups = 64;
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const RegionSizes of(op, problem);
  const std::int64_t groups = ceil_divide(of.channels, group_channels);
  if (groups == 0) return {};
  // There are so many blocks that regions of different sizes balance out.
  const std::int64_t wanted_blocks = std::int64_t{blocks_of_multiprocessor} * device.multiprocessors;
  const std::int64_t wanted_chunks =
      std::clamp<std::int64_t>(wanted_blocks / std::max<std::int64_t>(of.regions, 1), 1, groups);
  const std::int64_t least_groups = std::min(ceil_divide(groups, wanted_chunks), most_groups);
  const std::int64_t chunk_groups = fewest_idle(least_groups, std::min(groups, 2 * least_groups), of.bins());
  WindowSizes sizes{.items = of.items,
                    .channels = of.channels,
                    .rows = of.rows,
                    .columns = of.columns,
                    .columns_of_bins = Divisor(of.columns.bins),
                    .bins = Divisor(static_cast<int>(of.bins())),
                    .bin_count = static_cast<int>(of.bins()),
                    .chunks = static_cast<int>(ceil_divide(groups, chunk_groups)),
                    .chunk_groups = static_cast<int>(chunk_groups),
                    .row_taps = static_cast<int>(2 * of.rows.most_samples()),
                    .column_taps = static_cast<int>(2 * of.columns.most_samples())};
  const Grid grid{.blocks = of.regions * sizes.chunks,
                  .threads = window_threads,
                  .shared_bytes = static_cast<int>(window_bytes(of))};
  return dispatch_floats(problem.inputs[0].dtype, [&](auto element) -> Status {
    using T = decltype(element);
    const auto kernel = op.mode == RegionPooling::avg ? align_windows<T, true> : align_windows<T, false>;
    return launch(RegionAlign::name, kernel, grid, context, static_cast<const T*>(buffers.inputs[0]),
                  static_cast<const T*>(buffers.inputs[1]), static_cast<const std::int64_t*>(buffers.inputs[2]),
                  static_cast<T*>(buffers.outputs[0]), sizes);
  });
}

/// Computes one result per thread, including its samples. Supports every problem.
template <class T, bool is_mean>
__global__ void align_samples(const T* x, const T* rois, const std::int64_t* batch_indices, T* y, RegionSizes sizes) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t bins = std::int64_t{sizes.rows.bins} * sizes.columns.bins;
  if (index >= sizes.regions * sizes.channels * bins) return;
  const std::int64_t region = index / (bins * sizes.channels);
  const std::int64_t channel = index / bins % sizes.channels;
  const int bin = static_cast<int>(index % bins);
  const int row_of_bins = bin / sizes.columns.bins;
  const int column_of_bins = bin % sizes.columns.bins;
  const std::int64_t item = batch_indices[region];
  if (item < 0 || item >= sizes.items) {
    y[index] = static_cast<T>(0.F);
    return;
  }
  const std::int64_t area = std::int64_t{sizes.rows.size} * sizes.columns.size;
  const T* plane = x + (item * sizes.channels + channel) * area;
  const T* corners = rois + region * 4;
  const RegionAxis row_axis = axis_of(static_cast<float>(corners[1]), static_cast<float>(corners[3]), sizes.rows);
  const RegionAxis column_axis = axis_of(static_cast<float>(corners[0]), static_cast<float>(corners[2]), sizes.columns);
  const SampleRange rows = range_of(row_axis, sizes.rows, row_of_bins);
  const SampleRange columns = range_of(column_axis, sizes.columns, column_of_bins);
  float result = is_mean ? 0.F : -infinity;
  int inside = 0;         // the number of rows that have samples
  int inside_of_row = 0;  // the number of samples in the last of these rows
  for (int i = rows.first; i < rows.end; ++i) {
    const Sample row = sample_at(row_axis, sizes.rows, row_of_bins, i);
    if (!row.is_inside) continue;
    ++inside;
    inside_of_row = 0;
    float sum_of_row = 0;  // There is one sum per row, because a single sum of all samples might lose digits.
    for (int j = columns.first; j < columns.end; ++j) {
      const Sample column = sample_at(column_axis, sizes.columns, column_of_bins, j);
      if (!column.is_inside) continue;
      ++inside_of_row;
      for (int corner = 0; corner < 4; ++corner) {
        const Tap row_tap = corner < 2 ? row.low : row.high;
        const Tap column_tap = corner % 2 == 0 ? column.low : column.high;
        const float value =
            static_cast<float>(plane[std::int64_t{row_tap.index} * sizes.columns.size + column_tap.index]);
        if constexpr (is_mean) {
          const float weight = row_tap.weight / static_cast<float>(row_axis.samples) *
                               (column_tap.weight / static_cast<float>(column_axis.samples));
          if (row_tap.weight != 0.F && column_tap.weight != 0.F) sum_of_row = fmaf(weight, value, sum_of_row);
        } else {
          result = larger(result, row_tap.weight * column_tap.weight * value);
        }
      }
    }
    if constexpr (is_mean) result += sum_of_row;
  }
  if constexpr (!is_mean) {
    const bool has_outside = inside < row_axis.samples || inside_of_row < column_axis.samples;
    if (inside == 0 || inside_of_row == 0) {
      result = 0.F;
    } else if (has_outside) {
      result = larger(result, 0.F);
    }
  }
  y[index] = static_cast<T>(result);
}

Status fits_samples(const RegionAlign& /*op*/, const Problem& /*problem*/) { return {}; }

Status run_samples(const RegionAlign& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  constexpr int threads = 256;
  const RegionSizes sizes(op, problem);
  const Grid grid{.blocks = ceil_divide(sizes.regions * sizes.channels * sizes.bins(), threads), .threads = threads};
  return dispatch_floats(problem.inputs[0].dtype, [&](auto element) -> Status {
    using T = decltype(element);
    const auto kernel = op.mode == RegionPooling::avg ? align_samples<T, true> : align_samples<T, false>;
    return launch(RegionAlign::name, kernel, grid, context, static_cast<const T*>(buffers.inputs[0]),
                  static_cast<const T*>(buffers.inputs[1]), static_cast<const std::int64_t*>(buffers.inputs[2]),
                  static_cast<T*>(buffers.outputs[0]), sizes);
  });
}

}  // namespace

std::span<const Variant<RegionAlign>> cuda_kernels(const RegionAlign& /*op*/) {
  static constexpr std::array variants{Variant<RegionAlign>{"windows", fits_windows, run_windows},
                                       Variant<RegionAlign>{"samples", fits_samples, run_samples}};
  return variants;
}

}  // namespace graft::ops
