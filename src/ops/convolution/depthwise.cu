// Depthwise convolution (group = channels of x = channels of y), limited by memory bandwidth. Each thread computes a
// strip or a patch of results, so that adjacent windows share their loads.
#include <algorithm>
#include <limits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/mma.cuh"
#include "kernels/quantizer.cuh"
#include "kernels/strides.cuh"
#include "kernels/vector.cuh"
#include "ops/convolution/plan.hpp"
#include "ops/convolution/variants.hpp"

namespace graft::ops {
namespace {

constexpr int depthwise_threads = 256;
// In elements. The f32 filters of 64 channels then take 24 KiB of shared memory.
constexpr std::int64_t most_window = 96;

/// The sizes of a depthwise convolution. A tensor is a sequence of images of height x width pixels whose `channels` are
/// contiguous: an image holds one channel in linear layout, all channels in hwc8 and 32 channels in chw32.
struct DepthwiseTask {
  const void* x;
  const void* weight;
  const float* bias;
  const float* scale;
  void* y;
  ConvolutionEpilogue epilogue;
  Quantizer quantizer;

  int images_of_batch;  ///< The number of images in one item of the batch.
  int channels;         ///< The number of channels that an image has, including padding.
  int all_channels;     ///< The number of channels that x has, without padding.
  int weight_pitch;     ///< The distance in elements from one window element to the next.
  int height;
  int width;
  int out_height;
  int out_width;
  int kernel_height;
  int kernel_width;
  int row_stride;
  int column_stride;
  int row_pad;
  int column_pad;
  int row_dilation;
  int column_dilation;

