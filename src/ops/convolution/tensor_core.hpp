// The interface between the host code of the tensor-core variant of Convolution and its kernels, which are compiled in
// one file per element type.
#pragma once

#include <array>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/quantizer.cuh"
#include "ops/convolution/plan.hpp"

namespace graft::ops {

/// A convolution over images. A sum is computed over blocks of channels, then over the window, then over the 16-byte
/// chunks of a pixel within a block, so that the overlapping windows of a block are loaded soon after each other.
struct TensorCoreTask {
  const char* x = nullptr;
  const char* weight = nullptr;
  const float* bias = nullptr;
  const float* scale = nullptr;
  void* y = nullptr;
  ConvolutionEpilogue epilogue{};
  Quantizer quantizer;

  std::int64_t image_bytes = 0;  ///< The size of an image of x in bytes.
  /// The distance in bytes from the first channel of a group of x to the first channel of the next group.
  std::int64_t group_bytes = 0;
  int block_bytes = 0;  ///< The distance in bytes from one block of channels of x to the next.
  int pixel_bytes = 0;
  int blocks = 0;        ///< The number of whole blocks of channels.
  int block_chunks = 0;  ///< The number of chunks that a pixel has within a whole block.
  /// The number of chunks that a pixel has within the partial block after the whole blocks; 1 if no block is partial.
  int rest_chunks = 1;
  int chunks = 0;               ///< The number of chunks in a sum.
  int filter_block_chunks = 0;  ///< The distance in chunks from one block of a filter to the next.
  int filter_tap_chunks = 0;    ///< The distance in chunks from one window element of a filter to the next.
  Divisor by_block;             ///< The divisor is the number of chunks of a block over the whole window.
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

  int pixels = 0;  ///< The number of pixels of y in all images.
  int image_pixels = 0;
  Divisor by_image;
  Divisor by_row;
  int groups = 1;
  int group_outputs = 0;
  int all_outputs = 0;
  int stored_outputs = 0;  ///< The number of channels of y, including padding.
  Layout layout = Layout::linear;
  bool wide_stores = false;  ///< Whether eight pixels of a channel are stored at once; only for linear y.

  // The launch sets the following members.
  int column_tiles = 0;
  Divisor by_column_tiles;
  Divisor by_row_tiles;
  int splits = 1;
  int steps = 0;  ///< The number of steps of one split.
};

/// A tile size and a split-K factor: an index into tensor_core_tiles, and the number of blocks of a cluster that divide
/// the reduction of one tile among them. Each block computes partial sums over its own steps.
struct TensorCoreChoice {
  int tile = 0;
  int splits = 1;
};

/// The size of a tile and the properties by which tiles are compared.
struct TensorCoreTileSize {
  int rows;
  int columns;
  int chunks;  ///< The number of chunks in a step.
  int stages;
  int blocks;  ///< The number of blocks per multiprocessor.
  int speed;   ///< The products of chunks that a multiprocessor computes per clock cycle, as measured on an H200.

  [[nodiscard]] constexpr int stage_bytes() const { return (rows + columns) * chunks * 16; }
  /// Returns the number of elements from one row of sums in shared memory to the next. With this pitch no two lanes
  /// access the same bank.
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
/// The number of pixels of a channel that a thread stores together in linear layout. Each block of a cluster therefore
/// has at least as many rows of a tile.
inline constexpr int tensor_core_linear_pixels = 8;
/// The index of the tile that fits into the shared memory of every GPU.
inline constexpr int tensor_core_least_tile = 3;

/// Launches the kernel for T = __half, __nv_bfloat16 or std::int8_t.
template <class T>
[[nodiscard]] Status launch_tensor_core(const TensorCoreTask& task, const TensorCoreChoice& choice,
                                        const CudaContext& context);

}  // namespace graft::ops
