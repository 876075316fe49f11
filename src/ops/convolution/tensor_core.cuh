// Convolution as a matrix product on tensor cores (mma.sync): rows are pixels of y, columns are its channels. Both
// operands are loaded in chunks of 16 bytes, which contain adjacent channels.
#pragma once

#include "kernels/cluster.cuh"
#include "kernels/mma.cuh"
#include "kernels/vector.cuh"
#include "ops/convolution/tensor_core.hpp"
#include "ops/convolution/window.cuh"

namespace graft::ops {

/// A tile with WarpRows x WarpColumns warps along its rows and columns.
template <int Index, int WarpRows, int WarpColumns>
struct TensorCoreTile {
  static constexpr TensorCoreTileSize size = tensor_core_tiles[Index];
  static constexpr int rows = size.rows;
  static constexpr int columns = size.columns;
  static constexpr int warp_rows = WarpRows;
  static constexpr int warp_columns = WarpColumns;
  static constexpr int chunks = size.chunks;
  static constexpr int stages = size.stages;
  static constexpr int threads = WarpRows * WarpColumns * 32;
  static constexpr int step_bytes = chunks * 16;
  static constexpr int stage_bytes = size.stage_bytes();
  static constexpr int pitch = size.pitch();
  static constexpr int tile_bytes = size.tile_bytes();
};

namespace detail {

/// The position of a chunk of a sum in x and in the filter.
struct ChunkEntry {
  int offset;       ///< The number of bytes from the first element of the window in x.
  unsigned packed;  ///< The chunk of the filter, the row and column of the window, and the number of valid bytes.

  [[nodiscard]] __device__ int filter_chunk() const { return static_cast<int>(packed & 0xFFFFU); }
  [[nodiscard]] __device__ unsigned row() const { return packed >> 16U & 0xFU; }
  [[nodiscard]] __device__ unsigned column() const { return packed >> 20U & 0xFU; }
  [[nodiscard]] __device__ int bytes() const { return static_cast<int>(packed >> 24U); }
};

[[nodiscard]] __device__ inline ChunkEntry find_chunk(const TensorCoreTask& task, int chunk, int bytes_per_channel) {
  if (chunk >= task.chunks) return {0, 0};
  const int window = task.kernel_height * task.kernel_width;
  const int block = ::min(task.by_block.quotient(chunk), task.blocks);
  const int in_block = chunk - block * task.block_chunks * window;
  const bool whole = block < task.blocks;
  const int tap = (whole ? task.by_block_chunks : task.by_rest_chunks).quotient(in_block);
  const int in_tap = in_block - tap * (whole ? task.block_chunks : task.rest_chunks);
  const int row = task.by_kernel_width.quotient(tap);
  const int column = tap - row * task.kernel_width;
  const int left = task.group_channels * bytes_per_channel - (block * task.block_chunks + in_tap) * 16;
  const int pixels = row * task.row_dilation * task.width + column * task.column_dilation;
  const int filter_chunk = block * task.filter_block_chunks + tap * task.filter_tap_chunks + in_tap;
  return {block * task.block_bytes + pixels * task.pixel_bytes + in_tap * 16,
          static_cast<unsigned>(filter_chunk | row << 16 | column << 20 | ::min(::max(left, 0), 16) << 24)};
}

/// Adjacent elements that are stored together.
template <class T, int Count>
struct alignas(Count * sizeof(T)) Pack {
  T values[Count];

