// The tensor-core variant of Convolution between its host code and its kernels, which are compiled type by type.
#pragma once

#include <array>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/quantizer.cuh"
#include "ops/convolution/plan.hpp"

namespace graft::ops {

/// A convolution over images as the kernel sees it. A sum runs over blocks of channels, the window, and the chunks of
/// 16 bytes of a pixel within a block, so that a block's windows, which overlap, are read soon one after the other.
struct TensorCoreTask {
  const char* x = nullptr;
  const char* weight = nullptr;
  const float* bias = nullptr;
  const float* scale = nullptr;
  void* y = nullptr;
  ConvolutionEpilogue epilogue{};
  Quantizer quantizer;

  std::int64_t image_bytes = 0;  ///< Of x.
  std::int64_t group_bytes = 0;  ///< From one group's channels of x to the next one's.
  int block_bytes = 0;           ///< From one block of x to the next one.
  int pixel_bytes = 0;
  int blocks = 0;               ///< Whole ones.
  int block_chunks = 0;         ///< Chunks of a pixel within a whole block.
  int rest_chunks = 1;          ///< Within the block after those, if there is one.
  int chunks = 0;               ///< Of a sum.
  int filter_block_chunks = 0;  ///< From one block of a filter to the next one.
  int filter_tap_chunks = 0;    ///< From one element of the window to the next one.
  Divisor by_block;             ///< Chunks of a block over the whole window.
  Divisor by_block_chunks;
  Divisor by_rest_chunks;
  Divisor by_kernel_width;
  int group_channels = 0;
  int height = 0;
  int width = 0;
  int kernel_height = 0;
  int kernel_width = 0;
  int row_stride = 0;
  int column_stride = 0;
  int row_pad = 0;
  int column_pad = 0;
  int row_dilation = 0;
  int column_dilation = 0;

  int pixels = 0;  ///< Of y, of all images.
  int image_pixels = 0;
  Divisor by_image;
  Divisor by_row;
  int groups = 1;
  int group_outputs = 0;
  int all_outputs = 0;
  int stored_outputs = 0;  ///< Channels of y with padding.
  Layout layout = Layout::linear;
  bool wide_stores = false;  ///< Linear only: eight pixels of a channel at once.

  // Set by the launch.
  int column_tiles = 0;
  Divisor by_column_tiles;
  Divisor by_row_tiles;
  int splits = 1;
  int steps = 0;  ///< Of one split.
};

/// A tile of the list below, and how many blocks of a cluster share its sums.
struct TensorCoreChoice {
  int tile = 0;
  int splits = 1;
};

/// The size of a tile, as the choice between them needs it.
struct TensorCoreTileSize {
  int rows;
  int columns;
  int chunks;  ///< Of a step.
  int stages;
  int blocks;  ///< Of a multiprocessor.
  int speed;   ///< Products of chunks in a clock cycle of a multiprocessor, as measured on an H200.

  [[nodiscard]] constexpr int stage_bytes() const { return (rows + columns) * chunks * 16; }
  /// Of the sums in shared memory, so that no two lanes share a bank.
  [[nodiscard]] constexpr int pitch() const { return columns + 8; }
  [[nodiscard]] constexpr int tile_bytes() const {
    const int sums = rows * pitch() * 4;
    return stages * stage_bytes() > sums ? stages * stage_bytes() : sums;
  }
  [[nodiscard]] constexpr int shared_bytes(int steps) const {
    constexpr int column_bytes = 8;
    constexpr int entry_bytes = 8;
    return tile_bytes() + columns * column_bytes + steps * chunks * entry_bytes;
  }
};
inline constexpr std::array<TensorCoreTileSize, 5> tensor_core_tiles{{
    {.rows = 128, .columns = 128, .chunks = 8, .stages = 3, .blocks = 2, .speed = 130},
    {.rows = 128, .columns = 64, .chunks = 8, .stages = 3, .blocks = 2, .speed = 105},
    {.rows = 64, .columns = 64, .chunks = 8, .stages = 4, .blocks = 3, .speed = 105},
    {.rows = 64, .columns = 64, .chunks = 4, .stages = 4, .blocks = 4, .speed = 105},
    {.rows = 32, .columns = 32, .chunks = 8, .stages = 6, .blocks = 4, .speed = 105},
}};
/// Pixels of a channel that a thread stores together in linear layout, and so the least rows of a block.
inline constexpr int tensor_core_linear_pixels = 8;
/// The one that fits into the shared memory of every GPU.
inline constexpr int tensor_core_least_tile = 3;

/// For T = __half, __nv_bfloat16 and std::int8_t.
template <class T>
[[nodiscard]] Status launch_tensor_core(const TensorCoreTask& task, const TensorCoreChoice& choice,
                                        const CudaContext& context);

}  // namespace graft::ops
