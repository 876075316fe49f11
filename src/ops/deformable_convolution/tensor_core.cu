// DeformableConvolution in f16 and bf16 as a matrix product on tensor cores (mma.sync): rows are pixels of y, columns
// its channels. The left operand is sampled into shared memory while the step before it is multiplied, so no columns
// are stored, and a tile as wide as the filters are many samples each element once.
#include "kernels/mma.cuh"
#include "ops/deformable_convolution/kernels.hpp"
#include "ops/deformable_convolution/tiles.cuh"

namespace graft::ops {
namespace {

/// Of warps with 32 rows each.
template <int WarpRows, int WarpColumns, int WarpWidth, int Blocks>
struct DeformableTile {
  static constexpr int rows = WarpRows * 32;
  static constexpr int columns = WarpColumns * WarpWidth;
  static constexpr int warp_columns = WarpColumns;
  static constexpr int warp_width = WarpWidth;
  static constexpr int blocks = Blocks;  ///< Of a multiprocessor.
  static constexpr int threads = WarpRows * WarpColumns * 32;
  static constexpr int stages = 3;
  static constexpr int step_chunks = 8;
  static constexpr int step_bytes = step_chunks * 16;
  static constexpr int stage_bytes = (rows + columns) * step_bytes;
  static constexpr int pitch = rows + 8;  ///< Of y's tile, in elements of 2 bytes: chunks stay whole.
  static constexpr int tile_bytes = stages * stage_bytes;
  static constexpr int shared_bytes = tile_bytes + static_cast<int>(sizeof(DeformableCorners<rows>));
  static_assert(columns * pitch * 2 <= tile_bytes && rows <= threads && tile_bytes % 16 == 0);
};

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks) deformable_tensor_core(const DeformableTask task) {
  constexpr int threads = Tile::threads;
  constexpr int step_bytes = Tile::step_bytes;
  constexpr int chunk_elements = 8;
  constexpr int rows_per_pass = threads / Tile::step_chunks;
  constexpr int row_passes = Tile::rows / rows_per_pass;
  constexpr int column_passes = Tile::columns / rows_per_pass;
  static_assert(rows_per_pass % 8 == 0 && Tile::rows % rows_per_pass == 0 && Tile::columns % rows_per_pass == 0);

  extern __shared__ uint4 shared[];
  auto* const bytes = reinterpret_cast<char*>(shared);
  auto& corners = *reinterpret_cast<DeformableCorners<Tile::rows>*>(bytes + Tile::tile_bytes);
  const unsigned stages = shared_address(bytes);

  const int thread = static_cast<int>(threadIdx.x);
  const DeformableBlock block = deformable_block<Tile::rows, Tile::columns>(task);
  // This thread samples, and copies of the filters, one chunk of each step for several rows. Chunks of a row trade
  // places by a pattern over 8 rows, so that reading a column of chunks meets every bank once.
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
    if (step < task.steps) {
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

  DeformableVectors gathered[row_passes];  // the compiler keeps those alive that are on their way
  const auto gather = [&](int step, int first, int count) {
    if (step >= task.steps) return;
    const DeformableStep at = deformable_step(task, step);
    const int offset = at.chunk * step_bytes + own_chunk * 16;
    const char* const from = item + std::int64_t{at.section} * task.section_bytes + offset;
#pragma unroll
    for (int i = first; i < first + count; ++i) {
      gathered[i].load(from, corners.places[step % 2][own_row + i * rows_per_pass], offset < task.section_bytes);
    }
  };
  const auto blend = [&](int step, int first, int count) {
    if (step >= task.steps) return;
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
  constexpr int column_blocks = Tile::warp_width / 8;
  float sums[row_blocks][column_blocks][4] = {};
  // Of a 16 x 32-byte block of the left operand a lane addresses row lane % 16, first or second chunk; of the right
  // one, two blocks of 8 columns, each with two chunks.
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
    for (int j = 0; j < column_blocks / 2; ++j) {
      unsigned right[4];
      const int chunk = (2 * k + right_chunk) ^ (right_row & 7);
      load_matrices(right, stage + static_cast<unsigned>((Tile::rows + right_row + j * 16) * step_bytes + chunk * 16));
#pragma unroll
      for (int i = 0; i < row_blocks; ++i) {
        multiply_add<T>(sums[i][2 * j], left[i], right[0], right[1]);
        multiply_add<T>(sums[i][2 * j + 1], left[i], right[2], right[3]);
      }
    }
  };

  const bool is_scout = thread < Tile::rows;
  DeformableScout<T> scout(task, block, block.first_pixel + thread);
  const auto find_corners = [&](int step) {
    if (!is_scout) return;
    scout.write(corners, step, thread);
    scout.load(step + 1);
  };

  copy_filters(0);
  copy_filters(1);
  if (is_scout) scout.load(0);
  find_corners(0);
  find_corners(1);
  __syncthreads();
  gather(0, 0, row_passes);
  blend(0, 0, row_passes);
  // In step s: filters of s + 2 are copied into the stage that s - 1 used, corners of s + 2 replace those of s, which
  // s - 1 used, and the samples of s + 1 are made while those of s are multiplied.
  constexpr int multiplications = Tile::step_chunks / 2;
  constexpr int slots = row_passes < multiplications ? row_passes : multiplications;
  constexpr int of_slot = row_passes / slots;
  constexpr int multiplications_of_slot = multiplications / slots;
  for (int step = 0; step < task.steps; ++step) {
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

  // The tile goes through shared memory, so that neighbors in y are stored together.
  auto* const tile = reinterpret_cast<T*>(bytes);
  const auto* const bias = static_cast<const T*>(task.bias);
#pragma unroll
  for (int j = 0; j < column_blocks; ++j) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const int column = warp_column + j * 8 + lane % 4 * 2 + pair;
      const int output = block.first_output + column;
      if (output >= task.group_outputs) continue;
      const int channel = block.group * task.group_outputs + output;
      const float added = bias == nullptr ? 0.F : static_cast<float>(bias[channel]);
#pragma unroll
      for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          tile[column * Tile::pitch + warp_row + i * 16 + half * 8 + lane / 4] =
              static_cast<T>(sums[i][j][2 * half + pair] + added);
        }
      }
    }
  }
  __syncthreads();
  auto* const y =
      static_cast<T*>(task.y) +
      (block.item * task.outputs + std::int64_t{block.group} * task.group_outputs + block.first_output) * task.pixels +
      block.first_pixel;
  const int columns_here = ::min(Tile::columns, task.group_outputs - block.first_output);
  const int rows_here = ::min(Tile::rows, task.pixels - block.first_pixel);
  if (task.has_wide_stores) {
    for (int i = thread; i < columns_here * (Tile::rows / chunk_elements); i += threads) {
      const int column = i / (Tile::rows / chunk_elements);
      const int row = i % (Tile::rows / chunk_elements) * chunk_elements;
      if (row >= rows_here) continue;
      *reinterpret_cast<uint4*>(y + std::int64_t{column} * task.pixels + row) =
          *reinterpret_cast<const uint4*>(tile + column * Tile::pitch + row);
    }
  } else {
    for (int i = thread; i < columns_here * Tile::rows; i += threads) {
      const int column = i / Tile::rows;
      const int row = i % Tile::rows;
      if (row < rows_here) y[std::int64_t{column} * task.pixels + row] = tile[column * Tile::pitch + row];
    }
  }
}