  // depthwise_vectors and depthwise_points: a block processes `lanes` vectors of channels for several strips or pixels.
  // depthwise_planes: a thread processes one strip.
  int lanes;
  int lane_tiles;
  int strips;
  Divisor by_strips;
  // depthwise_tiles: a tile consists of patches, and `lanes` counts words of channels.
  int patch_rows;
  int patch_columns;
  int tile_rows;
  int tile_columns;
  int chunks;     ///< The number of 16-byte chunks in a pixel.
  int positions;  ///< The number of chunks that the windows of a tile read from one row of pixels.
  int row_step;   ///< The number of rows that a block copies at once.
  Divisor by_lane_tiles;
  Divisor by_tile_columns;
  Divisor by_tile_rows;
  Divisor by_chunks;
  Divisor by_positions;
  Divisor by_channels;  ///< The divisor is the number of channels of a tile.
  Divisor by_lanes;
  Divisor by_patch_columns;
  /// The number of work items, whose meaning depends on the kernel: in depthwise_vectors, strips of the batch for one
  /// tile of channels; in depthwise_planes, strips of all images; in the other kernels, items of the batch.
  std::int64_t count;
};

/// Computes strips along a row: `Strip` results for each channel of a 16-byte vector. Kernel and Stride are 0 where
/// they are known only at run time.
///
/// Sums of i8 are exact in f32 too: they have at most most_window products of at most 2^14.
template <class T, int Kernel, int Stride, int Strip>
__global__ void __launch_bounds__(depthwise_threads) depthwise_vectors(const DepthwiseTask task) {
  constexpr int count = widest<T>;
  using V = Vector<T, count>;
  const int window_height = Kernel > 0 ? Kernel : task.kernel_height;
  const int window_width = Kernel > 0 ? Kernel : task.kernel_width;
  const int step = Stride > 0 ? Stride : task.column_stride;
  const int window = window_height * window_width;
  extern __shared__ float4 filters[];  // [window][lanes * count]
  const int thread = static_cast<int>(threadIdx.x);
  const int tile = static_cast<int>(blockIdx.x) % task.lane_tiles;
  const std::int64_t first_strip =
      static_cast<std::int64_t>(blockIdx.x / static_cast<unsigned>(task.lane_tiles)) * (depthwise_threads / task.lanes);
  const int width = task.lanes * count;
  const int first_channel = tile * width;

  const auto own = first_strip + thread / task.lanes;
  const bool active = thread < depthwise_threads / task.lanes * task.lanes && own < task.count;
  const int lane = thread % task.lanes;
  const int channel = first_channel + lane * count;
  const std::int64_t row_and_item = active ? divide(own, task.strips) : 0;
  const int strip = static_cast<int>(own - row_and_item * task.strips);
  const std::int64_t item = divide(row_and_item, task.out_height);
  const int y_row = static_cast<int>(row_and_item - item * task.out_height);
  const bool blocked = task.images_of_batch > 1;  // chw32: an image holds the channels of one tile
  const std::int64_t image = blocked ? item * task.images_of_batch + tile : item;
  const int at = blocked ? lane * count : channel;

  const T* const weight = static_cast<const T*>(task.weight);
  for (int i = thread; i < window * width; i += depthwise_threads) {
    const int c = first_channel + i % width;
    const T* filter = weight + (static_cast<std::int64_t>(c) * window + i / width) * task.weight_pitch;
    reinterpret_cast<float*>(filters)[i] = c < task.all_channels ? static_cast<float>(*filter) : 0.F;
  }
  __syncthreads();
  if (!active || at >= task.channels) return;

  float sums[Strip][count] = {};
  const int x_row = y_row * task.row_stride - task.row_pad;
  const int x_column = strip * Strip * step - task.column_pad;
  const T* const from = static_cast<const T*>(task.x) + image * task.height * task.width * task.channels + at;
  const auto add = [&](float(&sum)[count], const float(&values)[count], int tap) {
    const float4* filter = filters + (tap * width + lane * count) / 4;
#pragma unroll
    for (int i = 0; i < count / 4; ++i) {
      const float4 four = filter[i];
      sum[4 * i] += values[4 * i] * four.x;
      sum[4 * i + 1] += values[4 * i + 1] * four.y;
      sum[4 * i + 2] += values[4 * i + 2] * four.z;
      sum[4 * i + 3] += values[4 * i + 3] * four.w;
    }
  };
#pragma unroll
  for (int r = 0; r < (Kernel > 0 ? Kernel : window_height); ++r) {
    const int row = x_row + r * task.row_dilation;
    const bool row_inside = row >= 0 && row < task.height;
    const T* const line = from + static_cast<std::int64_t>(row) * task.width * task.channels;
    const auto load = [&](int column) {
      const bool inside = row_inside && column >= 0 && column < task.width;
      return inside ? V::load(line + static_cast<std::int64_t>(column) * task.channels) : V::zero();
    };
    if constexpr (Kernel > 0) {
#pragma unroll
      for (int c = 0; c < (Strip - 1) * Stride + Kernel; ++c) {
        float values[count];
        load(x_column + c).unpack(values);
#pragma unroll
        for (int t = 0; t < Strip; ++t) {
          const int s = c - t * Stride;
          if (s >= 0 && s < Kernel) add(sums[t], values, r * Kernel + s);
        }
      }
    } else {
      for (int s = 0; s < window_width; ++s) {
        V seen[Strip];  // All loads are issued before the first value is used.
#pragma unroll
        for (int t = 0; t < Strip; ++t) seen[t] = load(x_column + t * step + s * task.column_dilation);
#pragma unroll
        for (int t = 0; t < Strip; ++t) {
          float values[count];
          seen[t].unpack(values);
          add(sums[t], values, r * window_width + s);
        }
      }
    }
  }

  float biases[count];
  float factors[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const bool exists = channel + i < task.all_channels;
    biases[i] = exists ? task.bias[channel + i] : 0.F;
    factors[i] = exists ? task.epilogue.factor(task.scale[channel + i]) : 0.F;
  }
  T* const to = static_cast<T*>(task.y) +
                ((image * task.out_height + y_row) * task.out_width + strip * Strip) * task.channels + at;
#pragma unroll
  for (int t = 0; t < Strip; ++t) {
    if (strip * Strip + t >= task.out_width) break;
    alignas(16) T results[count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float value = task.epilogue.apply(sums[t][i], factors[i], biases[i]);
      const bool exists = channel + i < task.all_channels;
      if constexpr (std::is_same_v<T, std::int8_t>)
        results[i] = exists ? quantize_device(value, task.epilogue.y_scale) : T(0);
      else
        results[i] = exists ? static_cast<T>(value) : T(0.F);
    }
    *reinterpret_cast<uint4*>(to + static_cast<std::int64_t>(t) * task.channels) = *reinterpret_cast<uint4*>(results);
  }
}

/// Computes y for windows of one element. A thread processes `Each` pixels of the same 16 bytes of channels and keeps
/// the filters of these channels in registers.
template <class T, int Each>
__global__ void __launch_bounds__(depthwise_threads) depthwise_points(const DepthwiseTask task, std::int64_t vectors) {
  constexpr int count = widest<T>;
  using V = Vector<T, count>;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = depthwise_threads / task.lanes * task.lanes;
  if (thread >= threads) return;
  const int channel = thread % task.lanes * count;
  const std::int64_t first = std::int64_t{blockIdx.x} * (Each * threads) + thread;
  const auto* x = static_cast<const T*>(task.x) + first * count;
  V seen[Each];
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    if (first + i * threads < vectors) seen[i] = V::load(x + std::int64_t{i} * threads * count);
  }
  float filters[count];
  float biases[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int own = ::min(channel + i, task.all_channels - 1);
    const std::int64_t filter = std::int64_t{own} * task.weight_pitch;
    filters[i] = static_cast<float>(static_cast<const T*>(task.weight)[filter]);
    biases[i] = task.bias[own];
  }
#pragma unroll
  for (int i = 0; i < Each; ++i) {
    const std::int64_t vector = first + i * threads;
    if (vector >= vectors) return;
    float values[count];
    seen[i].unpack(values);
#pragma unroll
    for (int j = 0; j < count; ++j) values[j] = task.epilogue.apply(values[j] * filters[j], 1.F, biases[j]);
    V::pack(values).first(task.all_channels - channel).store(static_cast<T*>(task.y) + vector * count);
  }
}

/// The number of adjacent results of a row that a thread computes.
constexpr int patch_width = 4;

/// Computes the sums of a patch of rows x patch_width results for the channels of a word. Windows are read from shared
/// memory, where a pixel of the tile occupies `pixel` bytes.
///
/// This version is for f16 and bf16: a word holds two channels.
template <class T, int Kernel, int Stride>
struct DepthwisePatch {
  static constexpr int channels = 2;
  static constexpr int rows = Kernel == 3 ? 4 : 2;  ///< More rows would need more registers than a thread has.
  /// The number of words of shared memory for the filters of one word of channels.
  static constexpr int filter_words = Kernel * Kernel * 2;
  static constexpr int skew = 0;
  using Filter = float2[Kernel * Kernel];

