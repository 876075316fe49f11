// Convolution on Hopper's tensor cores: an implicit matrix product of pixels and weights.
//
// A block computes a tile of output pixels x output channels. Two warps copy the pixels that the taps of the window
// read, and the weights, by TMA into a ring of stages; one or two warpgroups multiply the stages that have arrived. A
// stage is 128 bytes of depth: one chunk of 128 bytes of the channels of one tap or, for fewer channels, two chunks of
// 64 bytes or four of 32, which may belong to different taps. For gathered tiles a warpgroup copies the pixels 16 bytes
// at a time. The depth then is the depth of a filter, whose taps follow each other without gaps, so that few products
// are wasted whatever the number of channels.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/divisor.cuh"
#include "kernels/vector.cuh"
#include "ops/convolution/hopper.cuh"
#include "ops/convolution/plan.hpp"
#include "ops/convolution/window.cuh"

namespace graft::ops::wgmma {

/// The operations that convert sums to stored elements.
struct Finish {
  ConvolutionEpilogue epilogue;
  const float* bias = nullptr;   ///< A bias for each output channel.
  const float* scale = nullptr;  ///< A scale for each output channel, for i8 only.
  bool leaks = false;            ///< Whether the activation is leaky_relu.
  bool bounds = false;           ///< Whether values are clamped to `low` and `high`, for i8 in steps of y.
  float low = 0;
  float high = 0;
  float inverse_y_scale = 0;  ///< 1 / y_scale of i8; 0 if sums must not be multiplied by it.
  /// For i8, the limit of `factor` / y_scale, the number by which a sum is multiplied. From this limit on, a result may
  /// be too large to be rounded by addition.
  float most_factor = 0;

  // The error of sum * (factor / y_scale) + bias / y_scale is less than (2.5 |result| + 2 |bias / y_scale|) * 2^-23.
  // Results beyond 129 saturate. For all other results, the distance to the nearest integer shows whether the error can
  // matter.
  static constexpr float most_bias = 128;
  static constexpr float near_tie = .4999F;

