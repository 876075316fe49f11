// DeformableConvolution in f32 as a matrix product: rows are pixels of y, columns its channels, 8 x 8 of them a
// thread's. The left operand is sampled into shared memory while the step before it is multiplied.
#include "kernels/mma.cuh"
#include "ops/deformable_convolution/kernels.hpp"
#include "ops/deformable_convolution/tiles.cuh"

namespace graft::ops {
namespace {

template <int Rows, int Columns>
struct DeformableF32Tile {
  static constexpr int rows = Rows;
  static constexpr int columns = Columns;
  static constexpr int threads = rows * columns / 64;
  static constexpr int stages = 3;
  static constexpr int step_channels = 16;
  static constexpr int pitch = rows + 4;  ///< Of the left operand, so that rows of it begin in other banks.
  static constexpr int right_at = step_channels * pitch * 4;
  static constexpr int stage_bytes = right_at + step_channels * columns * 4;
  static constexpr int tile_bytes = stages * stage_bytes;
  static constexpr int shared_bytes = tile_bytes + static_cast<int>(sizeof(DeformableCorners<rows>));
  static_assert(rows <= threads && right_at % 16 == 0 && stage_bytes % 16 == 0);
};

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 512 / Tile::threads) deformable_f32(const DeformableTask task) {
  constexpr int threads = Tile::threads;
  constexpr int vector = 4;
  constexpr int step_vectors = Tile::step_channels / vector;
  constexpr int rows_per_pass = threads / step_vectors;
  constexpr int row_passes = Tile::rows / rows_per_pass;
  constexpr int copies = step_vectors * Tile::columns / threads;
  static_assert(Tile::rows % rows_per_pass == 0 && step_vectors * Tile::columns % threads == 0);
  static_assert(row_passes <= step_vectors && step_vectors % row_passes == 0);

  extern __shared__ uint4 shared[];
  auto* const bytes = reinterpret_cast<char*>(shared);
  auto& corners = *reinterpret_cast<DeformableCorners<Tile::rows>*>(bytes + Tile::tile_bytes);

  const int thread = static_cast<int>(threadIdx.x);
  const DeformableBlock block = deformable_block<Tile::rows, Tile::columns>(task);
  const int own_vector = thread % step_vectors;
  const int own_row = thread / step_vectors;
  const char* const item =
      task.x + block.item * task.item_bytes + std::int64_t{block.group} * task.sections_of_group * task.section_bytes;
  const auto left_of = [&](int step) {
    return reinterpret_cast<float*>(bytes + step % Tile::stages * Tile::stage_bytes);
  };
  const auto right_of = [&](int step) {
    return reinterpret_cast<float*>(bytes + step % Tile::stages * Tile::stage_bytes + Tile::right_at);
  };

  const auto copy_filters = [&](int step) {
    if (step < task.steps) {
      const float* const from =
          reinterpret_cast<const float*>(task.weight) +
          (std::int64_t{block.group} * task.steps + step) * Tile::step_channels * task.stored_outputs +
          block.first_output;
#pragma unroll
      for (int i = 0; i < copies; ++i) {
        const int channel = (thread + i * threads) / (Tile::columns / vector);
        const int column = (thread + i * threads) % (Tile::columns / vector) * vector;
        copy_async(shared_address(right_of(step) + channel * Tile::columns + column),
                   from + std::int64_t{channel} * task.stored_outputs + column,
                   block.first_output + column < task.stored_outputs ? 16 : 0);
      }
    }
    commit_copies();
  };

  DeformableVectors gathered;
  const auto gather = [&](int step, int pass) {
    if (step >= task.steps) return;
    const DeformableStep at = deformable_step(task, step);
    const int offset = (at.chunk * step_vectors + own_vector) * 16;
    gathered.load(item + std::int64_t{at.section} * task.section_bytes + offset,
                  corners.places[step % 2][own_row + pass * rows_per_pass], offset < task.section_bytes);
  };
  const auto blend = [&](int step, int pass) {
    if (step >= task.steps) return;
    const int row = own_row + pass * rows_per_pass;
    float samples[vector];
    gathered.template blend<float>(corners.weights[step % 2][row], corners.factors[step % 2][row], samples);
    float* const to = left_of(step) + own_vector * vector * Tile::pitch + row;
#pragma unroll
    for (int i = 0; i < vector; ++i) to[i * Tile::pitch] = samples[i];
  };

  // Rows 4 a to 4 a + 3 of each half of the tile, and so of columns.
  constexpr int halves = 2;
  const int first_row = thread % (Tile::rows / 8) * vector;
  const int first_column = thread / (Tile::rows / 8) * vector;
  float sums[halves * vector][halves * vector] = {};
  const auto multiply = [&](int step, int channel) {
    const float* const left = left_of(step) + channel * Tile::pitch + first_row;
    const float* const right = right_of(step) + channel * Tile::columns + first_column;
    float a[halves * vector];
    float b[halves * vector];
#pragma unroll
    for (int half = 0; half < halves; ++half) {
      *reinterpret_cast<float4*>(a + half * vector) =
          *reinterpret_cast<const float4*>(left + half * (Tile::rows / halves));
      *reinterpret_cast<float4*>(b + half * vector) =
          *reinterpret_cast<const float4*>(right + half * (Tile::columns / halves));
    }
#pragma unroll
    for (int i = 0; i < halves * vector; ++i) {
#pragma unroll
      for (int j = 0; j < halves * vector; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
  };

  const bool is_scout = thread < Tile::rows;
  DeformableScout<float> scout(task, block, block.first_pixel + thread);
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
#pragma unroll
  for (int pass = 0; pass < row_passes; ++pass) {
    gather(0, pass);
    blend(0, pass);
  }
  // As in tensor_core.cu.
  constexpr int channels_of_pass = Tile::step_channels / row_passes;
  for (int step = 0; step < task.steps; ++step) {
    wait_for_copies<1>();
    __syncthreads();
    copy_filters(step + 2);
    find_corners(step + 2);
#pragma unroll
    for (int pass = 0; pass < row_passes; ++pass) {
      gather(step + 1, pass);
#pragma unroll
      for (int i = 0; i < channels_of_pass; ++i) multiply(step, pass * channels_of_pass + i);
      blend(step + 1, pass);
    }
  }
  wait_for_copies<0>();

  const auto* const bias = static_cast<const float*>(task.bias);
#pragma unroll
  for (int j = 0; j < halves * vector; ++j) {
    const int output = block.first_output + j / vector * (Tile::columns / halves) + first_column + j % vector;
    if (output >= task.group_outputs) continue;
    const int channel = block.group * task.group_outputs + output;
    const float added = bias == nullptr ? 0.F : bias[channel];
    float* const y = static_cast<float*>(task.y) + (block.item * task.outputs + channel) * task.pixels;
#pragma unroll
    for (int half = 0; half < halves; ++half) {
      const int pixel = block.first_pixel + half * (Tile::rows / halves) + first_row;
      float results[vector];
#pragma unroll
      for (int i = 0; i < vector; ++i) results[i] = sums[half * vector + i][j] + added;
      if (task.has_wide_stores && pixel < task.pixels) {
        *reinterpret_cast<float4*>(y + pixel) = {results[0], results[1], results[2], results[3]};
      } else {
#pragma unroll
        for (int i = 0; i < vector; ++i) {
          if (pixel + i < task.pixels) y[pixel + i] = results[i];
        }
      }
    }
  }
}

}  // namespace

Status fits_deformable_f32(const DeformableConvolution& op, const Problem& problem) {
  if (problem.inputs[DeformableConvolution::x].dtype != DType::f32) return unsupported("takes f32");
  return fits_deformable_tiles(op, problem);
}

Status run_deformable_f32(const DeformableConvolution& op, const Problem& problem, const Buffers& buffers,
                          const CudaContext& context) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  DeformableTask task;
  if (Status status = prepare_deformable_task(op, problem, buffers, context, task); !status.ok()) return status;
  const std::int64_t items = problem.inputs[DeformableConvolution::x].extents[0];
  const auto run = [&]<class Tile>(Tile /*tag*/) {
    const std::int64_t blocks = set_deformable_tiles(task, items, Tile::rows, Tile::columns);
    return launch(DeformableConvolution::name, deformable_f32<Tile>,
                  {.blocks = blocks, .threads = Tile::threads, .shared_bytes = Tile::shared_bytes}, context, task);
  };
  constexpr DeformableF32Tile<128, 128> wide;
  constexpr DeformableF32Tile<128, 64> narrow;
  constexpr DeformableF32Tile<64, 64> least;
  if (suits_deformable(task, items, wide.rows, wide.columns, device)) return run(wide);
  if (suits_deformable(task, items, narrow.rows, narrow.columns, device)) return run(narrow);
  return run(least);
}

}  // namespace graft::ops
