// Convolution of linear f32 as a matrix product: rows are channels of y, columns are its pixels. It is computed in f32,
// or on tensor cores if TF32 is allowed.
#include <limits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/mma.cuh"
#include "ops/convolution/plan.hpp"
#include "ops/convolution/variants.hpp"

namespace graft::ops {
namespace {

constexpr int f32_threads = 256;
constexpr int f32_depth = 16;  // the number of terms of a step
constexpr int f32_stages = 3;
constexpr int f32_most_window = 16;

/// A convolution over images. A sum is computed over the channels, then the rows and the columns of the window, in the
/// order in which a filter is stored.
struct F32Task {
  const float* x;
  const float* weight;
  const float* bias;
  float* y;
  ConvolutionEpilogue epilogue;

  std::int64_t image;  ///< The number of elements in an image of x.
  /// The number of elements from the first channel of a group of x to the first channel of the next group.
  std::int64_t group;
  int plane;
  int terms;
  Divisor by_window;
  Divisor by_window_row;
  int window;
  int window_row;
  int height;
  int width;
  int row_stride;
  int column_stride;
  int row_pad;
  int column_pad;
  int row_dilation;
  int column_dilation;

  int pixels;  ///< The number of pixels of y in all images.
  int image_pixels;
  Divisor by_image;
  Divisor by_row;
  int group_outputs;
  int outputs;
  bool wide_stores;  ///< Whether four pixels are stored with one access.
  int row_tiles;
  Divisor by_row_tiles;
  Divisor by_column_tiles;
};

template <int Rows, int Columns>
struct F32Tile {
  static constexpr int rows = Rows;
  static constexpr int columns = Columns;
  // The pitches are 8 more than a multiple of 32, so that loading a fragment of TF32 touches every bank once.
  static constexpr int row_pitch = Rows + 8;
  static constexpr int column_pitch = Columns + 8;
  static constexpr int stage = f32_depth * (row_pitch + column_pitch);
  static constexpr int shared_bytes = f32_stages * stage * 4;
};

/// Converts the sums of Count adjacent pixels of `channel`, which has index k in its group, to elements of y and stores
/// them.
template <int Count>
__device__ void store_pixels(const F32Task& task, int k, int channel, int pixel, const float (&sums)[Count]) {
  if (k >= task.group_outputs || pixel >= task.pixels) return;
  const float bias = task.bias[channel];
  const int image = task.by_image.quotient(pixel);
  int in_image = pixel - image * task.image_pixels;
  float* to = task.y + (static_cast<std::int64_t>(image) * task.outputs + channel) * task.image_pixels;
  float results[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) results[i] = task.epilogue.apply(sums[i], 1.F, bias);
  if constexpr (Count == 4) {
    if (task.wide_stores) {
      *reinterpret_cast<float4*>(to + in_image) = make_float4(results[0], results[1], results[2], results[3]);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    if (pixel + i >= task.pixels) break;
    to[in_image] = results[i];
    if (++in_image == task.image_pixels) {
      in_image = 0;
      to += static_cast<std::int64_t>(task.outputs) * task.image_pixels;
    }
  }
}

template <class Tile, bool Tf32>
__global__ void __launch_bounds__(f32_threads, 2) f32_product(const F32Task task) {
  extern __shared__ float stages[];
  const int thread = static_cast<int>(threadIdx.x);
  const int tile = static_cast<int>(blockIdx.x);
  const int rest = task.by_row_tiles.quotient(tile);
  const int first_k = task.by_row_tiles.remainder(tile) * Tile::rows;
  const int group = task.by_column_tiles.quotient(rest);
  const int first_pixel = task.by_column_tiles.remainder(rest) * Tile::columns;
  const int first_channel = group * task.group_outputs + first_k;

  // From x, this thread copies every depth_step-th term of each step, for one pixel of y.
  constexpr int depth_step = f32_threads / Tile::columns;
  const int own_column = thread % Tile::columns;
  const int own_depth = thread / Tile::columns;
  const int pixel = first_pixel + own_column;
  const int image = task.by_image.quotient(pixel);
  const int in_image = pixel - image * task.image_pixels;
  const int y_row = task.by_row.quotient(in_image);
  const int x_row = y_row * task.row_stride - task.row_pad;
  const int x_column = task.by_row.remainder(in_image) * task.column_stride - task.column_pad;
  const float* const origin =
      task.x + image * task.image + group * task.group + static_cast<std::int64_t>(x_row) * task.width + x_column;
  unsigned inside = 0;
  if (pixel < task.pixels) {
    for (int r = 0; r * task.window_row < task.window; ++r) {
      const int at = x_row + r * task.row_dilation;
      if (at >= 0 && at < task.height) inside |= 1U << static_cast<unsigned>(r);
    }
    for (int s = 0; s < task.window_row; ++s) {
      const int at = x_column + s * task.column_dilation;
      if (at >= 0 && at < task.width) inside |= 0x10000U << static_cast<unsigned>(s);
    }
  }
  // From weight, it copies one term of several filters in each step.
  constexpr int filter_step = f32_threads / f32_depth;
  const int filter_depth = thread % f32_depth;
  const int filter_row = thread / f32_depth;
  const float* const filters = task.weight + static_cast<std::int64_t>(first_channel + filter_row) * task.terms;

  const int steps = (task.terms + f32_depth - 1) / f32_depth;
  const auto copy_step = [&](int step) {
    if (step < steps) {
      float* const left = stages + step % f32_stages * Tile::stage;
      float* const right = left + f32_depth * Tile::row_pitch;
#pragma unroll
      for (int i = 0; i < Tile::rows / filter_step; ++i) {
        const int row = filter_row + i * filter_step;
        const int term = step * f32_depth + filter_depth;
        copy_word_async(shared_address(left + filter_depth * Tile::row_pitch + row),
                        filters + static_cast<std::int64_t>(i) * filter_step * task.terms + term,
                        term < task.terms && first_k + row < task.group_outputs);
      }
#pragma unroll
      for (int i = 0; i < f32_depth / depth_step; ++i) {
        const int depth = own_depth + i * depth_step;
        const int term = step * f32_depth + depth;
        const int channel = task.by_window.quotient(term);
        const int tap = term - channel * task.window;
        const int r = task.by_window_row.quotient(tap);
        const int s = tap - r * task.window_row;
        const bool exists = term < task.terms && ((inside >> r) & (inside >> (16 + s)) & 1U) != 0;
        copy_word_async(shared_address(right + depth * Tile::column_pitch + own_column),
                        origin + channel * task.plane + r * task.row_dilation * task.width + s * task.column_dilation,
                        exists);
      }
    }
    commit_copies();
  };
#pragma unroll
  for (int step = 0; step < f32_stages - 1; ++step) copy_step(step);

  if constexpr (Tf32) {
    constexpr int warp_rows = 2;
    constexpr int warp_columns = 4;
    constexpr int row_blocks = Tile::rows / warp_rows / 16;
    constexpr int column_blocks = Tile::columns / warp_columns / 8;
    const int lane = thread % 32;
    const int warp = thread / 32;
    const int warp_row = warp / warp_columns * (Tile::rows / warp_rows);
    const int warp_column = warp % warp_columns * (Tile::columns / warp_columns);
    float sums[row_blocks][column_blocks][4] = {};
    for (int step = 0; step < steps; ++step) {
      wait_for_copies<f32_stages - 2>();
      __syncthreads();
      copy_step(step + f32_stages - 1);
      const float* const left = stages + step % f32_stages * Tile::stage + warp_row + lane / 4;
      const float* const right =
          stages + step % f32_stages * Tile::stage + f32_depth * Tile::row_pitch + warp_column + lane / 4;
#pragma unroll
      for (int k = 0; k < f32_depth; k += 8) {
        unsigned a[row_blocks][4];
        unsigned b[column_blocks][2];
#pragma unroll
        for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
          for (int part = 0; part < 4; ++part) {
            a[i][part] = to_tf32(left[(k + lane % 4 + part / 2 * 4) * Tile::row_pitch + i * 16 + part % 2 * 8]);
          }
        }
#pragma unroll
        for (int j = 0; j < column_blocks; ++j) {
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            b[j][part] = to_tf32(right[(k + lane % 4 + part * 4) * Tile::column_pitch + j * 8]);
          }
        }
#pragma unroll
        for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
          for (int j = 0; j < column_blocks; ++j) multiply_add_tf32(sums[i][j], a[i], b[j]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
      for (int j = 0; j < column_blocks; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int row = warp_row + i * 16 + half * 8 + lane / 4;
          const float pair[2] = {sums[i][j][2 * half], sums[i][j][2 * half + 1]};
          store_pixels(task, first_k + row, first_channel + row, first_pixel + warp_column + j * 8 + lane % 4 * 2,
                       pair);
        }
      }
    }
  } else {
    // The threads form a grid of 16 x 16. Each thread computes groups of four rows and of four columns.
    constexpr int row_groups = Tile::rows / 64;
    constexpr int column_groups = Tile::columns / 64;
    const int own_rows = thread / 16 * 4;
    const int own_columns = thread % 16 * 4;
    float sums[row_groups * 4][column_groups * 4] = {};
    for (int step = 0; step < steps; ++step) {
      wait_for_copies<f32_stages - 2>();
      __syncthreads();
      copy_step(step + f32_stages - 1);
      const float* const left = stages + step % f32_stages * Tile::stage + own_rows;
      const float* const right = stages + step % f32_stages * Tile::stage + f32_depth * Tile::row_pitch + own_columns;
#pragma unroll
      for (int depth = 0; depth < f32_depth; ++depth) {
        float4 a[row_groups];
        float4 b[column_groups];
#pragma unroll
        for (int i = 0; i < row_groups; ++i) {
          a[i] = *reinterpret_cast<const float4*>(left + depth * Tile::row_pitch + i * 64);
        }
#pragma unroll
        for (int j = 0; j < column_groups; ++j) {
          b[j] = *reinterpret_cast<const float4*>(right + depth * Tile::column_pitch + j * 64);
        }
#pragma unroll
        for (int i = 0; i < row_groups * 4; ++i) {
#pragma unroll
          for (int j = 0; j < column_groups * 4; ++j) {
            sums[i][j] = fmaf((&a[i / 4].x)[i % 4], (&b[j / 4].x)[j % 4], sums[i][j]);
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < row_groups * 4; ++i) {
      const int row = i / 4 * 64 + own_rows + i % 4;
#pragma unroll
      for (int j = 0; j < column_groups; ++j) {
        const float four[4] = {sums[i][4 * j], sums[i][4 * j + 1], sums[i][4 * j + 2], sums[i][4 * j + 3]};
        store_pixels(task, first_k + row, first_channel + row, first_pixel + j * 64 + own_columns, four);
      }
    }
  }
}

template <class Tile, bool Tf32>
Status launch_f32(F32Task task, const ConvolutionPlan& plan, const CudaContext& context) {
  const std::int64_t column_tiles = ceil_divide(task.pixels, Tile::columns);
  task.row_tiles = static_cast<int>(ceil_divide(task.group_outputs, Tile::rows));
  task.by_row_tiles = Divisor(task.row_tiles);
  task.by_column_tiles = Divisor(static_cast<int>(column_tiles));
  const Grid grid{.blocks = task.row_tiles * column_tiles * plan.group,
                  .threads = f32_threads,
                  .cluster = 1,
                  .shared_bytes = Tile::shared_bytes};
  return launch("Convolution f32", f32_product<Tile, Tf32>, grid, context, task);
}

Status run_f32(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context,
               bool tf32) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  auto* y = static_cast<float*>(buffers.outputs[0]);
  const F32Task task{.x = static_cast<const float*>(buffers.inputs[Convolution::x]),
                     .weight = static_cast<const float*>(buffers.inputs[Convolution::weight]),
                     .bias = static_cast<const float*>(buffers.inputs[Convolution::bias]),
                     .y = y,
                     .epilogue = ConvolutionEpilogue::of(op, DType::f32),
                     .image = plan.channels * plan.in_pixels(),
                     .group = plan.group_channels() * plan.in_pixels(),
                     .plane = as_int(plan.in_pixels()),
                     .terms = as_int(plan.group_channels() * plan.window()),
                     .by_window = Divisor(as_int(plan.window())),
                     .by_window_row = Divisor(as_int(width.kernel)),
                     .window = as_int(plan.window()),
                     .window_row = as_int(width.kernel),
                     .height = as_int(height.in),
                     .width = as_int(width.in),
                     .row_stride = as_int(height.stride),
                     .column_stride = as_int(width.stride),
                     .row_pad = as_int(height.pad),
                     .column_pad = as_int(width.pad),
                     .row_dilation = as_int(height.dilation),
                     .column_dilation = as_int(width.dilation),
                     .pixels = as_int(plan.batch * plan.out_pixels()),
                     .image_pixels = as_int(plan.out_pixels()),
                     .by_image = Divisor(as_int(plan.out_pixels())),
                     .by_row = Divisor(as_int(width.out)),
                     .group_outputs = as_int(plan.group_outputs()),
                     .outputs = as_int(plan.outputs),
                     .wide_stores = plan.out_pixels() % 4 == 0 && is_aligned(y, 16),
                     .row_tiles = 1,
                     .by_row_tiles = {},
                     .by_column_tiles = {}};
  using Large = F32Tile<128, 128>;
  using Small = F32Tile<64, 64>;
  const std::int64_t tiles =
      ceil_divide(task.pixels, Large::columns) * ceil_divide(task.group_outputs, Large::rows) * plan.group;
  const bool large = tiles >= device.multiprocessors && task.group_outputs > Small::rows;
  constexpr int ampere = 8;
  if (tf32 && device.compute_major >= ampere) {
    return large ? launch_f32<Large, true>(task, plan, context) : launch_f32<Small, true>(task, plan, context);
  }
  return large ? launch_f32<Large, false>(task, plan, context) : launch_f32<Small, false>(task, plan, context);
}

}  // namespace

Status f32_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  if (x.dtype != DType::f32 || x.layout != Layout::linear) return unsupported("supports only f32 in the linear layout");
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto& [depth, height, width] = plan.axis;
  if (depth.in != 1 || depth.kernel != 1 || depth.out != 1) return unsupported("supports 1 or 2 spatial axes");
  if (height.kernel > f32_most_window || width.kernel > f32_most_window) {
    return unsupported("supports windows of up to 16 x 16");
  }
  constexpr std::int64_t fewest_terms = 8;
  if (plan.group_channels() * plan.window() < fewest_terms || (plan.group > 1 && plan.group_outputs() < 8)) {
    return unsupported("supports sums of at least 8 products and groups of at least 8 channels of y");
  }
  constexpr std::int64_t most = std::numeric_limits<int>::max() - 1024;
  const std::int64_t reach = (height.kernel - 1) * height.dilation * width.in + (width.kernel - 1) * width.dilation;
  if (plan.channels * plan.in_pixels() + reach > most || plan.batch * plan.out_pixels() > most ||
      plan.group_channels() * plan.window() > most || plan.outputs > most / 2) {
    return unsupported("supports images of up to 2^31 elements");
  }
  return {};
}

Status f32_run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return run_f32(op, problem, buffers, context, false);
}

Status tf32_fits(const Convolution& op, const Problem& problem) {
  if (!op.allow_tf32) return unsupported("supports allow_tf32 = 1");
  return f32_fits(op, problem);
}

Status tf32_run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  return run_f32(op, problem, buffers, context, true);
}

}  // namespace graft::ops