template <class T>
Status launch_deformable_tensor_core(DeformableTask& task, std::int64_t items, const DeviceTraits& device,
                                     const CudaContext& context) {
  const auto run = [&]<class Tile>(Tile /*tag*/) {
    const std::int64_t blocks = set_deformable_tiles(task, items, Tile::rows, Tile::columns);
    return launch(DeformableConvolution::name, deformable_tensor_core<T, Tile>,
                  {.blocks = blocks, .threads = Tile::threads, .shared_bytes = Tile::shared_bytes}, context, task);
  };
  const auto suits = [&]<class Tile>(Tile /*tag*/) {
    return Tile::shared_bytes <= device.shared_bytes &&
           suits_deformable(task, items, Tile::rows, Tile::columns, device);
  };
  constexpr DeformableTile<4, 4, 64, 1> widest;
  constexpr DeformableTile<4, 4, 32, 1> wide;
  constexpr DeformableTile<4, 2, 32, 2> narrow;
  constexpr DeformableTile<2, 2, 32, 3> least;  // fits into the shared memory of every GPU
  if (suits(widest)) return run(widest);
  if (suits(wide)) return run(wide);
  if (suits(narrow)) return run(narrow);
  return run(least);
}

}  // namespace

Status fits_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem) {
  if (problem.inputs[DeformableConvolution::x].dtype == DType::f32) return unsupported("takes f16 and bf16");
  return fits_deformable_tiles(op, problem);
}

Status run_deformable_tensor_core(const DeformableConvolution& op, const Problem& problem, const Buffers& buffers,
                                  const CudaContext& context) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const bool is_bf16 = problem.inputs[DeformableConvolution::x].dtype == DType::bf16;
  constexpr int ampere = 8;
  if (is_bf16 && device.compute_major < ampere) return run_deformable_direct(op, problem, buffers, context);
  DeformableTask task;
  if (Status status = prepare_deformable_task(op, problem, buffers, context, task); !status.ok()) return status;
  const std::int64_t items = problem.inputs[DeformableConvolution::x].extents[0];
  if (is_bf16) return launch_deformable_tensor_core<__nv_bfloat16>(task, items, device, context);
  return launch_deformable_tensor_core<__half>(task, items, device, context);
}

}  // namespace graft::ops