  /// Returns word `i` of the filter of a channel.
  [[nodiscard]] __device__ static unsigned filter_word(const T* filter, int i, int pitch) {
    return __float_as_uint(static_cast<float>(filter[i * pitch]));
  }
  __device__ static void load_filter(const unsigned* words, int step, Filter& filter) {
#pragma unroll
    for (int i = 0; i < Kernel * Kernel; ++i) {
      filter[i] = *reinterpret_cast<const float2*>(words + i * 2 * step);
    }
  }
  __device__ static void add(const char* from, int pixel, int row_bytes, const Filter& filter,
                             float (&sums)[rows][patch_width][2]) {
    constexpr int seen = (patch_width - 1) * Stride + Kernel;
#pragma unroll
    for (int i = 0; i < (rows - 1) * Stride + Kernel; ++i) {
      float2 values[seen];
#pragma unroll
      for (int c = 0; c < seen; ++c) {
        float pair[2];
        Vector<T, 2>{*reinterpret_cast<const unsigned*>(from + c * pixel)}.unpack(pair);
        values[c] = make_float2(pair[0], pair[1]);
      }
      from += row_bytes;
#pragma unroll
      for (int row = 0; row < rows; ++row) {
        const int r = i - row * Stride;
        if (r < 0 || r >= Kernel) continue;
#pragma unroll
        for (int column = 0; column < patch_width; ++column) {
#pragma unroll
          for (int s = 0; s < Kernel; ++s) {
            const float2 value = values[column * Stride + s];
            sums[row][column][0] = fmaf(value.x, filter[r * Kernel + s].x, sums[row][column][0]);
            sums[row][column][1] = fmaf(value.y, filter[r * Kernel + s].y, sums[row][column][1]);
          }
        }
      }
    }
  }
};

/// Computes the sums of a patch as the version above, for i8: a word holds four channels. Four adjacent pixels of one
/// channel are gathered in a word, and one instruction adds their products with a row of the window.
template <int Stride>
struct DepthwisePatch<std::int8_t, 3, Stride> {
  static constexpr int channels = 4;
  static constexpr int rows = 2;
  static constexpr int filter_words = 3 * 4;
  /// The number of slots that are skipped after every patch_width * Stride pixels in shared memory, so that adjacent
  /// threads read different banks.
  static constexpr int skew = 1;
  using Filter = int[3][4];

