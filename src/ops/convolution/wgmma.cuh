// Convolution on Hopper's tensor cores: an implicit matrix product of pixels and weights.
//
// A block makes a tile of output pixels x output channels. Two warps copy the pixels that the window's taps see, and
// the weights, by TMA into a ring of stages; one or two warpgroups multiply what has arrived. A stage is 128 bytes of
// depth: one chunk of 128 bytes of channels of one tap, or where there are fewer channels two chunks of 64 or four of
// 32, each of a tap of its own.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/vector.cuh"
#include "ops/convolution/hopper.cuh"
#include "ops/convolution/plan.hpp"

namespace graft::wgmma {

/// What happens to sums on their way to memory.
struct Finish {
  ConvolutionEpilogue epilogue;
  const float* bias = nullptr;   ///< Per output channel.
  const float* scale = nullptr;  ///< Per output channel; i8.
  float inverse_y_scale = 0;     ///< i8: of a step that is neither huge nor tiny, otherwise 0.
};

[[nodiscard]] inline float safe_inverse(float step) { return step > 0x1p-80F && step < 0x1p80F ? 1 / step : 0; }

struct Sizes {
  int pixels = 0;             ///< Of the output, all images.
  int channels = 0;           ///< Of the output.
  int pitch = 0;              ///< Elements from pixel to pixel (hwc8), or planes of 32 channels (chw32).
  int width = 0, height = 0;  ///< Of the output.
  int stride_w = 1, stride_h = 1, pad_w = 0, pad_h = 0, dilation_w = 1, dilation_h = 1;
  int taps_w = 1, taps = 1;
  int chunk = 128;  ///< Bytes: 128, 64 or 32.
  int weight_chunk =
      128;  ///< Bytes of weights that lie beside each other and are copied at once; a multiple of `chunk`.
  int chunks_of_tap = 1;  ///< Chunks in a pixel's channels.
  int stages = 1;         ///< Stages of depth that make a sum.
  bool flat = false;      ///< Output pixels are input pixels: x is copied as a matrix.
  int tiles_n = 1;
  // Blocks take whole tiles first, equally many if split ones follow. What is left then, too little to give each block
  // a tile, clusters of blocks take as tiles whose depth is split between their blocks.
  int whole_tiles = 0;
  int split_tiles = 0;  ///< At most one for each cluster.
  int cluster = 1;
};

/// The shape of a block's work.
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
  static constexpr int staging_bytes = 2048;     // of a warp
  static constexpr int warpgroups = Warpgroups;  // that multiply; two warps more copy
  static constexpr int warps = Warpgroups * 4;
  static constexpr int rows = M / Warpgroups;  // of a warpgroup
  // Large tiles need more registers than an even share: there the warps that copy are of a warpgroup which gives its
  // registers to the others.
  static constexpr bool moves_registers = BlocksPerMultiprocessor == 1;
  static constexpr int threads = warps * 32 + (moves_registers ? 128 : 64);
  static constexpr int shared_bytes = Stages * (stage_bytes + 16) + warps * staging_bytes;
  static constexpr int most_split = N == 64 ? 8 : 2;
};

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, std::int8_t>, int, float>;

