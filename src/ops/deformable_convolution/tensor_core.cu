// DeformableConvolution as a matrix product on tensor cores (mma.sync; f32 as three products of TF32): rows are pixels
// of y, columns its channels. The left operand is sampled into shared memory while the previous step is multiplied, so
// no columns are stored. A tile that is as wide as there are filters samples each element once. If there are fewer
// tiles than multiprocessors, the blocks of a cluster share the steps of a tile.
#include <algorithm>
#include <array>

#include "kernels/cluster.cuh"
#include "kernels/mma.cuh"
#include "kernels/numbers.cuh"
#include "ops/deformable_convolution/kernels.hpp"
#include "ops/deformable_convolution/tiles.cuh"

namespace graft::ops {
namespace {

/// A tile of WarpRows x WarpColumns warps with 32 rows each. Time16 and Time32 are the hundredths of a microsecond that
/// a step of 16-bit types and of f32 takes on an H200.
template <int WarpRows, int WarpColumns, int WarpWidth, int Blocks, int Time16, int Time32>
struct DeformableTile {
  static constexpr int rows = WarpRows * 32;
  static constexpr int columns = WarpColumns * WarpWidth;
  static constexpr int warp_columns = WarpColumns;
  static constexpr int warp_width = WarpWidth;
  static constexpr int blocks = Blocks;  ///< The number of blocks per multiprocessor.
  template <class T>
  static constexpr double microseconds = (sizeof(T) == 2 ? Time16 : Time32) / 100.;
  static constexpr int threads = WarpRows * WarpColumns * 32;
  static constexpr int stages = 3;
  static constexpr int step_chunks = deformable_step_bytes / 16;
  static constexpr int step_bytes = deformable_step_bytes;
  static constexpr int stage_bytes = (rows + columns) * step_bytes;
  /// The number of floats from one column of sums to the next, with which the sums of a warp touch every bank once.
  static constexpr int pitch = rows + 4;
  static constexpr int tile_bytes = stages * stage_bytes;
  static constexpr int shared_bytes = tile_bytes + static_cast<int>(sizeof(DeformableCorners<rows>));
  static_assert(columns * pitch * 4 <= tile_bytes && rows <= threads && tile_bytes % 16 == 0);
};

/// A part of the sums of a tile: the steps from `first` to `end` (exclusive).
struct DeformableSteps {
  int first;
  int end;
};

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks) deformable_tensor_core(const DeformableTask task) {
  constexpr int threads = Tile::threads;
  constexpr int step_bytes = Tile::step_bytes;
  constexpr int chunk_elements = widest<T>;
  constexpr int rows_per_pass = threads / Tile::step_chunks;
  constexpr int row_passes = Tile::rows / rows_per_pass;
  constexpr int column_passes = Tile::columns / rows_per_pass;
  static_assert(rows_per_pass % 8 == 0 && Tile::rows % rows_per_pass == 0 && Tile::columns % rows_per_pass == 0);

  extern __shared__ uint4 shared[];
  auto* const bytes = reinterpret_cast<char*>(shared);
  auto& corners = *reinterpret_cast<DeformableCorners<Tile::rows>*>(bytes + Tile::tile_bytes);
  const unsigned stages = shared_address(bytes);

  const int thread = static_cast<int>(threadIdx.x);
  const int part = static_cast<int>(blockIdx.x) % task.parts;
  const DeformableBlock block = deformable_block<Tile::rows, Tile::columns>(task);
  const DeformableSteps steps{part * task.steps_of_part, ::min((part + 1) * task.steps_of_part, task.steps)};
  // This thread samples one chunk of each step, and copies one chunk of the filters, for several rows. The chunks of a
  // row are permuted by a pattern over 8 rows, so that reading a column of chunks touches every bank once.
  const int own_chunk = thread % Tile::step_chunks;
  const int own_row = thread / Tile::step_chunks;
  const unsigned own_place = static_cast<unsigned>(own_row * step_bytes + (own_chunk ^ (own_row & 7)) * 16);
  const char* const item =
      task.x + block.item * task.item_bytes + std::int64_t{block.group} * task.sections_of_group * task.section_bytes;
  const std::int64_t filter_bytes = std::int64_t{task.steps} * step_bytes;
  const int own_output = block.first_output + own_row;
  const char* const filters =
      task.weight + (std::int64_t{block.group} * task.group_outputs + own_output) * filter_bytes + own_chunk * 16;

  const auto stage_of = [&](int step) {
    return stages + static_cast<unsigned>(step % Tile::stages * Tile::stage_bytes);
  };
  const auto copy_filters = [&](int step) {
    if (step < steps.end) {
      const unsigned place = stage_of(step) + Tile::rows * step_bytes + own_place;
      const char* const from = filters + std::int64_t{step} * step_bytes;
#pragma unroll
      for (int i = 0; i < column_passes; ++i) {
        copy_async(place + static_cast<unsigned>(i * rows_per_pass * step_bytes),
                   from + i * rows_per_pass * filter_bytes,
                   own_output + i * rows_per_pass < task.group_outputs ? 16 : 0);
      }
    }
    commit_copies();
  };

  // The compiler keeps only those vectors in registers whose loads are pending.
  DeformableVectors gathered[row_passes];
  const auto gather = [&](int step, int first, int count) {
    if (step >= steps.end) return;
    const DeformableStep at = deformable_step(task, step);
    const int offset = at.chunk * step_bytes + own_chunk * 16;
    const char* const from = item + std::int64_t{at.section} * task.section_bytes + offset;
#pragma unroll
    for (int i = first; i < first + count; ++i) {
      gathered[i].load(from, corners.places[step % 2][own_row + i * rows_per_pass], offset < task.section_bytes);
    }
  };
  const auto blend = [&](int step, int first, int count) {
    if (step >= steps.end) return;
#pragma unroll
    for (int i = first; i < first + count; ++i) {
      const int row = own_row + i * rows_per_pass;
      float samples[chunk_elements];
      gathered[i].template blend<T>(corners.weights[step % 2][row], corners.factors[step % 2][row], samples);
      const uint4 packed = Vector<T, chunk_elements>::pack(samples).raw;
      const unsigned place = stage_of(step) + own_place + static_cast<unsigned>(i * rows_per_pass * step_bytes);
      asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(place), "r"(packed.x), "r"(packed.y), "r"(packed.z),
                   "r"(packed.w)
                   : "memory");
    }
  };