  [[nodiscard]] static Finish of(const ConvolutionEpilogue& epilogue, const float* bias, const float* scale,
                                 std::int64_t products) {
    Finish result{.epilogue = epilogue, .bias = bias, .scale = scale};
    const float infinity = std::numeric_limits<float>::infinity();
    const float step = epilogue.y_scale;
    result.leaks = epilogue.activation == Activation::leaky_relu;
    result.bounds = epilogue.activation == Activation::relu || epilogue.activation == Activation::relu6;
    result.high = epilogue.activation != Activation::relu6 ? infinity : epilogue.quantized ? 6 / step : 6;
    const bool safe = step > 0x1p-80F && step < 0x1p80F && !(result.leaks && !(std::abs(epilogue.alpha) <= 1));
    result.inverse_y_scale = epilogue.quantized && safe ? 1 / step : 0;
    // A sum has `products` products of at most 2^14 each, so that the result stays below 2^22.
    result.most_factor = 255.F / static_cast<float>(products);
    return result;
  }
};

struct Sizes {
  int pixels = 0;    ///< The number of output pixels in all images.
  int channels = 0;  ///< The number of output channels.
  /// In hwc8 the number of elements from one output pixel to the next, in chw32 the number of output planes of 32
  /// channels.
  int pitch = 0;
  int width = 0, height = 0;  ///< The width and height of the output.
  int stride_w = 1, stride_h = 1, pad_w = 0, pad_h = 0, dilation_w = 1, dilation_h = 1;
  int taps_w = 1, taps = 1;
  int chunk = 128;         ///< The size of a chunk in bytes: 128, 64 or 32.
  int weight_chunk = 128;  ///< The number of bytes of weights that are copied at once, a multiple of `chunk`.
  int chunks_of_tap = 1;   ///< The number of chunks that the channels of a pixel take.
  int stages = 1;          ///< The number of stages of depth in a sum.
  /// Whether output pixel i is computed from input pixel i alone (1 x 1 window, stride 1); x is then copied as a
  /// matrix.
  bool flat = false;
  bool gathered = false;  ///< Whether pixels are copied 16 bytes at a time.
  bool permuted = false;  ///< Whether filters are copied in an order that gives each thread adjacent channels of y.
  int tiles_n = 1;
  /// The divisor of by_image is the number of output pixels of an image.
  Divisor by_tiles_n{}, by_width{}, by_height{}, by_image{};
  int chunk_shift = 7, weight_chunk_shift = 7;  ///< The binary logarithms of the chunk sizes.
  // The number of whole tiles. Blocks compute whole tiles first; if split tiles follow, each block computes the same
  // number of them. The remaining tiles, fewer than there are blocks, are split: a cluster of blocks computes each of
  // them, and its depth is divided between the blocks.
  int whole_tiles = 0;
  int split_tiles = 0;  ///< The number of split tiles, at most one per cluster.
  int cluster = 1;      ///< The number of blocks that share a split tile; a power of two.
};

/// The part of y that a block computes at a time: M pixels x N channels.
template <int M, int N, int Stages, int BlocksPerMultiprocessor, int Warpgroups = 2>
struct Tile {
  static constexpr int m = M;
  static constexpr int n = N;
  static constexpr int stages = Stages;
  static constexpr int blocks = BlocksPerMultiprocessor;
  static constexpr int depth = 128;  // bytes
  static constexpr int pixel_bytes = M * depth;
  static constexpr int weight_bytes = N * depth;
  static constexpr int stage_bytes = pixel_bytes + weight_bytes;
  static constexpr int warpgroups = Warpgroups;  // that multiply; two more warps copy
  static constexpr int warps = Warpgroups * 4;
  static constexpr int rows = M / Warpgroups;  // the number of rows of a warpgroup
  // Large tiles need more registers than an even share. Their copying warps belong to a warpgroup of their own, which
  // releases registers to the multiplying warpgroups.
  static constexpr bool moves_registers = BlocksPerMultiprocessor == 1;
  static constexpr int threads = warps * 32 + (moves_registers ? 128 : 64);
  template <int Arrays>
  static constexpr int shared_bytes = Stages*(stage_bytes + 16) + Warpgroups* Arrays* N * 4;
};

/// A tile whose pixels are copied by a warpgroup, 16 bytes at a time.
template <int M, int N, int Stages, int BlocksPerMultiprocessor>
struct GatheredTile : Tile<M, N, Stages, BlocksPerMultiprocessor> {
  static constexpr int copying_threads = 128;
  static constexpr int threads = GatheredTile::warps * 32 + copying_threads;
};

/// The tensor x in hwc8, which is copied in parts of 16 bytes.
struct GatheredPixels {
  static constexpr int most_window = 16;  ///< Elements on each axis, one bit of a mask each.
  const char* x = nullptr;
  int width = 0, height = 0;  ///< The width and height of x.
  int parts = 0;              ///< The number of 16-byte parts in a pixel.
  Divisor by_parts{}, by_taps_w{};
};

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, std::int8_t>, int, float>;

namespace detail {

/// The current stage of a ring of stages and the parity of its phase.
struct Turn {
  int stage = 0;
  unsigned phase = 0;
  __device__ void next(int stages) {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1U;
    }
  }
};

/// Returns the descriptor of rows in shared memory without their address: swizzled rows of `chunk` bytes in groups of 8
/// consecutive rows.
[[nodiscard]] __device__ inline std::uint64_t row_descriptor(int chunk) {
  const std::uint64_t swizzle = chunk == 128 ? 1 : chunk == 64 ? 2 : 3;
  return swizzle << 62U | static_cast<std::uint64_t>(chunk * 8 / 16) << 32U | std::uint64_t{1} << 16U;
}

/// A tile that a block computes, or the stages of a split tile that the block computes.
struct Piece {
  int pixel, channel;  // the first pixel and channel of the tile
  int begin, end;      // the range of stages of the depth
  bool split;
};

/// Iterates over the tiles of a block, and its stages of a split tile.
template <class Tile>
class Pieces {
 public:
  __device__ explicit Pieces(const Sizes& sizes) : tile_(static_cast<int>(blockIdx.x)) {
    if (tile_ >= sizes.whole_tiles) to_split(sizes);
  }
  [[nodiscard]] __device__ bool any(const Sizes& sizes) const { return tile_ < sizes.whole_tiles + sizes.split_tiles; }
  [[nodiscard]] __device__ Piece get(const Sizes& sizes) const {
    const int row = sizes.by_tiles_n.quotient(tile_);
    const bool split = tile_ >= sizes.whole_tiles;
    const int rank = split ? static_cast<int>(blockIdx.x) & (sizes.cluster - 1) : 0;
    const int shift = split ? shift_of(sizes.cluster) : 0;
    return {row * Tile::m, (tile_ - row * sizes.tiles_n) * Tile::n, sizes.stages * rank >> shift,
            sizes.stages * (rank + 1) >> shift, split};
  }
  __device__ void next(const Sizes& sizes) {
    if (tile_ >= sizes.whole_tiles) {
      tile_ = sizes.whole_tiles + sizes.split_tiles;
      return;
    }
    tile_ += static_cast<int>(gridDim.x);
    if (tile_ >= sizes.whole_tiles) to_split(sizes);
  }