namespace detail {

/// Where a ring of stages stands.
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

/// The descriptor of rows in shared memory, less their address: swizzled rows of `chunk` bytes, 8 of them behind each
/// other.
[[nodiscard]] __device__ inline std::uint64_t row_descriptor(int chunk) {
  const std::uint64_t swizzle = chunk == 128 ? 1 : chunk == 64 ? 2 : 3;
  return swizzle << 62U | static_cast<std::uint64_t>(chunk * 8 / 16) << 32U | std::uint64_t{1} << 16U;
}

/// A tile that a block takes, or its share of one.
struct Piece {
  int pixel, channel;  // where the tile begins
  int begin, end;      // stages of depth
  bool split;
};

/// A block's pieces, one after the other.
template <class Tile>
class Pieces {
 public:
  __device__ explicit Pieces(const Sizes& sizes) : tile_(static_cast<int>(blockIdx.x)) {
    if (tile_ >= sizes.whole_tiles) to_split(sizes);
  }
  [[nodiscard]] __device__ bool any(const Sizes& sizes) const { return tile_ < sizes.whole_tiles + sizes.split_tiles; }
  [[nodiscard]] __device__ Piece get(const Sizes& sizes) const {
    const int row = tile_ / sizes.tiles_n;
    const bool split = tile_ >= sizes.whole_tiles;
    const int rank = split ? static_cast<int>(blockIdx.x) % sizes.cluster : 0;
    const int shares = split ? sizes.cluster : 1;
    return {row * Tile::m, (tile_ - row * sizes.tiles_n) * Tile::n, sizes.stages * rank / shares,
            sizes.stages * (rank + 1) / shares, split};
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
    tile_ = sizes.whole_tiles + static_cast<int>(blockIdx.x) / sizes.cluster;
  }
  int tile_;
};

/// Chunks in their order: all of a tap's, then the next tap's.
struct Walk {
  int part, tap, r, s;
  __device__ Walk(int chunk, int chunks_of_tap, int taps_w) {
    tap = chunk / chunks_of_tap;
    part = chunk - tap * chunks_of_tap;
    r = tap / taps_w;
    s = tap - r * taps_w;
  }
  __device__ void next(int chunks_of_tap, int taps_w) {
    if (++part < chunks_of_tap) return;
    part = 0;
    ++tap;
    if (++s < taps_w) return;
    s = 0;
    ++r;
  }
};

/// Fills stages, as soon as they are free: `begin(piece)`, then `copy(stage, arrived)` for each of its stages. One
/// thread copies pixels and one of another warp weights: the time that a thread takes to give orders is what small
/// tiles wait for.
template <class Tile, unsigned Bytes, class Begin, class Copy>
__device__ void produce(const Sizes& sizes, std::uint32_t stages, std::uint32_t full, std::uint32_t empty,
                        const Begin& begin, const Copy& copy) {
  Turn turn;
  for (Pieces<Tile> pieces(sizes); pieces.any(sizes); pieces.next(sizes)) {
    const Piece piece = pieces.get(sizes);
    begin(piece);
    for (int stage = piece.begin; stage < piece.end; ++stage) {
      const std::uint32_t arrived = full + 8U * static_cast<unsigned>(turn.stage);
      hopper::barrier_wait(empty + 8U * static_cast<unsigned>(turn.stage), turn.phase ^ 1U);
      hopper::barrier_expect(arrived, Bytes);
      copy(stages + static_cast<std::uint32_t>(turn.stage * Tile::stage_bytes), arrived);
      turn.next(Tile::stages);
    }
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
  Walk walk(0, sizes.chunks_of_tap, sizes.taps_w);
  const auto begin = [&](const Piece& piece) {
    pixel = piece.pixel;
    const int row = pixel / sizes.width;
    w = (pixel - row * sizes.width) * sizes.stride_w - sizes.pad_w;
    image = row / sizes.height;
    h = (row - image * sizes.height) * sizes.stride_h - sizes.pad_h;
    walk = Walk(piece.begin * chunks, sizes.chunks_of_tap, sizes.taps_w);
  };
  produce<Tile, Tile::pixel_bytes>(sizes, stages, full, empty, begin, [&](std::uint32_t to, std::uint32_t arrived) {
#pragma unroll(planes ? 4 : 1)
    for (int i = 0; i < chunks; ++i) {
      // Past the last tap, what lies beyond the last channel is copied, which is zeros.
      const bool real = walk.tap < sizes.taps;
      const int at = real ? walk.part : sizes.chunks_of_tap;
      const int x = real ? walk.s * sizes.dilation_w : 0;
      const int y = real ? walk.r * sizes.dilation_h : 0;
      if constexpr (planes) {
        hopper::copy_pixels(map, to, arrived, 0, w, h, image, at, x, y);
      } else if (sizes.flat) {
        hopper::copy_box(map, to, arrived, at * (chunk / 2), 0, 0, pixel);
      } else {
        hopper::copy_pixels(map, to, arrived, at * (chunk / 2), w, h, image, x, y);
      }
      to += static_cast<unsigned>(Tile::m * chunk);
      walk.next(sizes.chunks_of_tap, sizes.taps_w);
    }
  });
}

template <class T, class Tile>
__device__ void produce_weights(const CUtensorMap& map, const Sizes& sizes, std::uint32_t stages, std::uint32_t full,
                                std::uint32_t empty) {
  // i8 as it comes has planes of 32 channels, one of which is a chunk.
  const bool planes = std::is_same_v<T, std::int8_t> && sizes.weight_chunk == sizes.chunk;
  const int chunk = sizes.weight_chunk;
  const int chunks = Tile::depth / chunk;
  const int chunks_of_tap = sizes.chunks_of_tap * sizes.chunk / chunk;
  int channel = 0;
  Walk walk(0, chunks_of_tap, sizes.taps_w);
  const auto begin = [&](const Piece& piece) {
    channel = piece.channel;
    walk = Walk(piece.begin * chunks, chunks_of_tap, sizes.taps_w);
  };
  produce<Tile, Tile::weight_bytes>(sizes, stages + Tile::pixel_bytes, full, empty, begin,
                                    [&](std::uint32_t to, std::uint32_t arrived) {
#pragma unroll 1
                                      for (int i = 0; i < chunks; ++i) {
                                        // Past the last tap there are zeros.
                                        hopper::copy_box(map, to, arrived, planes ? 0 : walk.part * (chunk / 2),
                                                         walk.tap, planes ? walk.part : 0, channel);
                                        to += static_cast<unsigned>(Tile::n * chunk);
                                        walk.next(chunks_of_tap, sizes.taps_w);
                                      }
                                    });
}

/// The factor and the bias of a channel. Past the last channel the last one's: what is made there is not stored.
template <class T>
struct Channel {
  float factor = 1;
  float bias = 0;
  [[nodiscard]] __device__ static Channel load(int channel, const Sizes& sizes, const Finish& finish) {
    const auto index = static_cast<unsigned>(::min(channel, sizes.channels - 1));
    Channel result;
    result.bias = __ldg(finish.bias + index);
    if constexpr (std::is_same_v<T, std::int8_t>) result.factor = finish.epilogue.factor(__ldg(finish.scale + index));
    return result;
  }
  /// Of another lane of the warp.
  [[nodiscard]] __device__ Channel of_lane(int lane) const {
    Channel result;
    result.bias = __shfl_sync(0xFFFFFFFFU, bias, lane);
    if constexpr (std::is_same_v<T, std::int8_t>) result.factor = __shfl_sync(0xFFFFFFFFU, factor, lane);
    return result;
  }
};

template <Activation A, int N>
__device__ void activate_all(float (&values)[N], const ConvolutionEpilogue& epilogue) {
  ConvolutionEpilogue known = epilogue;
  known.activation = A;
#pragma unroll
  for (float& value : values) value = known.activate(value);
}

/// Sums to what is stored; i8 in steps that are yet to be rounded.
template <class T, int N>
__device__ void finish(float (&values)[N], const Finish& finishing) {
  switch (finishing.epilogue.activation) {
    case Activation::none: break;
    case Activation::relu: activate_all<Activation::relu>(values, finishing.epilogue); break;
    case Activation::relu6: activate_all<Activation::relu6>(values, finishing.epilogue); break;
    case Activation::leaky_relu: activate_all<Activation::leaky_relu>(values, finishing.epilogue); break;
  }
  if constexpr (std::is_same_v<T, std::int8_t>) {
    const float step = finishing.epilogue.y_scale;
    const float inverse = finishing.inverse_y_scale;
    if (inverse == 0) {
#pragma unroll
      for (float& value : values) value = static_cast<float>(quantize_device(value, step));
    } else {
      // The quotient, rounded as division rounds it, in less than half of its instructions: two steps of Newton's with
      // exact remainders (Markstein 1990).
      const float most = 256 * step;
#pragma unroll
      for (float& value : values) {
        const float dividend = fminf(fmaxf(value != value ? 0.F : value, -most), most);
        float quotient = dividend * inverse;
        quotient = fmaf(fmaf(-quotient, step, dividend), inverse, quotient);
        value = fmaf(fmaf(-quotient, step, dividend), inverse, quotient);
      }
    }
  }
}

/// Two neighbours; i8 in the lower half of the word.
template <class T>
[[nodiscard]] __device__ unsigned pack(float low, float high) {
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
  } else {
    unsigned both;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(both) : "r"(__float2int_rn(high)), "r"(__float2int_rn(low)));
    return both;
  }
}

