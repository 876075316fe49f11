// Convolution with windows of 3x3 over few channels. The filters stay in shared memory, and pixels are copied there
// once for all taps.
//
// A warpgroup computes tiles of 8x8 pixels of y. A tensor copy loads the 10x10 pixels of x that the windows of a tile
// read, 16 bytes of channels at a time, so that the operand of each tap is the same matrix with another first pixel.
// While one warpgroup rounds and stores its sums, other warpgroups multiply.
#pragma once

#include "ops/convolution/wgmma.cuh"

namespace graft::ops::wgmma {

struct PatchSizes {
  int tiles = 0;
  int tile_rows = 0, tile_columns = 0;  ///< The number of tiles in an image, along rows and columns.
  Divisor by_rows{}, by_columns{};
  int slices = 1;  ///< The number of parts into which the channels of y are divided; a block computes one part.
  int pad_w = 0, pad_h = 0;
};

/// The sizes of the work of a block: the channels of a pixel of x fill `Chunks` chunks of 16 bytes, the block computes
/// N channels of y, `Warpgroups` warpgroups multiply, and `Buffers` buffers each hold the pixels of one tile.
template <int Chunks, int N, int Warpgroups, int Buffers>
struct Patch {
  static constexpr int chunks = Chunks;
  static constexpr int n = N;
  static constexpr int warpgroups = Warpgroups;
  static constexpr int buffers = Buffers;
  static constexpr int side = 8;
  static constexpr int window = 3;
  static constexpr int reach = side + window - 1;
  static constexpr int plane_bytes = reach * reach * 16;  // the bytes of one chunk of all pixels
  static constexpr int buffer_bytes = Chunks * plane_bytes;
  static constexpr int steps = window * window * Chunks / 2;  // the number of products of 32 bytes
  static constexpr int filter_rows = (steps + 3) / 4;         // the number of rows of 128 bytes
  static constexpr int filter_bytes = filter_rows * N * 128;
  static constexpr int threads = Warpgroups * 128 + 32;
  template <int Arrays>
  static constexpr int shared_bytes = filter_bytes + Buffers*(buffer_bytes + 16) + 8 + Arrays* N * 4;
};

template <class T, class Patch>
__global__ void __launch_bounds__(Patch::threads, 1)
    convolve_patches(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map, T* y,
                     const __grid_constant__ Sizes sizes, const __grid_constant__ PatchSizes patches,
                     const __grid_constant__ Finish finishing) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using namespace detail;
  constexpr bool planes = std::is_same_v<T, std::int8_t>;
  constexpr int taps = Patch::window * Patch::window;
  extern __shared__ __align__(1024) char memory[];
  char* const pixels = memory + Patch::filter_bytes;
  auto* const arrays = reinterpret_cast<float*>(pixels + Patch::buffers * Patch::buffer_bytes);
  const std::uint32_t full = hopper::shared_address(arrays + channel_arrays<T> * Patch::n);
  const std::uint32_t empty = full + Patch::buffers * 8;
  const std::uint32_t filters_arrived = empty + Patch::buffers * 8;
  const int warpgroup = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 128, 0);
  const int channel = static_cast<int>(blockIdx.x) % patches.slices * Patch::n;
  const int first = static_cast<int>(blockIdx.x) / patches.slices;
  const int step = static_cast<int>(gridDim.x) / patches.slices;

  if (threadIdx.x == 0) {
    hopper::prefetch(x_map);
    hopper::prefetch(w_map);
    for (unsigned i = 0; i < Patch::buffers; ++i) {
      hopper::barrier_init(full + i * 8, 1);
      hopper::barrier_init(empty + i * 8, 1);
    }
    hopper::barrier_init(filters_arrived, 1);
    hopper::barrier_init_fence();
  }
  if (threadIdx.x < 128) {
    Channels<T, Patch::n> channels;
    channels.load(channel, threadIdx.x, sizes, finishing);
    channels.store(arrays, threadIdx.x, finishing);
  }
  __syncthreads();

  const auto place = [&](int tile, int& image, int& h, int& w) {
    const int row = patches.by_columns.quotient(tile);
    image = patches.by_rows.quotient(row);
    h = (row - image * patches.tile_rows) * Patch::side;
    w = (tile - row * patches.tile_columns) * Patch::side;
  };

  if (warpgroup == Patch::warpgroups) {
    if (threadIdx.x % 32 != 0) return;
    hopper::barrier_expect(filters_arrived, Patch::filter_bytes);
    Turn turn;
    const auto bring = [&](int tile) {
      hopper::barrier_wait(empty + 8U * static_cast<unsigned>(turn.stage), turn.phase ^ 1U);
      const std::uint32_t arrived = full + 8U * static_cast<unsigned>(turn.stage);
      hopper::barrier_expect(arrived, Patch::buffer_bytes);
      int image, h, w;
      place(tile, image, h, w);
      hopper::copy_box(x_map, hopper::shared_address(pixels) + static_cast<unsigned>(turn.stage * Patch::buffer_bytes),
                       arrived, 0, w - patches.pad_w, h - patches.pad_h, 0,
                       planes ? image * (Patch::chunks / 2) : image);
      turn.next(Patch::buffers);
    };
    int tile = first;
    if (tile < patches.tiles) bring(tile);
#pragma unroll 1
    for (int row = 0; row < Patch::filter_rows; ++row) {
      constexpr int rows_of_tap = planes ? 1 : Patch::chunks / 8;
      hopper::copy_box(w_map, hopper::shared_address(memory) + static_cast<unsigned>(row * Patch::n * 128),
                       filters_arrived, planes ? row * 128 : row % rows_of_tap * 64, planes ? 0 : row / rows_of_tap, 0,
                       channel / 8, 0);
    }
    for (tile += step; tile < patches.tiles; tile += step) bring(tile);
    return;
  }

  const unsigned in_warpgroup = threadIdx.x % 128;
  const int lane = hopper::lane();
  const int own = lane % 4 * 8;
  // The descriptors of matrices without a swizzle: 16 bytes of each of 8 adjacent pixels, then the next row. The next
  // chunk follows after 100 pixels.
  const std::uint64_t pixel_descriptor = std::uint64_t{Patch::reach * 16 / 16} << 32U |
                                         std::uint64_t{Patch::plane_bytes / 16} << 16U |
                                         hopper::shared_address(pixels) / 16U;
  const std::uint64_t filter_descriptor = row_descriptor(128) + hopper::shared_address(memory) / 16U;
  const std::int64_t block_step = planes ? std::int64_t{sizes.width} * sizes.height * 32 : 32;
  hopper::barrier_wait(filters_arrived, 0);
  for (int i = warpgroup, tile = first + warpgroup * step; tile < patches.tiles;
       i += Patch::warpgroups, tile += Patch::warpgroups * step) {
    const int buffer = i % Patch::buffers;
    hopper::barrier_wait(full + 8U * static_cast<unsigned>(buffer), static_cast<unsigned>(i / Patch::buffers) & 1U);
    const std::uint64_t from = pixel_descriptor + static_cast<unsigned>(buffer * (Patch::buffer_bytes / 16));
    Sum<T> sums[Patch::n / 2];
    hopper::product_fence();
#pragma unroll
    for (int k = 0; k < Patch::steps; ++k) {
      constexpr int pairs = Patch::chunks / 2;
      const int tap = planes ? k % taps : k / pairs;
      const int pair = planes ? k / taps : k % pairs;
      const int at = (tap / Patch::window * Patch::reach + tap % Patch::window) + pair * 2 * (Patch::plane_bytes / 16);
      hopper::product(T{}, sums, from + static_cast<unsigned>(at),
                      filter_descriptor + static_cast<unsigned>(k / 4 * (Patch::n * 128 / 16) + k % 4 * 2),
                      k > 0 ? 1 : 0);
    }
    hopper::product_commit();
    int image, h, w;
    place(tile, image, h, w);
    h += static_cast<int>(in_warpgroup) / 32 * 2;
    w += lane / 4;
    const int pixel = (image * sizes.height + h) * sizes.width + w;
    T* const rows[2] = {address(y, sizes, pixel, channel + own), address(y, sizes, pixel + sizes.width, channel + own)};
    const bool there[2] = {w < sizes.width && h < sizes.height, w < sizes.width && h + 1 < sizes.height};
    hopper::product_wait<0>();
    if (in_warpgroup == 0) hopper::barrier_arrive(empty + 8U * static_cast<unsigned>(buffer));
#pragma unroll
    for (int b = 0; b < Patch::n / 32; ++b) {
      if (channel + b * 32 >= sizes.channels) break;
      const bool any = channel + b * 32 + own < stored_channels<T>(sizes);
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        Sum<T> eight[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) eight[k] = sums[(k / 2 * (Patch::n / 32) + b) * 4 + row * 2 + k % 2];
        const auto vector = finish_eight<T, Patch::n>(eight, arrays + b * 32 + own, finishing);
        if (there[row] && any) {
          *reinterpret_cast<std::remove_const_t<decltype(vector)>*>(rows[row] + b * block_step) = vector;
        }
      }
    }
  }
#endif
}

}  // namespace graft::ops::wgmma