 private:
  __device__ void to_split(const Sizes& sizes) {
    tile_ = sizes.whole_tiles + (static_cast<int>(blockIdx.x) >> shift_of(sizes.cluster));
  }
  /// Returns the binary logarithm of `cluster`, a power of two.
  [[nodiscard]] static __device__ int shift_of(int cluster) { return __ffs(cluster) - 1; }
  int tile_;
};

/// Iterates over the chunks of a sum: in hwc8 over all chunks of a tap before those of the next tap, in chw32
/// (`Planes`) over all taps of a plane before those of the next plane.
template <bool Planes>
struct Walk {
  int part, tap, r, s;
  __device__ Walk(int chunk, const Sizes& sizes) : part(0), tap(0), r(0), s(0) {
    // The usual case is handled separately, because the time before the first copy of a block matters.
    if (chunk == 0) return;
    tap = Planes ? chunk % sizes.taps : chunk / sizes.chunks_of_tap;
    part = Planes ? chunk / sizes.taps : chunk % sizes.chunks_of_tap;
    r = tap / sizes.taps_w;
    s = tap - r * sizes.taps_w;
  }
  __device__ void next(const Sizes& sizes) {
    if (!Planes && ++part < sizes.chunks_of_tap) return;
    if (!Planes) part = 0;
    ++tap;
    if (++s < sizes.taps_w) return;
    s = 0;
    ++r;
    if (!Planes || tap < sizes.taps) return;
    tap = 0;
    r = 0;
    ++part;
  }
};

/// Copies the stages of this block's pieces to shared memory: calls `begin(piece)` for each piece, then
/// `copy(stage, arrived)` for each stage whose barrier in `empty` reports that it is free; `arrived` is its barrier in
/// `full`. One warp calls this for pixels and another for weights, because a single thread issues copies too slowly for
/// small tiles. Contains one __syncthreads() after the first `begin`.
template <class Tile, unsigned Bytes, class Begin, class Copy>
__device__ void produce(const Sizes& sizes, std::uint32_t stages, std::uint32_t full, std::uint32_t empty,
                        const Begin& begin, const Copy& copy) {
  Pieces<Tile> pieces(sizes);
  Piece piece = pieces.get(sizes);
  begin(piece);
  __syncthreads();  // The barriers are initialized.
  if (hopper::lane() != 0) return;
  Turn turn;
  while (true) {
    for (int stage = piece.begin; stage < piece.end; ++stage) {
      const std::uint32_t arrived = full + 8U * static_cast<unsigned>(turn.stage);
      hopper::barrier_wait(empty + 8U * static_cast<unsigned>(turn.stage), turn.phase ^ 1U);
      hopper::barrier_expect(arrived, Bytes);
      copy(stages + static_cast<std::uint32_t>(turn.stage * Tile::stage_bytes), arrived);
      turn.next(Tile::stages);
    }
    pieces.next(sizes);
    if (!pieces.any(sizes)) return;
    piece = pieces.get(sizes);
    begin(piece);
  }
}

template <class T, class Tile>
__device__ void produce_pixels(const CUtensorMap& map, const Sizes& sizes, std::uint32_t stages, std::uint32_t full,
                               std::uint32_t empty) {
  constexpr bool planes = std::is_same_v<T, std::int8_t>;
  const int chunk = planes ? 32 : sizes.chunk;
  const int chunks = Tile::depth / chunk;
  int pixel = 0;
  int w = 0;
  int h = 0;
  int image = 0;
  Walk<planes> walk(0, sizes);
  const auto begin = [&](const Piece& piece) {
    pixel = piece.pixel;
    const int row = sizes.by_width.quotient(pixel);
    w = (pixel - row * sizes.width) * sizes.stride_w - sizes.pad_w;
    image = sizes.by_height.quotient(row);
    h = (row - image * sizes.height) * sizes.stride_h - sizes.pad_h;
    walk = Walk<planes>(piece.begin * chunks, sizes);
  };
  produce<Tile, Tile::pixel_bytes>(sizes, stages, full, empty, begin, [&](std::uint32_t to, std::uint32_t arrived) {
#pragma unroll(planes ? 4 : 1)
    for (int i = 0; i < chunks; ++i) {
      if constexpr (planes) {
        // Copies past the last plane write zeros.
        hopper::copy_pixels(map, to, arrived, 0, w, h, image, walk.part, walk.s * sizes.dilation_w,
                            walk.r * sizes.dilation_h);
      } else if (sizes.flat) {
        hopper::copy_box(map, to, arrived, walk.tap == 0 ? walk.part * (chunk / 2) : sizes.chunks_of_tap * (chunk / 2),
                         0, pixel, 0, 0);
      } else {
        // Past the last tap, channels beyond the last one are copied, which writes zeros.
        const bool real = walk.tap < sizes.taps;
        hopper::copy_pixels(map, to, arrived, (real ? walk.part : sizes.chunks_of_tap) * (chunk / 2), w, h, image,
                            real ? walk.s * sizes.dilation_w : 0, real ? walk.r * sizes.dilation_h : 0);
      }
      to += static_cast<unsigned>(Tile::m * chunk);
      walk.next(sizes);
    }
  });
}

template <class T, class Tile>
__device__ void produce_weights(const CUtensorMap& map, const Sizes& sizes, std::uint32_t stages, std::uint32_t full,
                                std::uint32_t empty) {
  // In chw32, the planes and taps of a filter are consecutive and form one long row.
  constexpr bool planes = std::is_same_v<T, std::int8_t>;
  const int chunk = planes ? 128 : sizes.weight_chunk;
  const int chunks = Tile::depth / chunk;
  int row = 0;
  int octet = 0;
  int depth = 0;
  Walk<false> walk(0, sizes);
  const auto begin = [&](const Piece& piece) {
    row = sizes.permuted ? 0 : piece.channel;
    octet = sizes.permuted ? piece.channel / 8 : 0;
    depth = piece.begin * Tile::depth;
    if (!planes) walk = Walk<false>(piece.begin * chunks, sizes);
  };
  produce<Tile, Tile::weight_bytes>(
      sizes, stages + Tile::pixel_bytes, full, empty, begin, [&](std::uint32_t to, std::uint32_t arrived) {
        if constexpr (planes) {
          hopper::copy_box(map, to, arrived, depth, 0, row, octet, 0);
          depth += Tile::depth;
        } else {
#pragma unroll 1
          for (int i = 0; i < chunks; ++i) {
            // Copies past the last tap write zeros.
            hopper::copy_box(map, to, arrived, walk.part * (chunk / 2), walk.tap, row, octet, 0);
            to += static_cast<unsigned>(Tile::n * chunk);
            walk.next(sizes);
          }
        }
      });
}

/// Fills stages with pixels, which all threads of a warpgroup copy 16 bytes at a time, and with weights, which the
/// first thread copies. A thread copies the same part of the depth of a stage for several pixels. No thread waits for
/// its copies: its arrival at the barrier of a stage takes effect when they are complete.
template <class T, class Tile>
__device__ void gather_stages(const GatheredPixels& pixels, const CUtensorMap& weights, const Sizes& sizes,
                              std::uint32_t stages, std::uint32_t full, std::uint32_t empty) {
  constexpr int parts_of_stage = Tile::depth / 16;
  constexpr int row_step = Tile::copying_threads / parts_of_stage;
  constexpr int rows = Tile::m / row_step;
  static_assert(row_step % 8 == 0, "a thread's pixels have the same place in the swizzle's pattern of 8 rows");
  const int thread = static_cast<int>(threadIdx.x) - Tile::warps * 32;
  const int own_part = thread % parts_of_stage;
  const int own_row = thread / parts_of_stage;
  const auto own_place = static_cast<unsigned>(own_row * Tile::depth + (own_part ^ (own_row & 7)) * 16);
  int origins[rows];  // the origins of the windows, in parts
  unsigned inside[rows];
  const auto begin = [&](const Piece& piece) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const int pixel = piece.pixel + own_row + i * row_step;
      const int row = sizes.by_width.quotient(pixel);
      const int image = sizes.by_height.quotient(row);
      const int w = (pixel - row * sizes.width) * sizes.stride_w - sizes.pad_w;
      const int h = (row - image * sizes.height) * sizes.stride_h - sizes.pad_h;
      origins[i] = ((image * pixels.height + h) * pixels.width + w) * pixels.parts;
      const unsigned taps_h = elements_inside(h, pixels.height, sizes.taps / sizes.taps_w, sizes.dilation_h);
      const unsigned taps_w = elements_inside(w, pixels.width, sizes.taps_w, sizes.dilation_w);
      inside[i] = pixel < sizes.pixels ? taps_h | taps_w << 16U : 0;
    }
  };
  Pieces<Tile> pieces(sizes);
  Piece piece = pieces.get(sizes);
  begin(piece);
  __syncthreads();  // The barriers are initialized.
  Turn turn;
  while (true) {
    for (int stage = piece.begin; stage < piece.end; ++stage) {
      hopper::barrier_wait(empty + 8U * static_cast<unsigned>(turn.stage), turn.phase ^ 1U);
      const std::uint32_t to = stages + static_cast<std::uint32_t>(turn.stage * Tile::stage_bytes);
      const std::uint32_t arrived = full + 8U * static_cast<unsigned>(turn.stage);
      if (thread == 0) {
        hopper::barrier_expect(arrived, Tile::weight_bytes);
        hopper::copy_box(weights, to + Tile::pixel_bytes, arrived, stage * (Tile::depth / static_cast<int>(sizeof(T))),
                         0, sizes.permuted ? 0 : piece.channel, sizes.permuted ? piece.channel / 8 : 0, 0);
      }
      const int index = stage * parts_of_stage + own_part;
      int tap = pixels.by_parts.quotient(index);
      const bool exists = tap < sizes.taps;
      const int part = index - tap * pixels.parts;
      tap = exists ? tap : 0;
      const int r = pixels.by_taps_w.quotient(tap);
      const int s = tap - r * sizes.taps_w;
      const int offset = (r * sizes.dilation_h * pixels.width + s * sizes.dilation_w) * pixels.parts + part;
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const bool valid = exists && ((inside[i] >> r) & (inside[i] >> (16 + s)) & 1U) != 0;
        hopper::copy_part(to + own_place + static_cast<unsigned>(i * row_step * Tile::depth),
                          pixels.x + static_cast<std::int64_t>(origins[i] + offset) * 16, valid);
      }
      hopper::barrier_arrive_copied(arrived);
      turn.next(Tile::stages);
    }
    pieces.next(sizes);
    if (!pieces.any(sizes)) return;
    piece = pieces.get(sizes);
    begin(piece);
  }
}