/// Stores 16 bytes of a pixel's channels from `channel` on, if they are there. Those that only pad are 0.
template <class T>
__device__ void store_vector(T* y, const Sizes& sizes, int pixel, int channel, uint4 raw) {
  constexpr bool planes = std::is_same_v<T, std::int8_t>;
  if (pixel >= sizes.pixels || channel >= (planes ? sizes.pitch * 32 : sizes.pitch)) return;
  std::int64_t at = std::int64_t{pixel} * sizes.pitch + channel;
  if constexpr (planes) {
    const int image_pixels = sizes.width * sizes.height;
    const int image = pixel / image_pixels;
    const std::int64_t plane = std::int64_t{image} * sizes.pitch + channel / 32;
    at = (plane * image_pixels + (pixel - image * image_pixels)) * 32 + channel % 32;
  }
  Vector<T, widest<T>> vector{raw};
  if (channel + widest < T >> sizes.channels) vector = vector.first(::max(sizes.channels - channel, 0));
  vector.store(y + at);
}

/// Sums of a warp, 16 pixels x `Groups` groups of 8 channels, through the warp's own shared memory to coalesced stores.
/// Of a group a thread has 2 neighbours of a pixel and 2 of the pixel 8 further; `channel_of(group, i)` gives the
/// Channel of neighbour i.
template <class T, int Groups, class ChannelOf>
__device__ void store_groups(const Sum<T>* sums, T* y, const Sizes& sizes, const Finish& finishing, char* staging,
                             int pixel, int channel, const ChannelOf& channel_of) {
  constexpr bool swizzled = sizeof(T) == 2 && Groups == 8;
  constexpr int step = Groups == 1 ? 1 : 2;
  constexpr int row_bytes = Groups * 8 * static_cast<int>(sizeof(T));
  const int lane = hopper::lane();
  __syncwarp();  // what was here before has been read
#pragma unroll
  for (int g = 0; g < Groups; g += step) {
    float values[step * 4];
#pragma unroll
    for (int i = 0; i < step * 2; ++i) {
      const Channel<T> of = channel_of(g + i / 2, i % 2);
      const Sum<T>* sum = sums + (g + i / 2) * 4 + i % 2;
      values[i / 2 * 4 + i % 2] = fmaf(static_cast<float>(sum[0]), of.factor, of.bias);
      values[i / 2 * 4 + i % 2 + 2] = fmaf(static_cast<float>(sum[2]), of.factor, of.bias);
    }
    finish<T>(values, finishing);
    if constexpr (swizzled) {
      // Units of 16 bytes change places so that 8 rows of a unit lie in different banks.
      const int row = lane % 16;
      const int unit = (g + lane / 16) ^ (row % 8);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       hopper::shared_address(staging) + static_cast<unsigned>(row * row_bytes + unit * 16)),
                   "r"(pack<T>(values[0], values[1])), "r"(pack<T>(values[2], values[3])),
                   "r"(pack<T>(values[4], values[5])), "r"(pack<T>(values[6], values[7]))
                   : "memory");
    } else {
      using Pair = std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint16_t>;
#pragma unroll
      for (int i = 0; i < step * 2; ++i) {
        *reinterpret_cast<Pair*>(staging + (lane / 4 + i % 2 * 8) * row_bytes +
                                 ((g + i / 2) * 8 + lane % 4 * 2) * static_cast<int>(sizeof(T))) =
            static_cast<Pair>(pack<T>(values[i * 2], values[i * 2 + 1]));
      }
    }
  }
  __syncwarp();
  constexpr int units = row_bytes / 16;  // of a row
