// Shared parts of the kernels that compute 16 x 16 pixels of y at a time. They copy the pixels that the windows of such
// a tile read, called a patch, to shared memory once.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/mma.cuh"
#include "kernels/quantizer.cuh"
#include "kernels/vector.cuh"
#include "ops/convolution/plan.hpp"
#include "ops/convolution/repack.hpp"
#include "ops/convolution/variants.hpp"

namespace graft::ops {

inline constexpr int patch_side = 16;  // the number of pixels along a side of a tile
inline constexpr int patch_threads = 256;
inline constexpr int warp_rows = patch_side / (patch_threads / 32);
inline constexpr int step_bytes = 32;  // the bytes of the terms of a sum that one instruction multiplies

struct PatchTask {
  const char* x;
  const char* weight;
  const float* bias;
  const float* scale;
  void* y;
  ConvolutionEpilogue epilogue;
  Quantizer quantizer;

  int taps;
  int steps;
  int height;
  int width;
  int out_height;
  int out_width;
  int row_stride;
  int column_stride;
  int row_pad;
  int column_pad;
  int row_dilation;
  int column_dilation;
  int kernel_width;
  int patch_width;  ///< The number of columns of x that the windows of a tile read.
  int patch_pixels;
  Divisor by_patch_width;
  int tiles;
  Divisor by_tile_columns;
  Divisor by_tile_rows;
  int tile_columns;
  int tile_rows;

  /// The image and the first pixel of a tile.
  struct Place {
    int image, row, column;
  };
  [[nodiscard]] __device__ Place place_of(int tile) const {
    const int row_of_tiles = by_tile_columns.quotient(tile);
    const int image = by_tile_rows.quotient(row_of_tiles);
    return {image, (row_of_tiles - image * tile_rows) * patch_side, (tile - row_of_tiles * tile_columns) * patch_side};
  }