  [[nodiscard]] __device__ static unsigned filter_word(const std::int8_t* filter, int i, int pitch) {
    unsigned word = 0;
#pragma unroll
    for (int s = 0; s < 3; ++s) {
      word |= static_cast<unsigned>(static_cast<std::uint8_t>(filter[(i * 3 + s) * pitch])) << (8U * s);
    }
    return word;
  }
  __device__ static void load_filter(const unsigned* words, int step, Filter& filter) {
#pragma unroll
    for (int r = 0; r < 3; ++r) {
      const uint4 four = *reinterpret_cast<const uint4*>(words + r * 4 * step);
      filter[r][0] = static_cast<int>(four.x);
      filter[r][1] = static_cast<int>(four.y);
      filter[r][2] = static_cast<int>(four.z);
      filter[r][3] = static_cast<int>(four.w);
    }
  }
  __device__ static void add(const char* from, int pixel, int row_bytes, const Filter& filter,
                             int (&sums)[rows][patch_width][4]) {
    constexpr int seen = (patch_width - 1) * Stride + 3;
    constexpr int pairs = (seen + 1) / 2;
#pragma unroll
    for (int i = 0; i < (rows - 1) * Stride + 3; ++i) {
      // Words of two adjacent pixels: `low` interleaves channels 0 and 1, `high` channels 2 and 3.
      unsigned low[pairs];
      unsigned high[pairs];
#pragma unroll
      for (int p = 0; p < pairs; ++p) {
        const auto word = [&](int c) {
          return c < seen ? *reinterpret_cast<const unsigned*>(from + (c + c / (patch_width * Stride)) * pixel) : 0U;
        };
        const unsigned a = word(2 * p);
        const unsigned b = word(2 * p + 1);
        low[p] = __byte_perm(a, b, 0x5140U);
        high[p] = __byte_perm(a, b, 0x7362U);
      }
      from += row_bytes;
#pragma unroll
      for (int column = 0; column < patch_width; ++column) {
        const int first = column * Stride;
        const int p = first / 2;
        const unsigned four[4] = {__byte_perm(low[p], low[p + 1], 0x5410U), __byte_perm(low[p], low[p + 1], 0x7632U),
                                  __byte_perm(high[p], high[p + 1], 0x5410U),
                                  __byte_perm(high[p], high[p + 1], 0x7632U)};
#pragma unroll
        for (int row = 0; row < rows; ++row) {
          const int r = i - row * Stride;
          if (r < 0 || r >= 3) continue;
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const int taps = first % 2 == 0 ? filter[r][c] : filter[r][c] << 8;
            sums[row][column][c] = __dp4a(static_cast<int>(four[c]), taps, sums[row][column][c]);
          }
        }
      }
    }
  }
};

