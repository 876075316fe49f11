// Shared parts of the kernels of DeformableConvolution that compute tiles of y: the task, the order of the sums, and
// the pixels that a step samples.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "ops/deformable_convolution/plan.hpp"
#include "ops/deformable_convolution/sampling.hpp"

namespace graft::ops {

/// A problem whose x and weight are laid out as in DeformableSections. A block computes the sums of pixels of one item
/// for filters of one group, in steps of `step_channels` channels of one section at one element of the window. The
/// elements of the window change fastest from step to step, since they sample nearly the same pixels.
struct DeformableTask {
  const char* x = nullptr;
  const char* weight = nullptr;
  const void* offset = nullptr;
  const void* mask = nullptr;  ///< The mask; null if no mask is given. Likewise `bias` is null without a bias.
  const void* bias = nullptr;
  void* y = nullptr;
  std::int64_t item_bytes = 0;  ///< The size of an item of x in bytes.
  int pixel_bytes = 0;          ///< The size of a pixel of x in bytes.
  int section_bytes = 0;        ///< The size of a section of a pixel of x in bytes.
  int height = 0;
  int width = 0;
  int pixels = 0;  ///< The number of pixels in an item of y.
  int row_stride = 1;
  int column_stride = 1;
  int row_pad = 0;
  int column_pad = 0;
  int row_dilation = 1;
  int column_dilation = 1;
  int taps = 0;  ///< The number of elements in the window.
  int chunks = 0;
  int steps = 0;
  int groups = 1;
  int sections_of_group = 1;
  int sections_of_offset_group = 1;
  int offset_groups = 1;
  int outputs = 0;
  int group_outputs = 0;
  bool has_wide_stores = false;  ///< Whether y and each of its channels begin at multiples of 16 bytes.
  Divisor by_taps;
  Divisor by_chunks;
  Divisor by_kernel_width;
  Divisor by_out_width;

  // The launch sets the following members.
  int row_tiles = 0;
  int column_tiles = 0;
  int parts = 1;  ///< The number of blocks in a cluster that share the steps of a tile.
  int steps_of_part = 0;
};

/// Returns unsupported unless the sizes fit into 32 bits and there are enough channels for a step to be worthwhile.
[[nodiscard]] Status fits_deformable_tiles(const DeformableConvolution& op, const Problem& problem);

/// Sets `task` and copies x and weight to the workspace, in the layout of DeformableSections.
[[nodiscard]] Status prepare_deformable_task(const DeformableConvolution& op, const Problem& problem,
                                             const Buffers& buffers, const CudaContext& context, DeformableTask& task);

/// The division of tiles between blocks, and its estimated time.
struct DeformableShare {
  int parts = 1;  ///< The number of blocks that share a tile.
  double microseconds = std::numeric_limits<double>::infinity();
};

/// Returns the division of the tiles between blocks that takes the least time, for `items` items and tiles of rows x
/// columns. A multiprocessor holds `blocks` tiles and computes a step in `microseconds`.
[[nodiscard]] inline DeformableShare share_of_deformable(const DeformableTask& task, std::int64_t items, int rows,
                                                         int columns, int blocks, double microseconds,
                                                         const DeviceTraits& device) {
  const int most = device.has_clusters() ? 8 : 1;  // every GPU with clusters supports this size
  const std::int64_t tiles =
      items * task.groups * ceil_divide(task.pixels, rows) * ceil_divide(task.group_outputs, columns);
  DeformableShare best;
  for (int parts = 1; parts <= std::min(most, task.steps); ++parts) {
    std::int64_t at_once = std::int64_t{device.multiprocessors} * blocks;
    if (parts > 2) at_once = at_once * 10 / 11;  // an H200 runs 30 clusters of 4 at once, not 33
    const std::int64_t rounds = ceil_divide(tiles * parts, at_once);
    if (parts > 1 && rounds > 1) break;
    const double time = static_cast<double>(rounds * ceil_divide(task.steps, parts)) * microseconds;
    if (time < best.microseconds) best = {parts, time};
  }
  return best;
}

/// Sets the numbers of tiles of rows x columns along both axes in the task, and returns the number of all tiles of
/// `items` items.
[[nodiscard]] inline std::int64_t set_deformable_tiles(DeformableTask& task, std::int64_t items, int rows,
                                                       int columns) {
  task.row_tiles = static_cast<int>(ceil_divide(task.pixels, rows));
  task.column_tiles = static_cast<int>(ceil_divide(task.group_outputs, columns));
  return items * task.groups * task.row_tiles * task.column_tiles;
}

#ifdef __CUDACC__

/// The part of y that a block computes.
struct DeformableBlock {
  std::int64_t item;
  int group;
  int first_pixel;
  int first_output;  ///< The first filter within the group.
};

template <int rows, int columns>
[[nodiscard]] __device__ DeformableBlock deformable_block(const DeformableTask& task) {
  const int block = static_cast<int>(blockIdx.x) / task.parts;
  const int column_tile = block % task.column_tiles;
  const int group = block / task.column_tiles % task.groups;
  const int row_tile = block / task.column_tiles / task.groups;
  return {.item = row_tile / task.row_tiles,
          .group = group,
          .first_pixel = row_tile % task.row_tiles * rows,
          .first_output = column_tile * columns};
}

/// The channels that a step samples: channels of a section from `chunk` times `step_channels` on, at one element of the
/// window.
struct DeformableStep {
  int section;  ///< The section within the group.
  int chunk;
  int tap;
};

[[nodiscard]] __device__ inline DeformableStep deformable_step(const DeformableTask& task, int step) {
  const int section_and_chunk = task.by_taps.quotient(step);
  const int section = task.by_chunks.quotient(section_and_chunk);
  return {section, section_and_chunk - section * task.chunks, step - section_and_chunk * task.taps};
}

/// The offset of an element of the window for a pixel of y, and the mask value by which its samples are multiplied.
struct DeformableMove {
  float down = 0;
  float across = 0;
  float factor = 1;
};

/// The four pixels that each pixel of y samples in a step: their byte offsets in the item of x (-1 if beyond the
/// image), their weights, and the factor of the sample. Held in shared memory for two steps.
template <int rows>
struct DeformableCorners {
  int4 places[2][rows];
  float4 weights[2][rows];
  float factors[2][rows];
};

/// Computes the corners of one pixel of y, step by step. The thread loads the offsets of a step one step before it uses
/// them.
template <class T>
class DeformableScout {
 public:
  __device__ DeformableScout(const DeformableTask& task, const DeformableBlock& block, int pixel)
      : task_(task), block_(block), pixel_(pixel), exists_(pixel < task.pixels) {
    const int row = task.by_out_width.quotient(pixel);
    row_ = std::int64_t{row} * task.row_stride - task.row_pad;
    column_ = std::int64_t{task.by_out_width.remainder(pixel)} * task.column_stride - task.column_pad;
  }