  /// Returns the number of pixels from the first pixel of a patch to the pixel of tap `tap`.
  [[nodiscard]] __device__ int pixel_of_tap(int tap) const {
    const int r = tap / kernel_width;
    const int s = tap - r * kernel_width;
    return r * row_dilation * patch_width + s * column_dilation;
  }
};

/// Returns the task, without the addresses of its tensors, for a problem that check_patches() accepts. A sum takes
/// `steps` steps of step_bytes.
inline PatchTask make_patches(const Convolution& op, const ConvolutionPlan& plan, const TensorDesc& to,
                              std::int64_t steps) {
  const auto& [depth, height, width] = plan.axis;
  const auto as_int = [](std::int64_t value) { return static_cast<int>(value); };
  const auto reach = [](const ConvolutionAxis& axis) {
    return (patch_side - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  };
  PatchTask task{};
  task.epilogue = ConvolutionEpilogue::of(op, to.dtype);
  task.quantizer = Quantizer(op.y_scale);
  task.taps = as_int(plan.window());
  task.steps = as_int(steps);
  task.height = as_int(height.in);
  task.width = as_int(width.in);
  task.out_height = as_int(height.out);
  task.out_width = as_int(width.out);
  task.row_stride = as_int(height.stride);
  task.column_stride = as_int(width.stride);
  task.row_pad = as_int(height.pad);
  task.column_pad = as_int(width.pad);
  task.row_dilation = as_int(height.dilation);
  task.column_dilation = as_int(width.dilation);
  task.kernel_width = as_int(width.kernel);
  task.patch_width = as_int(reach(width));
  task.patch_pixels = as_int(reach(height) * reach(width));
  task.by_patch_width = Divisor(task.patch_width);
  task.tile_columns = as_int(ceil_divide(width.out, patch_side));
  task.tile_rows = as_int(ceil_divide(height.out, patch_side));
  task.tiles = as_int(plan.batch * task.tile_columns * task.tile_rows);
  task.by_tile_columns = Divisor(std::max(task.tile_columns, 1));
  task.by_tile_rows = Divisor(std::max(task.tile_rows, 1));
  return task;
}

inline constexpr std::int64_t most_patch_pixels = std::numeric_limits<int>::max() / 4;

/// Returns unsupported if the window has more than `most_window` elements, or if a size of a PatchTask does not fit
/// into an int. Strides and dilations may be up to 2^step_bits.
inline Status check_patches(const ConvolutionPlan& plan, std::int64_t most_window, int step_bits) {
  const auto& [depth, height, width] = plan.axis;
  const std::int64_t most_step = std::int64_t{1} << step_bits;
  for (const ConvolutionAxis& axis : {height, width}) {
    if (axis.kernel > most_window || axis.stride > most_step || axis.dilation > most_step ||
        axis.in + axis.pad > most_patch_pixels / most_step || axis.out > most_patch_pixels / most_step) {
      return unsupported("supports images of up to 2^" + std::to_string(29 - step_bits) + " rows and columns");
    }
  }
  if (plan.window() > most_window || plan.in_pixels() > most_patch_pixels || plan.out_pixels() > most_patch_pixels ||
      plan.batch * (plan.out_pixels() + patch_side * (height.out + width.out + patch_side)) > most_patch_pixels) {
    return unsupported("supports up to 2^29 pixels");
  }
  return {};
}

/// Returns unsupported if `bytes` bytes of shared memory, for filters and two patches, are more than a block may use.
inline Status check_patch_memory(int bytes) {
  constexpr int most = 99 * 1024;  // per block, on every GPU from compute capability 8.0 on
  if (bytes <= most) return {};
  return unsupported("supports windows and strides that need at most " + std::to_string(most) +
                     " bytes of shared memory, found " + std::to_string(bytes));
}

inline Status set_tensors(PatchTask& task, const Buffers& buffers) {
  task.x = static_cast<const char*>(buffers.inputs[Convolution::x]);
  task.weight = static_cast<const char*>(buffers.inputs[Convolution::weight]);
  task.bias = static_cast<const float*>(buffers.inputs[Convolution::bias]);
  task.scale = static_cast<const float*>(buffers.inputs[Convolution::scale]);
  task.y = buffers.outputs[0];
  if (is_aligned(task.x, 16) && is_aligned(task.weight, 16) && is_aligned(task.y, 16)) return {};
  return invalid_argument("Convolution: the addresses of hwc8 and chw32 tensors must be multiples of 16");
}

/// Sets the addresses of the task's tensors for linear x, weight and y. The kernel reads the copies of x and weight in
/// the workspace, which `repacked` describes.
inline void set_tensors(PatchTask& task, const Buffers& buffers, const Repacked& repacked) {
  task.x = static_cast<const char*>(repacked.x.to);
  task.weight = static_cast<const char*>(repacked.weight.to);
  task.bias = static_cast<const float*>(buffers.inputs[Convolution::bias]);
  task.scale = static_cast<const float*>(buffers.inputs[Convolution::scale]);
  task.y = buffers.outputs[0];
}

/// Computes sum += a * b for each row of a and column of b, over step_bytes bytes. f32 is multiplied in TF32.
template <class T>
__device__ void multiply_step(SumOf<T> (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (std::is_same_v<T, float>) {
    const unsigned b[2] = {b0, b1};
    multiply_add_tf32(sum, a, b);
  } else {
    multiply_add<T>(sum, a, b0, b1);
  }
}

// The first compute capability with asynchronous copies, and with TF32 and bf16 on tensor cores.
inline constexpr int ampere = 8;

/// Runs the first of the variants tensor_core, f32 and direct that supports the problem. Used on GPUs before Ampere.
[[nodiscard]] inline Status run_before_ampere(const Convolution& op, const Problem& problem, const Buffers& buffers,
                                              const CudaContext& context) {
  if (tensor_core_fits(op, problem).ok()) return tensor_core_run(op, problem, buffers, context);
  if (f32_fits(op, problem).ok()) return f32_run(op, problem, buffers, context);
  return direct_run(op, problem, buffers, context);
}

/// Returns a grid whose blocks loop over the tiles. `columns` blocks process each tile, each for its own channels of y.
inline Grid patch_grid(const PatchTask& task, const DeviceTraits& device, int shared_bytes, int columns) {
  constexpr std::int64_t most_blocks = 2;  // the maximum number of blocks per multiprocessor
  const std::int64_t together = std::clamp<std::int64_t>(device.shared_bytes / shared_bytes, 1, most_blocks);
  const std::int64_t walkers =
      std::min<std::int64_t>(task.tiles, ceil_divide(device.multiprocessors * together, columns));
  return {.blocks = walkers * columns, .threads = patch_threads, .cluster = 1, .shared_bytes = shared_bytes};
}

}  // namespace graft::ops