/// The number of arrays in shared memory that contain one number per channel of a tile: the bias and, for i8, the
/// factor of the sums. For i8 there are two more, factor and bias divided by y_scale, with which almost all results are
/// computed.
template <class T>
inline constexpr int channel_arrays = std::is_same_v<T, std::int8_t> ? 4 : 1;
enum ChannelArray { bias_array, factor_array, quick_factor_array, quick_bias_array };

/// The biases and scales of the channels that a thread loads before the products and stores to shared memory after
/// them.
template <class T, int N>
struct Channels {
  static constexpr int count = (N + 127) / 128;
  float bias[count] = {};
  float scale[count] = {};

  __device__ void load(int first, unsigned in_warpgroup, const Sizes& sizes, const Finish& finish) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int channel = first + i * 128 + static_cast<int>(in_warpgroup);
      const bool there = channel < sizes.channels;
      bias[i] = there ? __ldg(finish.bias + channel) : 0.F;
      if constexpr (std::is_same_v<T, std::int8_t>) scale[i] = there ? __ldg(finish.scale + channel) : 0.F;
    }
  }
  __device__ void store(float* arrays, unsigned in_warpgroup, const Finish& finish) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int at = i * 128 + static_cast<int>(in_warpgroup);
      if (at >= N) break;
      arrays[bias_array * N + at] = bias[i];
      if constexpr (std::is_same_v<T, std::int8_t>) {
        const float factor = finish.epilogue.factor(scale[i]);
        const float quick_factor = factor * finish.inverse_y_scale;
        const float quick_bias = bias[i] * finish.inverse_y_scale;
        const bool safe = finish.inverse_y_scale != 0 && fabsf(quick_factor) < finish.most_factor &&
                          fabsf(quick_bias) < Finish::most_bias;
        arrays[factor_array * N + at] = factor;
        arrays[quick_factor_array * N + at] = quick_factor;
        arrays[quick_bias_array * N + at] = safe ? quick_bias : __int_as_float(0x7FFFFFFF);
      }
    }
  }
};