#pragma unroll
  for (int i = 0; i < 16 * units; i += 32) {
    const int at = i + lane;
    // Consecutive lanes take what lies beside each other: units of a pixel, or for i8 pixels of a plane's halves.
    const bool planes = std::is_same_v<T, std::int8_t> && units > 1;
    const int row = planes ? at / 2 % 16 : at / units;
    const int unit = planes ? at / 32 * 2 + at % 2 : at % units;
    if (16 * units < 32 && row >= 16) break;
    store_vector(
        y, sizes, pixel + row, channel + unit * widest<T>,
        *reinterpret_cast<const uint4*>(staging + row * row_bytes + (swizzled ? unit ^ (row % 8) : unit) * 16));
  }
}

/// A warpgroup's sums in the memory that its block's cluster reads: those of a group of 8 channels behind each other,
/// thread by thread.
template <class T>
[[nodiscard]] __device__ int share_offset(int group, unsigned thread) {
  return (group * 128 + static_cast<int>(thread)) * 16;
}

/// Each block of a cluster adds the shares of some channels, always in the same order, and stores them.
template <class T, class Tile, int Groups, int Blocks>
__device__ void store_shares(T* y, const Sizes& sizes, const Finish& finishing, const char* shares, char* staging,
                             int pixel, int channel, int group_of_part, unsigned in_warpgroup) {
  constexpr int own = Tile::n / 8 / Blocks;  // groups of 8 channels
  static_assert(own % Groups == 0);
  const int first = static_cast<int>(hopper::cluster_rank()) * own;
  const std::uint32_t at = hopper::shared_address(shares);
#pragma unroll 1
  for (int done = 0; done < own; done += Groups) {
    Sum<T> sums[Groups * 4] = {};
#pragma unroll
    for (unsigned block = 0; block < Blocks; ++block) {
#pragma unroll
      for (int g = 0; g < Groups; ++g) {
        const int offset = share_offset<T>(group_of_part + first + done + g, in_warpgroup);
        const float4 four = hopper::load_remote(at + static_cast<unsigned>(offset), block);
        const float parts[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if constexpr (std::is_same_v<T, std::int8_t>) {
            sums[g * 4 + k] += __float_as_int(parts[k]);
          } else {
            sums[g * 4 + k] += parts[k];
          }
        }
      }
    }
    const int base = channel + (first + done) * 8;
    const int lane = hopper::lane();
    store_groups<T, Groups>(sums, y, sizes, finishing, staging, pixel, base, [&](int g, int i) {
      return Channel<T>::load(base + g * 8 + lane % 4 * 2 + i, sizes, finishing);
    });
  }
}

}  // namespace detail