  const int lane = thread % 32;
  const int warp = thread / 32;
  const int warp_row = warp / Tile::warp_columns * 32;
  const int warp_column = warp % Tile::warp_columns * Tile::warp_width;
  constexpr int row_blocks = 2;
  constexpr int column_pairs = Tile::warp_width / 16;
  float sums[column_pairs][row_blocks][2][4] = {};
  // In a block of 16 rows x 32 bytes of the left operand, a lane addresses the first or second chunk of row lane % 16.
  // In the right operand, the lanes address two blocks of 8 columns with two chunks each.
  const int left_row = warp_row + lane % 16;
  const int left_chunk = lane / 16;
  const int right_row = warp_column + lane % 8 + lane / 16 * 8;
  const int right_chunk = lane / 8 % 2;
  const auto multiply = [&](int step, int k) {
    const unsigned stage = stage_of(step);
    unsigned left[row_blocks][4];
#pragma unroll
    for (int i = 0; i < row_blocks; ++i) {
      const int chunk = (2 * k + left_chunk) ^ (left_row & 7);
      load_matrices(left[i], stage + static_cast<unsigned>((left_row + i * 16) * step_bytes + chunk * 16));
    }
#pragma unroll
    for (int j = 0; j < column_pairs; ++j) {
      unsigned right[4];
      const int chunk = (2 * k + right_chunk) ^ (right_row & 7);
      load_matrices(right, stage + static_cast<unsigned>((Tile::rows + right_row + j * 16) * step_bytes + chunk * 16));
      const unsigned columns[2][2] = {{right[0], right[1]}, {right[2], right[3]}};
      multiply_add_all<T>(sums[j], left, columns);
    }
  };

  const bool is_scout = thread < Tile::rows;
  DeformableScout<T> scout(task, block, block.first_pixel + thread);
  const auto find_corners = [&](int step) {
    if (!is_scout) return;
    scout.write(corners, step, thread);
    scout.load(step + 1);
  };

  copy_filters(steps.first);
  copy_filters(steps.first + 1);
  if (is_scout) scout.load(steps.first);
  find_corners(steps.first);
  find_corners(steps.first + 1);
  __syncthreads();
  gather(steps.first, 0, row_passes);
  blend(steps.first, 0, row_passes);
  // In step s, the filters of step s + 2 are copied into the stage that step s - 1 used; the corners of step s + 2
  // replace the corners of step s, which step s - 1 used; and the samples of step s + 1 are computed while the samples
  // of step s are multiplied.
  constexpr int multiplications = Tile::step_chunks / 2;
  constexpr int slots = row_passes < multiplications ? row_passes : multiplications;
  constexpr int of_slot = row_passes / slots;
  constexpr int multiplications_of_slot = multiplications / slots;
  for (int step = steps.first; step < steps.end; ++step) {
    wait_for_copies<1>();
    __syncthreads();
    copy_filters(step + 2);
    find_corners(step + 2);
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) {
      gather(step + 1, slot * of_slot, of_slot);
#pragma unroll
      for (int k = 0; k < multiplications_of_slot; ++k) multiply(step, slot * multiplications_of_slot + k);
      blend(step + 1, slot * of_slot, of_slot);
    }
  }
  wait_for_copies<0>();
  __syncthreads();

  // The sums pass through shared memory, where the sums of the parts are added and adjacent elements of y are stored
  // together.
  auto* const tile = reinterpret_cast<float*>(bytes);