__device__ inline float bounded(float value, float low, float high) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(value) : "f"(low));
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(value) : "f"(high));
  return value;
}

__device__ inline void load_eight(const float* from, float (&to)[8]) {
  const float4 low = reinterpret_cast<const float4*>(from)[0];
  const float4 high = reinterpret_cast<const float4*>(from)[1];
  to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
  to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
}

/// Returns two adjacent channels in one word, clamped to the bounds of `finish` if finish.bounds is true.
template <class T>
[[nodiscard]] __device__ unsigned pack(float low, float high, const Finish& finish) {
  if constexpr (std::is_same_v<T, __half>) {
    __half2 both = __floats2half2_rn(low, high);
    if (finish.bounds) {
      both = __hmin2_nan(__hmax2_nan(both, __float2half2_rn(finish.low)), __float2half2_rn(finish.high));
    }
    return *reinterpret_cast<const unsigned*>(&both);
  } else {
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    if (finish.bounds) {
      both = __hmin2_nan(__hmax2_nan(both, __float2bfloat162_rn(finish.low)), __float2bfloat162_rn(finish.high));
    }
    return *reinterpret_cast<const unsigned*>(&both);
  }
}

/// Eight adjacent channels of a pixel in their stored type.
template <class T>
using Eight = std::conditional_t<std::is_same_v<T, std::int8_t>, uint2, uint4>;