  __device__ void fill(const float (&numbers)[Count], const Quantizer& quantizer) {
    if constexpr (std::is_same_v<T, std::int8_t>) {
#pragma unroll
      for (int i = 0; i < Count; i += 4) *reinterpret_cast<unsigned*>(values + i) = quantizer.four(numbers + i);
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) values[i] = static_cast<T>(numbers[i]);
    }
  }
};

/// Returns the element of y for a sum. `factor` applies to i8 only; the factor of other types is 1.
template <class T>
[[nodiscard]] __device__ float finish(const ConvolutionEpilogue& epilogue, SumOf<T> sum, float factor, float bias) {
  if constexpr (std::is_same_v<T, std::int8_t>)
    return epilogue.apply(static_cast<float>(sum), factor, bias);
  else
    return epilogue.apply(sum, 1.F, bias);
}

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::size.blocks) tensor_core(const TensorCoreTask task) {
  using Sum = SumOf<T>;
  constexpr int threads = Tile::threads;
  constexpr int step_bytes = Tile::step_bytes;
  constexpr int rows_per_pass = threads / Tile::chunks;
  static_assert(rows_per_pass % 8 == 0 && Tile::rows % rows_per_pass == 0 && Tile::columns % rows_per_pass == 0);
  constexpr int row_passes = Tile::rows / rows_per_pass;
  constexpr int column_passes = Tile::columns / rows_per_pass;
  // The chunks of a row are permuted with a period of 8 rows, so that loading a column of chunks touches every bank
  // once.
  const auto swizzle = [](int row) { return Tile::chunks == 8 ? row & 7 : (row >> 1) & 3; };
  static_assert(Tile::chunks == 4 || Tile::chunks == 8);

  extern __shared__ uint4 shared[];
  auto* const bytes = reinterpret_cast<char*>(shared);
  auto* const sums = reinterpret_cast<Sum*>(bytes);  // used after the last step
  auto* const biases = reinterpret_cast<float*>(bytes + Tile::tile_bytes);
  float* const factors = biases + Tile::columns;
  auto* const table = reinterpret_cast<ChunkEntry*>(factors + Tile::columns);

  const int thread = static_cast<int>(threadIdx.x);
  const int tile = static_cast<int>(blockIdx.x) / task.splits;
  const int part = static_cast<int>(blockIdx.x) - tile * task.splits;
  const int row_tile_and_group = task.by_column_tiles.quotient(tile);
  const int first_column = (tile - row_tile_and_group * task.column_tiles) * Tile::columns;
  const int group = task.by_row_tiles.quotient(row_tile_and_group);
  const int first_row = task.by_row_tiles.remainder(row_tile_and_group) * Tile::rows;
  const int group_first = group * task.group_outputs;
  const int first_chunk = part * task.steps * Tile::chunks;

  for (int i = thread; i < task.steps * Tile::chunks; i += threads) {
    table[i] = find_chunk(task, first_chunk + i, static_cast<int>(sizeof(T)));
  }
  for (int i = thread; i < Tile::columns; i += threads) {
    const int k = first_column + i;
    const bool exists = k < task.group_outputs;
    biases[i] = exists ? task.bias[group_first + k] : 0.F;
    factors[i] = exists ? task.epilogue.factor(task.scale[group_first + k]) : 0.F;
  }

  // This thread copies one chunk of each step, for several rows of both operands.
  const int own_chunk = thread % Tile::chunks;
  const int own_row = thread / Tile::chunks;
  const char* images[row_passes];
  unsigned inside[row_passes];
#pragma unroll
  for (int i = 0; i < row_passes; ++i) {
    const int pixel = first_row + own_row + i * rows_per_pass;
    const int image = task.by_image.quotient(pixel);
    const int in_image = pixel - image * task.image_pixels;
    const int y_row = task.by_row.quotient(in_image);
    const int y_column = task.by_row.remainder(in_image);
    const int x_row = y_row * task.row_stride - task.row_pad;
    const int x_column = y_column * task.column_stride - task.column_pad;
    images[i] = task.x + image * task.image_bytes + group * task.group_bytes +
                (static_cast<std::int64_t>(x_row) * task.width + x_column) * task.pixel_bytes;
    const unsigned rows = elements_inside(x_row, task.height, task.kernel_height, task.row_dilation);
    const unsigned columns = elements_inside(x_column, task.width, task.kernel_width, task.column_dilation);
    inside[i] = pixel < task.pixels ? rows | columns << 16U : 0;
  }
  const std::int64_t filter_bytes = static_cast<std::int64_t>(task.chunks) * 16;
  const char* const filters = task.weight + (group_first + first_column + own_row) * filter_bytes;
  const int missing_from = task.group_outputs - first_column - own_row;  // Filters from this row on do not exist.
  const unsigned own_place =
      shared_address(bytes) + static_cast<unsigned>(own_row * step_bytes + (own_chunk ^ swizzle(own_row)) * 16);
  __syncthreads();

  const auto copy_step = [&](int step, unsigned stage) {
    if (step < task.steps) {
      const ChunkEntry entry = table[step * Tile::chunks + own_chunk];
      const unsigned place = own_place + stage;
#pragma unroll
      for (int i = 0; i < row_passes; ++i) {
        const bool valid = ((inside[i] >> entry.row()) & (inside[i] >> (16U + entry.column())) & 1U) != 0;
        copy_async(place + static_cast<unsigned>(i * rows_per_pass * step_bytes), images[i] + entry.offset,
                   valid ? entry.bytes() : 0);
      }
      const char* const filter = filters + entry.filter_chunk() * 16;
#pragma unroll
      for (int i = 0; i < column_passes; ++i) {
        copy_async(place + static_cast<unsigned>((Tile::rows + i * rows_per_pass) * step_bytes),
                   filter + i * rows_per_pass * filter_bytes, i * rows_per_pass < missing_from ? entry.bytes() : 0);
      }
    }
    commit_copies();
  };

  constexpr int warp_height = Tile::rows / Tile::warp_rows;
  constexpr int warp_width = Tile::columns / Tile::warp_columns;
  constexpr int row_blocks = warp_height / 16;
  constexpr int column_blocks = warp_width / 8;
  static_assert(warp_height % 16 == 0 && warp_width % 16 == 0);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int warp_row = warp / Tile::warp_columns * warp_height;
  const int warp_column = warp % Tile::warp_columns * warp_width;
  Sum accumulators[row_blocks][column_blocks][4] = {};

  // In a block of 16 rows x 32 bytes of the left operand, a lane addresses the first or second chunk of row lane % 16.
  // In the right operand, the lanes address two blocks of 8 columns with two chunks each.
  const int left_row = warp_row + lane % 16;
  const int left_chunk = lane / 16;
  const int right_row = warp_column + lane % 8 + lane / 16 * 8;
  const int right_chunk = lane / 8 % 2;
  const unsigned left_place = shared_address(bytes) + static_cast<unsigned>(left_row * step_bytes);
  const unsigned right_place = shared_address(bytes) + static_cast<unsigned>((Tile::rows + right_row) * step_bytes);

#pragma unroll
  for (int step = 0; step < Tile::stages - 1; ++step) copy_step(step, static_cast<unsigned>(step * Tile::stage_bytes));
  unsigned stage = 0;  // The position of the chunks of the current step.
  // The position to which the chunks of a later step are copied.
  unsigned next_stage = (Tile::stages - 1) * Tile::stage_bytes;
  const auto advance = [](unsigned& at) {
    at += Tile::stage_bytes;
    if (at == Tile::stages * Tile::stage_bytes) at = 0;
  };
  // The fragments of one 32-byte block of a step are multiplied while the fragments of the next block are loaded.
  unsigned left[2][row_blocks][4];
  unsigned right[2][column_blocks / 2][4];
  const auto load_fragments = [&](int k) {
#pragma unroll
    for (int i = 0; i < row_blocks; ++i) {
      const int chunk = (2 * k + left_chunk) ^ swizzle(left_row);
      load_matrices(left[k % 2][i], left_place + stage + static_cast<unsigned>(i * 16 * step_bytes + chunk * 16));
    }
#pragma unroll
    for (int j = 0; j < column_blocks / 2; ++j) {
      const int chunk = (2 * k + right_chunk) ^ swizzle(right_row);
      load_matrices(right[k % 2][j], right_place + stage + static_cast<unsigned>(j * 16 * step_bytes + chunk * 16));
    }
  };
  for (int step = 0; step < task.steps; ++step) {
    wait_for_copies<Tile::stages - 2>();
    __syncthreads();
    load_fragments(0);
    copy_step(step + Tile::stages - 1, next_stage);
    advance(next_stage);
#pragma unroll
    for (int k = 0; k < Tile::chunks / 2; ++k) {
      if (k + 1 < Tile::chunks / 2) load_fragments(k + 1);
#pragma unroll
      for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
        for (int j = 0; j < column_blocks; ++j) {
          const auto& pair = right[k % 2][j / 2];
          multiply_add<T>(accumulators[i][j], left[k % 2][i], pair[j % 2 * 2], pair[j % 2 * 2 + 1]);
        }
      }
    }
    advance(stage);
  }

  // The tile is written to shared memory, so that adjacent elements of y are stored together and the parts of a cluster
  // can be added.
  wait_for_copies<0>();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
    for (int j = 0; j < column_blocks; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Sum* to = sums + (warp_row + i * 16 + half * 8 + lane / 4) * Tile::pitch + warp_column + j * 8 + lane % 4 * 2;
        *reinterpret_cast<Pack<Sum, 2>*>(to) = {accumulators[i][j][2 * half], accumulators[i][j][2 * half + 1]};
      }
    }
  }
  synchronize_blocks(task.splits);

  const ClusterSums<Sum> tile_sums(sums, task.splits);
  const int rows_here = Tile::rows / task.splits;
  const int first_here = part * rows_here;
  if (task.layout == Layout::linear) {
    constexpr int count = tensor_core_linear_pixels;
    for (int i = thread; i < rows_here / count * Tile::columns; i += threads) {
      const int column = i % Tile::columns;
      const int row = first_here + i / Tile::columns * count;
      const int k = first_column + column;
      const int pixel = first_row + row;
      if (k >= task.group_outputs || pixel >= task.pixels) continue;
      float numbers[count];
#pragma unroll
      for (int j = 0; j < count; ++j) {
        Sum sum[1];
        tile_sums.load((row + j) * Tile::pitch + column, sum);
        numbers[j] = finish<T>(task.epilogue, sum[0], factors[column], biases[column]);
      }
      Pack<T, count> results;
      results.fill(numbers, task.quantizer);
      const int image = task.by_image.quotient(pixel);
      int in_image = pixel - image * task.image_pixels;
      T* to = static_cast<T*>(task.y) +
              (static_cast<std::int64_t>(image) * task.stored_outputs + group_first + k) * task.image_pixels;
      if (task.wide_stores) {
        *reinterpret_cast<Pack<T, count>*>(to + in_image) = results;
        continue;
      }
#pragma unroll
      for (int j = 0; j < count; ++j) {
        if (pixel + j >= task.pixels) break;
        to[in_image] = results.values[j];
        if (++in_image == task.image_pixels) {
          in_image = 0;
          to += static_cast<std::int64_t>(task.stored_outputs) * task.image_pixels;
        }
      }
    }
  } else {
    constexpr int count = 16 / static_cast<int>(sizeof(T));
    constexpr int packs = Tile::columns / count;
    static_assert(threads % packs == 0, "a thread has the same channels in every row");
    const int column = thread % packs * count;
    const int k = first_column + column;
    float own_biases[count];
    float own_factors[count];
#pragma unroll
    for (int j = 0; j < count; ++j) {
      own_biases[j] = biases[column + j];
      own_factors[j] = factors[column + j];
    }
    const int end = task.stored_outputs - group_first;
    const bool stored = k < end && (k < task.group_outputs || group_first + task.group_outputs == task.all_outputs);
    for (int i = thread / packs; stored && i < rows_here; i += threads / packs) {
      const int row = first_here + i;
      const int pixel = first_row + row;
      if (pixel >= task.pixels) break;
      Sum values[count];
      tile_sums.load(row * Tile::pitch + column, values);
      float numbers[count];
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const float number = finish<T>(task.epilogue, values[j], own_factors[j], own_biases[j]);
        numbers[j] = k + j < task.group_outputs ? number : 0.F;
      }
      Pack<T, count> results;
      results.fill(numbers, task.quantizer);
      std::int64_t at = 0;
      if (task.layout == Layout::hwc8) {
        at = static_cast<std::int64_t>(pixel) * task.stored_outputs + group_first + k;
      } else {
        const int image = task.by_image.quotient(pixel);
        const int channel = group_first + k;
        const std::int64_t block = static_cast<std::int64_t>(image) * (task.stored_outputs / 32) + channel / 32;
        at = (block * task.image_pixels + (pixel - image * task.image_pixels)) * 32 + channel % 32;
      }
      *reinterpret_cast<Pack<T, count>*>(static_cast<T*>(task.y) + at) = results;
    }
  }
  if (task.splits > 1) synchronize_blocks(task.splits);  // Other blocks may still read the sums of this block.
}

}  // namespace detail