template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    convolve(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map, T* y,
             const __grid_constant__ Sizes sizes, const __grid_constant__ Finish finishing) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using namespace detail;
  extern __shared__ __align__(1024) char memory[];
  char* const barriers = memory + Tile::stages * Tile::stage_bytes + Tile::warps * Tile::staging_bytes;
  const std::uint32_t stages_at = hopper::shared_address(memory);
  const std::uint32_t full = hopper::shared_address(barriers);
  const std::uint32_t empty = full + Tile::stages * 8;
  const int warp = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0);

  if (threadIdx.x == 0) {
    hopper::prefetch(x_map);
    hopper::prefetch(w_map);
    for (unsigned i = 0; i < Tile::stages; ++i) {
      hopper::barrier_init(full + i * 8, 2);
      hopper::barrier_init(empty + i * 8, Tile::warpgroups);
    }
    hopper::barrier_init_fence();
  }
  __syncthreads();

  if (warp >= Tile::warps) {
    if constexpr (Tile::moves_registers) hopper::release_registers<72>();
    if (threadIdx.x == Tile::warps * 32) produce_pixels<T, Tile>(x_map, sizes, stages_at, full, empty);
    if (threadIdx.x == Tile::warps * 32 + 32) produce_weights<T, Tile>(w_map, sizes, stages_at, full, empty);
    return;
  }
  if constexpr (Tile::moves_registers) hopper::take_registers<216>();
  constexpr int parts = Tile::rows / 64;  // products of 64 rows that a warpgroup makes
  constexpr int groups = Tile::n / 8;     // of 8 channels
  const int warpgroup = warp / 4;
  const unsigned in_warpgroup = threadIdx.x % 128;
  char* const staging = memory + Tile::stages * Tile::stage_bytes + warp * Tile::staging_bytes;
  const std::uint64_t descriptor = row_descriptor(sizes.chunk);
  const std::uint64_t weight_descriptor = row_descriptor(sizes.weight_chunk);
  unsigned rows_at[4];  // of the steps of a stage, in units of 16 bytes
  unsigned cols_at[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int chunk = k * 32 / sizes.chunk;
    const int weight_chunk = k * 32 / sizes.weight_chunk;
    rows_at[k] = static_cast<unsigned>((chunk * (Tile::m - 1) + warpgroup * Tile::rows) * sizes.chunk + k * 32) / 16U;
    cols_at[k] =
        static_cast<unsigned>(weight_chunk * (Tile::n - 1) * sizes.weight_chunk + k * 32 + Tile::pixel_bytes) / 16U;
  }
  const unsigned rows_of_part = static_cast<unsigned>(64 * sizes.chunk) / 16U;
  Turn turn;
  for (Pieces<Tile> pieces(sizes); pieces.any(sizes); pieces.next(sizes)) {
    const Piece piece = pieces.get(sizes);
    // Asked for before they are needed: of every 32 channels a lane has one.
    Channel<T> channels[Tile::n / 32];
    if (!piece.split) {
#pragma unroll
      for (int i = 0; i < Tile::n / 32; ++i) {
        channels[i] = Channel<T>::load(piece.channel + i * 32 + hopper::lane(), sizes, finishing);
      }
    }
    const auto release = [&](int stage) {
      if (in_warpgroup == 0) hopper::barrier_arrive(empty + 8U * static_cast<unsigned>(stage));
    };
    Sum<T> sums[parts][groups * 4];
    int used = turn.stage;
    for (int stage = piece.begin; stage < piece.end; ++stage) {
      hopper::barrier_wait(full + 8U * static_cast<unsigned>(turn.stage), turn.phase);
      const unsigned at = (stages_at + static_cast<unsigned>(turn.stage * Tile::stage_bytes)) / 16U;
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
    const int pixel = piece.pixel + warpgroup * Tile::rows + warp % 4 * 16;
    if (!piece.split) {
#pragma unroll
      for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int first = 0; first < groups; first += 8) {
          if (piece.channel + first * 8 >= sizes.channels) break;
          store_groups<T, 8>(
              sums[part] + first * 4, y, sizes, finishing, staging, pixel + part * 64, piece.channel + first * 8,
              [&](int g, int i) { return channels[(first + g) / 4].of_lane(g % 4 * 8 + hopper::lane() % 4 * 2 + i); });
        }
      }
      continue;
    }
    asm volatile("bar.sync 1, %0;" ::"n"(Tile::warps * 32) : "memory");  // all warpgroups have used up the stages
    static_assert(Tile::m * Tile::n * 4 <= Tile::stages * Tile::stage_bytes);