/// Computes tiles of results: the pixels that the windows of a tile read are copied to shared memory, and each thread
/// computes patches of 4 columns of results.
template <class T, int Kernel, int Stride>
__global__ void __launch_bounds__(depthwise_threads, 3) depthwise_tiles(const DepthwiseTask task) {
  using Patch = DepthwisePatch<T, Kernel, Stride>;
  constexpr int channels = Patch::channels;
  constexpr int rows_step = Patch::rows * Stride;
  constexpr int columns_step = patch_width * Stride;
  extern __shared__ uint4 shared[];
  auto* const memory = reinterpret_cast<char*>(shared);
  auto* const filters = reinterpret_cast<unsigned*>(memory);  // [words of a window][words of a pixel][channels]
  char* const pixels = memory + Patch::filter_words * task.lanes * 4;
  const int thread = static_cast<int>(threadIdx.x);

  // Consecutive blocks differ first in channels, then in the column and the row of the tile, then in the image.
  const auto split = [](int& from, const Divisor& divisor, int count) {
    const int whole = from;
    from = divisor.quotient(whole);
    return whole - from * count;
  };
  int rest = static_cast<int>(blockIdx.x);
  const int lane_tile = split(rest, task.by_lane_tiles, task.lane_tiles);
  const int tile_column = split(rest, task.by_tile_columns, task.tile_columns);
  const int tile_row = split(rest, task.by_tile_rows, task.tile_rows);
  const std::int64_t item = rest;
  const bool blocked = task.images_of_batch > 1;  // chw32: an image holds the channels of one tile
  const std::int64_t image = blocked ? item * task.images_of_batch + lane_tile : item;
  const int first_channel = lane_tile * task.lanes * channels;
  const int first_stored = blocked ? 0 : first_channel;
  const int lanes = ::min(task.lanes, (task.channels - first_stored) / channels);

  const int pixel_bytes = task.lanes * 4;
  const int first_row = tile_row * task.patch_rows * rows_step - task.row_pad;
  const int first_column = tile_column * task.patch_columns * columns_step - task.column_pad;
  const int seen_rows = (task.patch_rows * Patch::rows - 1) * Stride + Kernel;
  const int seen_columns = (task.patch_columns * patch_width - 1) * Stride + Kernel;
  const int slots = seen_columns + (Patch::skew ? (seen_columns - 1) / columns_step : 0);
  const int row_bytes = slots * pixel_bytes;
  const T* const x = static_cast<const T*>(task.x) + image * task.height * task.width * task.channels + first_stored;
  // A thread copies one 16-byte chunk of the pixels of one column, in every row_step-th row.
  const std::int64_t pitch = std::int64_t{task.row_step} * task.width * task.channels;
  for (int i = thread; i < task.positions * task.row_step; i += depthwise_threads) {
    int chunk_and_column = i;
    const int begin = task.by_positions.quotient(i);
    chunk_and_column -= begin * task.positions;
    const int column = task.by_chunks.quotient(chunk_and_column);
    const int chunk = chunk_and_column - column * task.chunks;
    if (chunk * 4 >= lanes) continue;
    const int x_column = first_column + column;
    const int end = x_column >= 0 && x_column < task.width ? task.height : 0;
    const T* from = x + (std::int64_t{first_row + begin} * task.width + x_column) * task.channels +
                    chunk * (16 / static_cast<int>(sizeof(T)));
    const int slot = column + (Patch::skew ? column / columns_step : 0);
    unsigned to = shared_address(pixels + begin * row_bytes + slot * pixel_bytes + chunk * 16);
#pragma unroll 4
    for (int row = begin; row < seen_rows; row += task.row_step) {
      const int x_row = first_row + row;
      copy_async(to, from, x_row >= 0 && x_row < end ? 16 : 0);
      from += pitch;
      to += static_cast<unsigned>(task.row_step * row_bytes);
    }
  }
  commit_copies();

  const T* const weight = static_cast<const T*>(task.weight);
  for (int i = thread; i < Patch::filter_words * task.lanes; i += depthwise_threads) {
    const int word = task.by_channels.quotient(i);
    const int channel = first_channel + i - word * task.lanes * channels;
    const T* const filter = weight + std::int64_t{channel} * Kernel * Kernel * task.weight_pitch;
    filters[i] = channel < task.all_channels ? Patch::filter_word(filter, word, task.weight_pitch) : 0U;
  }

  const int first_patch = task.by_lanes.quotient(thread);
  const int patch_step = task.by_lanes.quotient(depthwise_threads);
  const int lane = thread - first_patch * task.lanes;
  const int channel = first_channel + lane * channels;
  float biases[channels];
  float factors[channels];
#pragma unroll
  for (int c = 0; c < channels; ++c) {
    const bool exists = channel + c < task.all_channels;
    biases[c] = exists ? task.bias[channel + c] : 0.F;
    factors[c] = exists ? task.epilogue.factor(task.scale[channel + c]) : 0.F;
  }
  wait_for_copies<0>();
  __syncthreads();
  if (lane >= lanes || first_patch >= patch_step) return;
  const bool padded = channel + channels > task.all_channels;
  typename Patch::Filter filter;
  Patch::load_filter(filters + lane * channels, task.lanes, filter);
  T* const y = static_cast<T*>(task.y) + image * task.out_height * task.out_width * task.channels + first_stored +
               lane * channels;
  const std::int64_t line = std::int64_t{task.out_width} * task.channels;
  for (int own = first_patch; own < task.patch_rows * task.patch_columns; own += patch_step) {
    const int patch_row = task.by_patch_columns.quotient(own);
    const int patch_column = own - patch_row * task.patch_columns;
    constexpr int results = Patch::rows * patch_width;
    SumOf<T> sums[Patch::rows][patch_width][channels] = {};
    Patch::add(pixels + patch_row * rows_step * row_bytes + patch_column * (columns_step + Patch::skew) * pixel_bytes +
                   lane * 4,
               pixel_bytes, row_bytes, filter, sums);
    float values[results * channels];
#pragma unroll
    for (int i = 0; i < results * channels; ++i) {
      const SumOf<T> sum = sums[i / (patch_width * channels)][i / channels % patch_width][i % channels];
      values[i] = fmaf(static_cast<float>(sum), factors[i % channels], biases[i % channels]);
    }
    task.epilogue.activate_all(values);
    const int row = (tile_row * task.patch_rows + patch_row) * Patch::rows;
    const int column = (tile_column * task.patch_columns + patch_column) * patch_width;
    const int rows_left = task.out_height - row;
    const int columns_left = task.out_width - column;
    T* to = y + row * line + std::int64_t{column} * task.channels;
#pragma unroll
    for (int i = 0; i < Patch::rows; ++i) {
#pragma unroll
      for (int j = 0; j < patch_width; ++j) {
        float own_values[channels];
#pragma unroll
        for (int c = 0; c < channels; ++c) own_values[c] = values[(i * patch_width + j) * channels + c];
        Vector<T, channels> result;
        if constexpr (std::is_same_v<T, std::int8_t>) {
          result.word(0) = task.quantizer.four(own_values);
        } else {
          result = Vector<T, channels>::pack(own_values);
        }
        if (padded) result = result.first(::max(task.all_channels - channel, 0));
        if (i < rows_left && j < columns_left) result.store(to + j * task.channels);
      }
      to += line;
    }
  }
}