  __device__ void load(int step) {
    if (!exists_ || step >= task_.steps) return;
    const DeformableStep at = deformable_step(task_, step);
    const int section = block_.group * task_.sections_of_group + at.section;
    const std::int64_t plane =
        (block_.item * task_.offset_groups + section / task_.sections_of_offset_group) * task_.taps + at.tap;
    const T* down = static_cast<const T*>(task_.offset) + 2 * plane * task_.pixels + pixel_;
    move_.down = static_cast<float>(down[0]);
    move_.across = static_cast<float>(down[task_.pixels]);
    if (task_.mask != nullptr) {
      move_.factor = static_cast<float>(static_cast<const T*>(task_.mask)[plane * task_.pixels + pixel_]);
    }
  }

  /// Writes the corners of the step that was loaded last.
  template <int rows>
  __device__ void write(DeformableCorners<rows>& corners, int step, int row) const {
    if (step >= task_.steps) return;
    int places[4] = {-1, -1, -1, -1};
    float weights[4] = {};
    if (exists_) {
      const int tap = deformable_step(task_, step).tap;
      const int tap_row = task_.by_kernel_width.quotient(tap);
      const int tap_column = task_.by_kernel_width.remainder(tap);
      const DeformablePosition position = deformable_position(
          row_ + std::int64_t{tap_row} * task_.row_dilation, column_ + std::int64_t{tap_column} * task_.column_dilation,
          move_.down, move_.across, task_.height, task_.width);
      if (position.is_near) {
#pragma unroll
        for (int corner = 0; corner < 4; ++corner) {
          const int corner_row = position.row + corner / 2;
          const int corner_column = position.column + corner % 2;
          weights[corner] = (corner / 2 == 0 ? 1.F - position.down : position.down) *
                            (corner % 2 == 0 ? 1.F - position.across : position.across);
          const bool is_inside =
              corner_row >= 0 && corner_row < task_.height && corner_column >= 0 && corner_column < task_.width;
          if (is_inside) places[corner] = (corner_row * task_.width + corner_column) * task_.pixel_bytes;
        }
      }
    }
    corners.places[step % 2][row] = {places[0], places[1], places[2], places[3]};
    corners.weights[step % 2][row] = {weights[0], weights[1], weights[2], weights[3]};
    corners.factors[step % 2][row] = move_.factor;
  }

 private:
  const DeformableTask& task_;
  const DeformableBlock& block_;
  int pixel_;
  bool exists_;
  std::int64_t row_;
  std::int64_t column_;
  DeformableMove move_;
};

/// A vector of channels at the four corners of a sample, while it is loaded.
struct DeformableVectors {
  uint4 corners[4];

  __device__ void load(const char* item, const int4& places, bool exists) {
    const int from[4] = {places.x, places.y, places.z, places.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      corners[i] = exists && from[i] >= 0 ? __ldg(reinterpret_cast<const uint4*>(item + from[i])) : uint4{};
    }
  }

  template <class T, int N>
  __device__ void blend(const float4& weights, float factor, float (&results)[N]) const {
    const float of[4] = {weights.x, weights.y, weights.z, weights.w};
#pragma unroll
    for (float& result : results) result = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float values[N];
      Vector<T, N>{corners[i]}.unpack(values);
#pragma unroll
      for (int j = 0; j < N; ++j) results[j] = fmaf(of[i], values[j], results[j]);
    }
#pragma unroll
    for (float& result : results) result *= factor;
  }
};

#endif

}  // namespace graft::ops