#pragma unroll
    for (int part = 0; part < parts; ++part) {
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        using Four = std::conditional_t<std::is_same_v<T, std::int8_t>, int4, float4>;
        const Sum<T>* sum = sums[part] + g * 4;
        *reinterpret_cast<Four*>(memory + share_offset<T>((warpgroup * parts + part) * groups + g, in_warpgroup)) = {
            sum[0], sum[1], sum[2], sum[3]};
      }
    }
    hopper::cluster_sync();
    for (int part = 0; part < parts; ++part) {
      const auto store = [&]<int Groups, int Blocks>(std::integral_constant<int, Groups>,
                                                     std::integral_constant<int, Blocks>) {
        store_shares<T, Tile, Groups, Blocks>(y, sizes, finishing, memory, staging, pixel + part * 64, piece.channel,
                                              (warpgroup * parts + part) * groups, in_warpgroup);
      };
      if (Tile::n > 64 || sizes.cluster == 2) {
        store(std::integral_constant<int, 4>{}, std::integral_constant<int, 2>{});
      } else if constexpr (Tile::n == 64) {
        if (sizes.cluster == 4) {
          store(std::integral_constant<int, 2>{}, std::integral_constant<int, 4>{});
        } else if constexpr (sizeof(T) == 2) {
          store(std::integral_constant<int, 1>{}, std::integral_constant<int, 8>{});
        }
      }
    }
    hopper::cluster_sync();  // no block ends while another one reads its shares
  }
#endif
}

}  // namespace graft::wgmma