/// Computes strips down a column of linear tensors, so that adjacent threads read adjacent elements.
template <class T, int Kernel, int Stride, int Strip>
__global__ void __launch_bounds__(depthwise_threads) depthwise_planes(const DepthwiseTask task) {
  using Sum = SumOf<T>;
  const std::int64_t own = static_cast<std::int64_t>(blockIdx.x) * depthwise_threads + threadIdx.x;
  if (own >= task.count) return;
  // Consecutive threads differ first in the column, then in the strip, then in the plane.
  const std::int64_t image = own / (static_cast<std::int64_t>(task.strips) * task.out_width);
  const int in_image = static_cast<int>(own - image * task.strips * task.out_width);
  const int strip = task.by_strips.quotient(in_image);
  const int y_column = in_image - strip * task.out_width;
  const int channel = static_cast<int>(image % task.all_channels);
  const int x_column = y_column * Stride - task.column_pad;
  const int x_row = strip * Strip * Stride - task.row_pad;
  const T* const from = static_cast<const T*>(task.x) + image * task.height * task.width;
  const T* const weight = static_cast<const T*>(task.weight) + static_cast<std::int64_t>(channel) * Kernel * Kernel;
  Sum filter[Kernel][Kernel];
#pragma unroll
  for (int i = 0; i < Kernel * Kernel; ++i) filter[i / Kernel][i % Kernel] = static_cast<Sum>(weight[i]);
  Sum sums[Strip] = {};
#pragma unroll
  for (int line = 0; line < (Strip - 1) * Stride + Kernel; ++line) {
    const int row = x_row + line;
    const bool row_inside = row >= 0 && row < task.height;
#pragma unroll
    for (int s = 0; s < Kernel; ++s) {
      const int column = x_column + s;
      const bool inside = row_inside && column >= 0 && column < task.width;
      const Sum value = inside ? static_cast<Sum>(from[static_cast<std::int64_t>(row) * task.width + column]) : Sum(0);
#pragma unroll
      for (int t = 0; t < Strip; ++t) {
        const int r = line - t * Stride;
        if (r >= 0 && r < Kernel) sums[t] += value * filter[r][s];
      }
    }
  }
  const float bias = task.bias[channel];
  const float factor = task.epilogue.factor(task.scale[channel]);
  T* const to = static_cast<T*>(task.y) + (image * task.out_height + strip * Strip) * task.out_width + y_column;
#pragma unroll
  for (int t = 0; t < Strip; ++t) {
    if (strip * Strip + t >= task.out_height) break;
    const float value = task.epilogue.apply(static_cast<float>(sums[t]), factor, bias);
    if constexpr (std::is_same_v<T, std::int8_t>)
      to[static_cast<std::int64_t>(t) * task.out_width] = quantize_device(value, task.epilogue.y_scale);
    else
      to[static_cast<std::int64_t>(t) * task.out_width] = static_cast<T>(value);
  }
}

template <class T, int Kernel, int Stride>
Status launch_vectors(DepthwiseTask task, const CudaContext& context) {
  constexpr int strip = std::is_same_v<T, std::int8_t> ? 2 : 4;
  constexpr int most_lanes = 8;  // 128 contiguous bytes
  const int vectors = task.channels / widest<T>;
  const auto tiles = static_cast<int>(ceil_divide(vectors, most_lanes));
  task.lanes = static_cast<int>(ceil_divide(vectors, tiles));
  task.lane_tiles = tiles * task.images_of_batch;
  task.strips = static_cast<int>(ceil_divide(task.out_width, strip));
  task.count *= std::int64_t{task.strips} * task.out_height;
  const int window = task.kernel_height * task.kernel_width;
  const Grid grid{.blocks = ceil_divide(task.count, depthwise_threads / task.lanes) * task.lane_tiles,
                  .threads = depthwise_threads,
                  .cluster = 1,
                  .shared_bytes = window * task.lanes * widest<T> * 4};
  return launch("Convolution depthwise", depthwise_vectors<T, Kernel, Stride, strip>, grid, context, task);
}

template <class T>
Status launch_points(DepthwiseTask task, const CudaContext& context) {
  constexpr int each = 4;
  task.lanes = task.channels / widest<T>;
  const std::int64_t vectors = task.count * task.height * task.width * task.lanes;
  const int threads = depthwise_threads / task.lanes * task.lanes;
  return launch("Convolution depthwise", depthwise_points<T, each>,
                {ceil_divide(vectors, each * threads), depthwise_threads}, context, task, vectors);
}