/// Returns eight channels of a pixel, computed from their sums, in their stored type. `arrays` points to the entries of
/// the first of these channels.
template <class T, int N>
[[nodiscard]] __device__ Eight<T> finish_eight(const Sum<T> (&sums)[8], const float* arrays, const Finish& finish) {
  float values[8];
  if constexpr (std::is_same_v<T, std::int8_t>) {
    float factor[8];
    load_eight(arrays + quick_factor_array * N, factor);
    load_eight(arrays + quick_bias_array * N, values);
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = fmaf(static_cast<float>(sums[i]), factor[i], values[i]);
    if (finish.leaks) {
#pragma unroll
      for (float& value : values) value = value >= 0 ? value : value * finish.epilogue.alpha;
    }
    if (finish.bounds) {
#pragma unroll
      for (float& value : values) value = bounded(value, finish.low, finish.high);
    }
    // Results too close to a tie are computed again as the reference computes them.
    unsigned near_tie = 0;
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      const float rounded = values[i] + kernels::rounder;
      if (!(fabsf(values[i] - (rounded - kernels::rounder)) < Finish::near_tie)) near_tie |= 1U << i;
      values[i] = rounded;
    }
    uint2 result = {kernels::pack_i8(values), kernels::pack_i8(values + 4)};
#pragma unroll 1
    while (near_tie != 0) {
      const int which = __ffs(static_cast<int>(near_tie)) - 1;
      near_tie &= near_tie - 1;
      int sum = sums[0];
#pragma unroll
      for (int i = 1; i < 8; ++i) sum = which == i ? sums[i] : sum;
      const float value = finish.epilogue.apply(static_cast<float>(sum), arrays[factor_array * N + which],
                                                arrays[bias_array * N + which]);
      const auto byte =
          static_cast<unsigned>(static_cast<std::uint8_t>(quantize_device(value, finish.epilogue.y_scale)));
      const int shift = which % 4 * 8;
      const unsigned others = ~(0xFFU << shift);
      if (which < 4) {
        result.x = (result.x & others) | byte << shift;
      } else {
        result.y = (result.y & others) | byte << shift;
      }
    }
    return result;
  } else {
    load_eight(arrays, values);
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] += sums[i];
    if (finish.leaks) {
#pragma unroll
      for (float& value : values) value = value >= 0 ? value : value * finish.epilogue.alpha;
    }
    return uint4{pack<T>(values[0], values[1], finish), pack<T>(values[2], values[3], finish),
                 pack<T>(values[4], values[5], finish), pack<T>(values[6], values[7], finish)};
  }
}

/// Returns the address of `channel`, a multiple of 8, of a pixel of y.
template <class T>
[[nodiscard]] __device__ T* address(T* y, const Sizes& sizes, int pixel, int channel) {
  if constexpr (std::is_same_v<T, std::int8_t>) {
    const int image_pixels = sizes.width * sizes.height;
    const int image = sizes.by_image.quotient(pixel);
    const std::int64_t plane = std::int64_t{image} * sizes.pitch + channel / 32;
    return y + (plane * image_pixels + (pixel - image * image_pixels)) * 32 + channel % 32;
  } else {
    return y + std::int64_t{pixel} * sizes.pitch + channel;
  }
}

/// Returns the number of channels of y, including padding.
template <class T>
[[nodiscard]] __device__ int stored_channels(const Sizes& sizes) {
  return std::is_same_v<T, std::int8_t> ? sizes.pitch * 32 : sizes.pitch;
}

// The sums of a thread are indexed by part, half (8 pixels further), b, g and e. They belong to the columns g * N / 4 +
// b * 8 + lane % 4 * 2 + e. If filters are `permuted`, these columns are the channels b * 32 + lane % 4 * 8 + g * 2 +
// e, so that a thread has eight adjacent channels.

__device__ inline void warpgroup_sync(int warpgroup) {
  if (warpgroup == 0) {
    asm volatile("bar.sync 2, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 3, 128;" ::: "memory");
  }
}

/// Converts the sums of a thread to elements of y and stores them. The tile is not split between blocks.
template <class T, class Tile, int Parts>
__device__ void store_tile(const Sum<T> (&sums)[Parts][Tile::n / 2], T* y, const Sizes& sizes, const Finish& finishing,
                           const float* arrays, int pixel, int channel) {
  const int lane = hopper::lane();
  const int own = lane % 4 * 8;
  T* rows[Parts * 2];
  bool there[Parts * 2];
#pragma unroll
  for (int row = 0; row < Parts * 2; ++row) {
    const int at = pixel + row / 2 * 64 + row % 2 * 8 + lane / 4;
    there[row] = at < sizes.pixels;
    rows[row] = address(y, sizes, at, channel + own);
  }
  const std::int64_t step = std::is_same_v<T, std::int8_t> ? std::int64_t{sizes.width} * sizes.height * 32 : 32;
#pragma unroll
  for (int b = 0; b < Tile::n / 32; ++b) {
    if (channel + b * 32 >= sizes.channels) break;
    const bool any = channel + b * 32 + own < stored_channels<T>(sizes);
#pragma unroll
    for (int row = 0; row < Parts * 2; ++row) {
      Sum<T> eight[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) eight[i] = sums[row / 2][(i / 2 * (Tile::n / 32) + b) * 4 + row % 2 * 2 + i % 2];
      const auto vector = finish_eight<T, Tile::n>(eight, arrays + b * 32 + own, finishing);
      if (there[row] && any) *reinterpret_cast<std::remove_const_t<decltype(vector)>*>(rows[row] + b * step) = vector;
    }
  }
}