#pragma unroll
  for (int j = 0; j < 2 * column_pairs; ++j) {
#pragma unroll
    for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int column = warp_column + j * 8 + lane % 4 * 2 + k % 2;
        tile[column * Tile::pitch + warp_row + i * 16 + k / 2 * 8 + lane / 4] = sums[j / 2][i][j % 2][k];
      }
    }
  }
  synchronize_blocks(task.parts);
  const auto* const bias = static_cast<const T*>(task.bias);
  const std::int64_t first_channel = std::int64_t{block.group} * task.group_outputs + block.first_output;
  auto* const y =
      static_cast<T*>(task.y) + (block.item * task.outputs + first_channel) * task.pixels + block.first_pixel;
  const int columns_here = ::min(Tile::columns, task.group_outputs - block.first_output);
  const int rows_here = ::min(Tile::rows, task.pixels - block.first_pixel);
  constexpr int vectors = Tile::rows / chunk_elements;
  for (int i = part * threads + thread; i < columns_here * vectors; i += task.parts * threads) {
    const int column = i / vectors;
    const int row = i % vectors * chunk_elements;
    if (row >= rows_here) continue;
    const float added = bias == nullptr ? 0.F : static_cast<float>(bias[first_channel + column]);
    float results[chunk_elements];
#pragma unroll
    for (int j = 0; j < chunk_elements; j += 4) {
      // Each load has its own ClusterSums. With one object for all loads, the compiler kept addresses in every part and
      // spilled up to 9 registers more.
      float four[4];
      ClusterSums<float>(tile + column * Tile::pitch + row + j, task.parts).load(0, four);
#pragma unroll
      for (int k = 0; k < 4; ++k) results[j + k] = four[k] + added;
    }
    const auto vector = Vector<T, chunk_elements>::pack(results);
    T* const to = y + std::int64_t{column} * task.pixels + row;
    if (task.has_wide_stores) {
      vector.store(to);
    } else {
      vector.store_between(to, 0, rows_here - row);
    }
  }
  if (task.parts > 1) synchronize_blocks(task.parts);  // No block may exit while other blocks read its sums.
}

template <class T>
Status launch_deformable_tensor_core(DeformableTask& task, std::int64_t items, const DeviceTraits& device,
                                     const CudaContext& context) {
  const auto run = [&]<class Tile>(Tile /*tag*/, int parts) {
    task.parts = parts;
    task.steps_of_part = static_cast<int>(ceil_divide(task.steps, parts));
    const std::int64_t tiles = set_deformable_tiles(task, items, Tile::rows, Tile::columns);
    return launch(
        DeformableConvolution::name, deformable_tensor_core<T, Tile>,
        {.blocks = tiles * parts, .threads = Tile::threads, .cluster = parts, .shared_bytes = Tile::shared_bytes},
        context, task);
  };
  const auto share = [&]<class Tile>(Tile /*tag*/) {
    if (Tile::shared_bytes > device.shared_bytes) return DeformableShare{};
    return share_of_deformable(task, items, Tile::rows, Tile::columns, Tile::blocks, Tile::template microseconds<T>,
                               device);
  };
  constexpr DeformableTile<4, 4, 64, 1, 346, 730> widest_tile;
  constexpr DeformableTile<4, 4, 32, 1, 300, 400> wide;
  constexpr DeformableTile<4, 2, 32, 2, 470, 520> narrow;
  constexpr DeformableTile<2, 2, 32, 3, 350, 430> least;  // This tile fits into the shared memory of every GPU.
  const std::array<DeformableShare, 4> shares{share(widest_tile), share(wide), share(narrow), share(least)};
  const auto fastest = std::ranges::min_element(shares, {}, &DeformableShare::microseconds);
  switch (fastest - shares.begin()) {
    case 0: return run(widest_tile, fastest->parts);
    case 1: return run(wide, fastest->parts);
    case 2: return run(narrow, fastest->parts);
    default: return run(least, fastest->parts);
  }
}

}  // namespace

Status fits_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem) {
  return fits_deformable_tiles(op, problem);
}

Status run_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem, const Buffers& buffers,
                                  const CudaContext& context) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const DType dtype = problem.inputs[DeformableConvolution::x].dtype;
  constexpr int ampere = 8;
  if (dtype != DType::f16 && device.compute_major < ampere) return run_deformable_direct(op, problem, buffers, context);
  DeformableTask task;
  if (Status status = prepare_deformable_task(op, problem, buffers, context, task); !status.ok()) return status;
  const std::int64_t items = problem.inputs[DeformableConvolution::x].extents[0];
  return dispatch_floats(dtype, [&](auto element) {
    return launch_deformable_tensor_core<decltype(element)>(task, items, device, context);
  });
}

}  // namespace graft::ops