template <class T, int Kernel, int Stride>
Status launch_tiles(DepthwiseTask task, const CudaContext& context) {
  using Patch = DepthwisePatch<T, Kernel, Stride>;
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  constexpr std::int64_t most_chunks = 8;  // 128 contiguous bytes
  const std::int64_t chunks = task.channels / widest<T>;
  const std::int64_t lane_tiles = ceil_divide(chunks, most_chunks);
  task.lanes = static_cast<int>(ceil_divide(chunks, lane_tiles)) * 4;
  task.lane_tiles = static_cast<int>(lane_tiles) * task.images_of_batch;
  task.chunks = task.lanes / 4;
  const auto split = [](std::int64_t count, std::int64_t most) {
    return static_cast<int>(ceil_divide(count, ceil_divide(count, most)));
  };
  const std::int64_t rows = ceil_divide(task.out_height, Patch::rows);
  const std::int64_t columns = ceil_divide(task.out_width, patch_width);
  // The limits were measured on an H200. Larger tiles read fewer pixels twice; the copies of smaller tiles overlap with
  // the products of other blocks.
  constexpr bool bytes = std::is_same_v<T, std::int8_t>;
  const int most_shared = std::min((bytes ? 72 : 48) * 1024, device.shared_bytes);
  std::int64_t most_columns = bytes ? 8 : 4;
  std::int64_t most_patches = (bytes ? 1024 : 512) / task.lanes;
  Grid grid{.blocks = 0, .threads = depthwise_threads};
  while (true) {
    task.patch_columns = split(columns, most_columns);
    task.patch_rows = split(rows, ceil_divide(most_patches, task.patch_columns));
    task.tile_columns = static_cast<int>(ceil_divide(columns, task.patch_columns));
    task.tile_rows = static_cast<int>(ceil_divide(rows, task.patch_rows));
    grid.blocks = task.count * task.tile_columns * task.tile_rows * task.lane_tiles;
    const int seen_columns = (task.patch_columns * patch_width - 1) * Stride + Kernel;
    const int seen_rows = (task.patch_rows * Patch::rows - 1) * Stride + Kernel;
    const int slots = seen_columns + (Patch::skew ? (seen_columns - 1) / (patch_width * Stride) : 0);
    grid.shared_bytes = (Patch::filter_words + seen_rows * slots) * task.lanes * 4;
    task.positions = seen_columns * task.chunks;
    const bool few = grid.blocks < 2 * device.multiprocessors;
    if (grid.shared_bytes <= most_shared &&
        (!few || task.patch_rows * task.patch_columns * task.lanes <= depthwise_threads))
      break;
    if (task.patch_rows > 1) {
      most_patches = task.patch_rows / 2 * task.patch_columns;
    } else {
      most_columns = task.patch_columns / 2;
      most_patches = most_columns;
    }
  }
  task.row_step = std::max(depthwise_threads / task.positions, 1);
  task.by_lane_tiles = Divisor(task.lane_tiles);
  task.by_tile_columns = Divisor(task.tile_columns);
  task.by_tile_rows = Divisor(task.tile_rows);
  task.by_chunks = Divisor(task.chunks);
  task.by_positions = Divisor(task.positions);
  task.by_channels = Divisor(task.lanes * Patch::channels);
  task.by_lanes = Divisor(task.lanes);
  task.by_patch_columns = Divisor(task.patch_columns);
  return launch("Convolution depthwise", depthwise_tiles<T, Kernel, Stride>, grid, context, task);
}

template <class T, int Kernel, int Stride>
Status launch_planes(DepthwiseTask task, const CudaContext& context) {
  constexpr int strip = 4;
  task.strips = static_cast<int>(ceil_divide(task.out_height, strip));
  task.by_strips = Divisor(task.out_width);
  task.count *= std::int64_t{task.strips} * task.out_width;
  const Grid grid{ceil_divide(task.count, depthwise_threads), depthwise_threads};
  return launch("Convolution depthwise", depthwise_planes<T, Kernel, Stride, strip>, grid, context, task);
}

/// Returns whether the window is 3 x 3 or 5 x 5 with stride 1 or 2 and no dilation, as in most networks. Linear tensors
/// are supported with these windows only.
bool is_usual(const ConvolutionPlan& plan) {
  const auto& [depth, height, width] = plan.axis;
  return height.kernel == width.kernel && (width.kernel == 3 || width.kernel == 5) && height.stride == width.stride &&
         width.stride <= 2 && height.dilation == 1 && width.dilation == 1;
}

}  // namespace