/// Returns the offset in bytes, in shared memory, at which a thread stores its partial sums of two adjacent results of
/// a split tile.
template <class Tile>
[[nodiscard]] __device__ int share_offset(int part, int half, int g, int b, int thread) {
  const int slot = ((part * 2 + half) * (Tile::n / 32) + b) * 2 + g / 2;
  return (slot * Tile::warps * 32 + thread) * 16 + g % 2 * 8;
}

/// Adds the partial sums of all blocks of a cluster, always in the same order, and stores the results. Each block does
/// this for a part of the vectors.
template <class T, class Tile, int Blocks>
__device__ void store_shares(T* y, const Sizes& sizes, const Finish& finishing, const char* shares, const float* arrays,
                             int pixel, int channel) {
  constexpr int octets = Tile::n / 8;
  constexpr int own = Tile::m * octets / Blocks;
  const int first = static_cast<int>(hopper::cluster_rank()) * own;
  const std::uint32_t at = hopper::shared_address(shares);
#pragma unroll 1
  for (int item = first + static_cast<int>(threadIdx.x); item < first + own; item += Tile::warps * 32) {
    const int octet = item % octets;
    const int row = item / octets;
    const int thread = row / Tile::rows * 128 + row % 64 / 16 * 32 + row % 8 * 4;
    Sum<T> sums[8] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int g = sizes.permuted ? k : octet / (Tile::n / 32);
      const int b = sizes.permuted ? octet / 4 : octet % (Tile::n / 32);
      const int q = sizes.permuted ? octet % 4 : k;
      const int offset = share_offset<Tile>(row % Tile::rows / 64, row % 16 / 8, g, b, thread + q);
#pragma unroll
      for (unsigned block = 0; block < Blocks; ++block) {
        const float2 two = hopper::load_remote(at + static_cast<unsigned>(offset), block);
        if constexpr (std::is_same_v<T, std::int8_t>) {
          sums[k * 2] += __float_as_int(two.x);
          sums[k * 2 + 1] += __float_as_int(two.y);
        } else {
          sums[k * 2] += two.x;
          sums[k * 2 + 1] += two.y;
        }
      }
    }
    const auto vector = finish_eight<T, Tile::n>(sums, arrays + octet * 8, finishing);
    if (pixel + row < sizes.pixels && channel + octet * 8 < stored_channels<T>(sizes)) {
      *reinterpret_cast<std::remove_const_t<decltype(vector)>*>(address(y, sizes, pixel + row, channel + octet * 8)) =
          vector;
    }
  }
}

}  // namespace detail