template <class T, class Tile>
[[nodiscard]] Status launch_tile(TensorCoreTask task, int splits, const CudaContext& context) {
  const auto row_tiles = static_cast<int>(ceil_divide(task.pixels, Tile::rows));
  task.column_tiles = static_cast<int>(ceil_divide(task.group_outputs, Tile::columns));
  task.by_column_tiles = Divisor(task.column_tiles);
  task.by_row_tiles = Divisor(row_tiles);
  task.splits = splits;
  task.steps = static_cast<int>(ceil_divide(task.chunks, Tile::chunks * splits));
  const Grid grid{.blocks = std::int64_t{row_tiles} * task.column_tiles * task.groups * splits,
                  .threads = Tile::threads,
                  .cluster = splits,
                  .shared_bytes = Tile::size.shared_bytes(task.steps)};
  return launch("Convolution tensor_core", detail::tensor_core<T, Tile>, grid, context, task);
}

template <class T>
Status launch_tensor_core(const TensorCoreTask& task, const TensorCoreChoice& choice, const CudaContext& context) {
  switch (choice.tile) {
    case 0: return launch_tile<T, TensorCoreTile<0, 2, 2>>(task, choice.splits, context);
    case 1: return launch_tile<T, TensorCoreTile<1, 4, 2>>(task, choice.splits, context);
    case 2: return launch_tile<T, TensorCoreTile<2, 2, 2>>(task, choice.splits, context);
    case 4: return launch_tile<T, TensorCoreTile<4, 2, 2>>(task, choice.splits, context);
    default: return launch_tile<T, TensorCoreTile<tensor_core_least_tile, 2, 2>>(task, choice.splits, context);
  }
}

}  // namespace graft::ops