Status depthwise_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  if (x.dtype == DType::f32 && x.layout != Layout::linear) return unsupported("supports f32 only in the linear layout");
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  if (plan.group != plan.channels || plan.outputs != plan.channels)
    return unsupported("supports groups of one channel of x and one of y");
  if (depth.in != 1 || depth.kernel != 1 || depth.out != 1) return unsupported("supports 1 or 2 spatial axes");
  if (x.layout == Layout::linear && !is_usual(plan)) {
    return unsupported("supports linear tensors with windows of 3 x 3 or 5 x 5, strides of 1 or 2 and no dilation");
  }
  if (plan.window() > most_window) return unsupported("supports windows of up to 96 elements");
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 2;
  const std::int64_t reach_height = (height.kernel - 1) * height.dilation + height.in + height.pad;
  const std::int64_t reach_width = (width.kernel - 1) * width.dilation + width.in + width.pad;
  if (plan.out_pixels() > most / 8 || reach_height > most || reach_width > most || plan.channels > most ||
      height.out * height.stride > most || width.out * width.stride > most) {
    return unsupported("supports images of up to 2^27 pixels");
  }
  return {};
}

Status depthwise_run(const Convolution& op, const Problem& problem, const Buffers& buffers,
                     const CudaContext& context) {
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  const std::int64_t vector = channels_per_vector(to.layout);
  const std::int64_t stored = ceil_divide(plan.channels, vector) * vector;
  DepthwiseTask task{.x = buffers.inputs[Convolution::x],
                     .weight = buffers.inputs[Convolution::weight],
                     .bias = static_cast<const float*>(buffers.inputs[Convolution::bias]),
                     .scale = static_cast<const float*>(buffers.inputs[Convolution::scale]),
                     .y = buffers.outputs[0],
                     .epilogue = ConvolutionEpilogue::of(op, to.dtype),
                     .quantizer = Quantizer(op.y_scale),
                     .images_of_batch = as_int(to.layout == Layout::hwc8 ? 1 : stored / vector),
                     .channels = as_int(to.layout == Layout::hwc8 ? stored : vector),
                     .all_channels = as_int(plan.channels),
                     .weight_pitch = as_int(vector),
                     .height = as_int(height.in),
                     .width = as_int(width.in),
                     .out_height = as_int(height.out),
                     .out_width = as_int(width.out),
                     .kernel_height = as_int(height.kernel),
                     .kernel_width = as_int(width.kernel),
                     .row_stride = as_int(height.stride),
                     .column_stride = as_int(width.stride),
                     .row_pad = as_int(height.pad),
                     .column_pad = as_int(width.pad),
                     .row_dilation = as_int(height.dilation),
                     .column_dilation = as_int(width.dilation),
                     .lanes = 1,
                     .lane_tiles = 1,
                     .strips = 1,
                     .by_strips = {},
                     .patch_rows = 1,
                     .patch_columns = 1,
                     .tile_rows = 1,
                     .tile_columns = 1,
                     .chunks = 1,
                     .positions = 1,
                     .row_step = 1,
                     .by_lane_tiles = {},
                     .by_tile_columns = {},
                     .by_tile_rows = {},
                     .by_chunks = {},
                     .by_positions = {},
                     .by_channels = {},
                     .by_lanes = {},
                     .by_patch_columns = {},
                     .count = 0};
  task.count = to.layout == Layout::linear ? plan.batch * plan.channels : plan.batch;
  const auto by_window = [&](auto run) {
    const bool two = width.stride == 2;
    if (width.kernel == 3) return two ? run.template operator()<3, 2>() : run.template operator()<3, 1>();
    return two ? run.template operator()<5, 2>() : run.template operator()<5, 1>();
  };
  return dispatch_device(to.dtype, [&](auto element) -> Status {
    using T = decltype(element);
    if (to.layout == Layout::linear) {
      return by_window([&]<int Kernel, int Stride>() { return launch_planes<T, Kernel, Stride>(task, context); });
    }
    if (!is_aligned(task.x, 16) || !is_aligned(task.y, 16)) {
      return invalid_argument("Convolution: the addresses of hwc8 and chw32 tensors must be multiples of 16");
    }
    if constexpr (std::is_same_v<T, float>) {
      return unsupported("supports f32 only in the linear layout");
    } else {
      if constexpr (sizeof(T) == 2) {
        const auto is_point = [](const ConvolutionAxis& axis) {
          return axis.kernel == 1 && axis.stride == 1 && axis.in == axis.out && axis.pad == 0;
        };
        if (is_point(height) && is_point(width) && stored <= depthwise_threads * vector) {
          return launch_points<T>(task, context);
        }
      }
      const bool wide_bytes = std::is_same_v<T, std::int8_t> && width.kernel != 3;
      if (!is_usual(plan) || wide_bytes) return launch_vectors<T, 0, 0>(task, context);
      return by_window([&]<int Kernel, int Stride>() {
        if constexpr (std::is_same_v<T, std::int8_t> && Kernel != 3)
          return launch_vectors<T, 0, 0>(task, context);
        else
          return launch_tiles<T, Kernel, Stride>(task, context);
      });
    }
  });
}

}  // namespace graft::ops