/// Computes the tiles of a block (see Pieces). `Pixels` is CUtensorMap or GatheredPixels.
template <class T, class Tile, class Pixels>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    convolve(const __grid_constant__ Pixels pixels, const __grid_constant__ CUtensorMap w_map, T* y,
             const __grid_constant__ Sizes sizes, const __grid_constant__ Finish finishing) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using namespace detail;
  constexpr bool gathered = std::is_same_v<Pixels, GatheredPixels>;
  extern __shared__ __align__(1024) char memory[];
  auto* const all_arrays = reinterpret_cast<float*>(memory + Tile::stages * Tile::stage_bytes);
  float* const barriers = all_arrays + Tile::warpgroups * channel_arrays<T> * Tile::n;
  const std::uint32_t stages_at = hopper::shared_address(memory);
  const std::uint32_t full = hopper::shared_address(barriers);
  const std::uint32_t empty = full + Tile::stages * 8;
  const int warp = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0);

  if (threadIdx.x == 0) {
    unsigned arrivals = 2;
    if constexpr (gathered) {
      arrivals = 1 + Tile::copying_threads;
    } else {
      hopper::prefetch(pixels);
    }
    hopper::prefetch(w_map);
    for (unsigned i = 0; i < Tile::stages; ++i) {
      hopper::barrier_init(full + i * 8, arrivals);
      hopper::barrier_init(empty + i * 8, Tile::warpgroups);
    }
    hopper::barrier_init_fence();
  }
  if (warp >= Tile::warps) {
    if constexpr (Tile::moves_registers) hopper::release_registers<72>();
    if constexpr (gathered) {
      gather_stages<T, Tile>(pixels, w_map, sizes, stages_at, full, empty);
    } else if (warp == Tile::warps) {
      produce_pixels<T, Tile>(pixels, sizes, stages_at, full, empty);
    } else if (warp == Tile::warps + 1) {
      produce_weights<T, Tile>(w_map, sizes, stages_at, full, empty);
    } else {
      __syncthreads();
    }
    return;
  }
  __syncthreads();
  if constexpr (Tile::moves_registers) hopper::take_registers<216>();
  constexpr int parts = Tile::rows / 64;  // the number of products of 64 rows that a warpgroup computes
  const int warpgroup = warp / 4;
  const unsigned in_warpgroup = threadIdx.x % 128;
  float* const arrays = all_arrays + warpgroup * channel_arrays<T> * Tile::n;
  const std::uint64_t descriptor = row_descriptor(sizes.chunk);
  const std::uint64_t weight_descriptor = row_descriptor(sizes.weight_chunk);
  unsigned rows_at[4];  // the offsets of the steps of a stage, in units of 16 bytes
  unsigned cols_at[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int chunk = k * 32 >> sizes.chunk_shift;
    const int weight_chunk = k * 32 >> sizes.weight_chunk_shift;
    rows_at[k] = static_cast<unsigned>((chunk * (Tile::m - 1) + warpgroup * Tile::rows) * sizes.chunk + k * 32) / 16U;
    cols_at[k] =
        static_cast<unsigned>(weight_chunk * (Tile::n - 1) * sizes.weight_chunk + k * 32 + Tile::pixel_bytes) / 16U;
  }
  const unsigned rows_of_part = static_cast<unsigned>(64 * sizes.chunk) / 16U;
  Turn turn;
  for (Pieces<Tile> pieces(sizes); pieces.any(sizes); pieces.next(sizes)) {
    const Piece piece = pieces.get(sizes);
    Channels<T, Tile::n> channels;
    channels.load(piece.channel, in_warpgroup, sizes, finishing);
    const auto release = [&](int stage) {
      if (in_warpgroup == 0) hopper::barrier_arrive(empty + 8U * static_cast<unsigned>(stage));
    };
    Sum<T> sums[parts][Tile::n / 2];
    int used = turn.stage;
    for (int stage = piece.begin; stage < piece.end; ++stage) {
      hopper::barrier_wait(full + 8U * static_cast<unsigned>(turn.stage), turn.phase);
      const unsigned at = (stages_at + static_cast<unsigned>(turn.stage * Tile::stage_bytes)) / 16U;
      if constexpr (gathered) hopper::product_operands_fence();
      hopper::product_fence();
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int part = 0; part < parts; ++part) {
          hopper::product(T{}, sums[part], descriptor + (at + rows_at[k] + static_cast<unsigned>(part) * rows_of_part),
                          weight_descriptor + (at + cols_at[k]), stage > piece.begin || k > 0 ? 1 : 0);
        }
      }
      hopper::product_commit();
      if (stage > piece.begin) {
        hopper::product_wait<1>();
        release(used);
      }
      used = turn.stage;
      turn.next(Tile::stages);
    }
    hopper::product_wait<0>();
    release(used);
    warpgroup_sync(warpgroup);  // The arrays of the last tile have been read.
    channels.store(arrays, in_warpgroup, finishing);
    warpgroup_sync(warpgroup);
    if (!piece.split) {
      store_tile<T, Tile>(sums, y, sizes, finishing, arrays, piece.pixel + warpgroup * Tile::rows + warp % 4 * 16,
                          piece.channel);
      continue;
    }
    asm volatile("bar.sync 1, %0;" ::"n"(Tile::warps * 32) : "memory");  // All warpgroups have read the stages.
    static_assert(Tile::m * Tile::n * 4 <= Tile::stages * Tile::stage_bytes);
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int at = 0; at < Tile::n / 2; at += 2) {
        using Two = std::conditional_t<std::is_same_v<T, std::int8_t>, int2, float2>;
        const int group = at / 4;
        *reinterpret_cast<Two*>(memory + share_offset<Tile>(part, at / 2 % 2, group / (Tile::n / 32),
                                                            group % (Tile::n / 32), static_cast<int>(threadIdx.x))) = {
            sums[part][at], sums[part][at + 1]};
      }
    }
    hopper::cluster_sync();
    const auto store = [&]<int Blocks>(std::integral_constant<int, Blocks>) {
      store_shares<T, Tile, Blocks>(y, sizes, finishing, memory, arrays, piece.pixel, piece.channel);
    };
    switch (sizes.cluster) {
      case 1: store(std::integral_constant<int, 1>{}); break;
      case 2: store(std::integral_constant<int, 2>{}); break;
      case 4: store(std::integral_constant<int, 4>{}); break;
      default: store(std::integral_constant<int, 8>{});
    }
    hopper::cluster_sync();  // No block may end while another block reads its shares.
  }
#endif
}

}  // namespace graft::ops::wgmma
