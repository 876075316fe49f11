// Kernels that copy linear tensors to and from layouts in which the channels of a pixel are contiguous.
#include <cstdint>
#include <type_traits>

#include "kernels/launch.cuh"
#include "kernels/mma.cuh"
#include "ops/convolution/repack.hpp"

namespace graft::ops {
namespace {

constexpr int repack_threads = 256;
constexpr int lanes_of_channels = 8;  // lanes of a warp along the channels; the lanes also cover adjacent pixels
constexpr int pixel_groups = repack_threads / lanes_of_channels;

/// A value of 1 to 16 bytes that one instruction loads or stores.
template <int Bytes>
struct Raw {
  static constexpr int words = Bytes < 4 ? 1 : Bytes / 4;
  unsigned word[words];

  __device__ void load(const void* address) {
    if constexpr (Bytes == 16) {
      *reinterpret_cast<uint4*>(word) = *static_cast<const uint4*>(address);
    } else if constexpr (Bytes == 8) {
      *reinterpret_cast<uint2*>(word) = *static_cast<const uint2*>(address);
    } else if constexpr (Bytes == 4) {
      word[0] = *static_cast<const unsigned*>(address);
    } else if constexpr (Bytes == 2) {
      word[0] = *static_cast<const std::uint16_t*>(address);
    } else {
      word[0] = *static_cast<const std::uint8_t*>(address);
    }
  }
  __device__ void store(void* address) const {
    if constexpr (Bytes == 16) {
      *static_cast<uint4*>(address) = make_uint4(word[0], word[1], word[2], word[3]);
    } else if constexpr (Bytes == 8) {
      *static_cast<uint2*>(address) = make_uint2(word[0], word[1]);
    } else if constexpr (Bytes == 4) {
      *static_cast<unsigned*>(address) = word[0];
    } else if constexpr (Bytes == 2) {
      *static_cast<std::uint16_t*>(address) = static_cast<std::uint16_t>(word[0]);
    } else {
      *static_cast<std::uint8_t*>(address) = static_cast<std::uint8_t>(word[0]);
    }
  }
};

/// Sets `result` to element `column` of each row. f32 is rounded to TF32.
template <int Size, int Rows, class Row, class Result>
__device__ void gather(const Row (&rows)[Rows], int column, Result& result) {
  constexpr int per_word = 4 / Size;
  const int word = column / per_word;
  const auto at = static_cast<unsigned>(column % per_word);
#pragma unroll
  for (int i = 0; i < (Rows + per_word - 1) / per_word; ++i) {
    if constexpr (Size == 4) {
      result.word[i] = to_tf32(__uint_as_float(rows[i].word[word]));
    } else if constexpr (Size == 2) {
      result.word[i] =
          __byte_perm(rows[2 * i].word[word], Rows > 1 ? rows[2 * i + 1].word[word] : 0U, at == 0 ? 0x5410U : 0x7632U);
    } else {
      const auto row = [&](int j) { return 4 * i + j < Rows ? rows[(4 * i + j) % Rows].word[word] : 0U; };
      const unsigned pick = 0x40U + at * 0x11U;
      const unsigned low = __byte_perm(row(0), row(1), pick);
      const unsigned high = __byte_perm(row(2), row(3), pick);
      result.word[i] = __byte_perm(low, high, 0x5410U);
    }
  }
}

/// Copies the pixels of one thread: V pixels with 16 bytes of channels each (i8: 4 bytes). If Back is true, copies from
/// the vector layout to the linear layout.
template <int Size, int V, bool Back>
__device__ void repack_piece(const RepackJob& job, std::int64_t image, int first_channel, int first_pixel) {
  using Element = std::conditional_t<Size == 4, unsigned, std::conditional_t<Size == 2, std::uint16_t, std::uint8_t>>;
  constexpr int channels = Size == 2 ? 8 : 4;
  using Row = Raw<V * Size>;            // one channel of V pixels
  using Column = Raw<channels * Size>;  // the channels of one pixel that a thread copies
  const std::int64_t linear = (image * job.channels + first_channel) * job.pixels + first_pixel;
  const int plane = Size == 1 ? first_channel / 32 : 0;
  const std::int64_t vectors = image * job.image_stride + plane * job.plane_stride +
                               std::int64_t{first_pixel} * job.pixel_stride +
                               (Size == 1 ? first_channel % 32 : first_channel);
  if constexpr (Back) {
    Column columns[V];
#pragma unroll
    for (int i = 0; i < V; ++i) {
      columns[i].load(static_cast<const Element*>(job.from) + vectors +
                      static_cast<std::int64_t>(i) * job.pixel_stride);
    }
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      if (first_channel + c >= job.channels) break;
      Row row;
      gather<Size, V>(columns, c, row);
      row.store(static_cast<Element*>(job.to) + linear + static_cast<std::int64_t>(c) * job.pixels);
    }
  } else {
    Row rows[channels] = {};
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      if (first_channel + c >= job.channels) break;
      rows[c].load(static_cast<const Element*>(job.from) + linear + static_cast<std::int64_t>(c) * job.pixels);
    }
#pragma unroll
    for (int i = 0; i < V; ++i) {
      Column column;
      gather<Size, channels>(rows, i, column);
      column.store(static_cast<Element*>(job.to) + vectors + static_cast<std::int64_t>(i) * job.pixel_stride);
    }
  }
}

/// Runs two copy jobs in one launch. A warp covers adjacent channels and adjacent pixels, so that all its loads and
/// stores fill sectors.
template <int Size, bool Back>
__global__ void __launch_bounds__(repack_threads) repack(const RepackJob first, const RepackJob second) {
  const bool is_first = static_cast<std::int64_t>(blockIdx.x) < first.blocks;
  const RepackJob job = is_first ? first : second;
  const auto block = static_cast<unsigned>(blockIdx.x - (is_first ? 0 : first.blocks));
  const unsigned image_and_tile = block / static_cast<unsigned>(job.pixel_tiles);
  const auto pixel_tile = static_cast<int>(block - image_and_tile * static_cast<unsigned>(job.pixel_tiles));
  const std::int64_t image = image_and_tile / static_cast<unsigned>(job.channel_tiles);
  const auto channel_tile = static_cast<int>(image_and_tile % static_cast<unsigned>(job.channel_tiles));
  constexpr int channels = Size == 2 ? 8 : 4;
  const int thread = static_cast<int>(threadIdx.x);
  const int channel = (channel_tile * lanes_of_channels + thread % lanes_of_channels) * channels;
  const int pixel = (pixel_tile * pixel_groups + thread / lanes_of_channels) * job.vector;
  if (channel >= job.stored_channels || pixel >= job.pixels) return;
  switch (job.vector) {
    case 16:
      if constexpr (Size == 1) repack_piece<Size, 16, Back>(job, image, channel, pixel);
      break;
    case 8:
      if constexpr (Size < 4) repack_piece<Size, 8, Back>(job, image, channel, pixel);
      break;
    case 4: repack_piece<Size, 4, Back>(job, image, channel, pixel); break;
    case 2: repack_piece<Size, 2, Back>(job, image, channel, pixel); break;
    default: repack_piece<Size, 1, Back>(job, image, channel, pixel); break;
  }
}

}  // namespace

RepackJob RepackJob::of(DType dtype, const Extents& extents, const void* linear) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  std::int64_t pixels = 1;
  for (int i = 2; i < extents.rank(); ++i) pixels *= extents[i];
  const std::int64_t unit = dtype == DType::i8 ? 32 : 16 / size;
  const std::int64_t stored = ceil_divide(extents[1], unit) * unit;
  RepackJob job;
  job.pixel_stride = static_cast<int>(dtype == DType::i8 ? unit : stored);
  job.plane_stride = dtype == DType::i8 ? unit * pixels : 0;
  job.image_stride = stored * pixels;
  job.channels = static_cast<int>(extents[1]);
  job.stored_channels = static_cast<int>(stored);
  job.pixels = static_cast<int>(pixels);
  job.vector = static_cast<int>(16 / size);
  while (job.vector > 1 &&
         (pixels % job.vector != 0 || !is_aligned(linear, static_cast<std::size_t>(job.vector * size)))) {
    job.vector /= 2;
  }
  const std::int64_t channels = dtype == DType::i8 ? 4 : 16 / size;
  job.pixel_tiles = static_cast<int>(ceil_divide(pixels, job.vector * pixel_groups));
  job.channel_tiles = static_cast<int>(ceil_divide(stored, channels * lanes_of_channels));
  job.blocks = extents[0] * job.pixel_tiles * job.channel_tiles;
  return job;
}

Repacked Repacked::of(const ConvolutionPlan& plan, const Problem& problem, const Buffers& buffers) {
  const DType dtype = problem.inputs[Convolution::x].dtype;
  auto* const workspace = static_cast<char*>(buffers.workspace);
  const auto job = [&](std::size_t port, char* to) {
    RepackJob result = RepackJob::of(dtype, problem.inputs[port].extents, buffers.inputs[port]);
    result.from = buffers.inputs[port];
    result.to = to;
    return result;
  };
  return {.dtype = dtype,
          .x = job(Convolution::x, workspace),
          .weight = job(Convolution::weight, workspace + RepackedSizes::of(plan, dtype).x_bytes)};
}

Status Repacked::run(const CudaContext& context) const { return run_repack(dtype, false, x, weight, context); }

Status run_repack(DType dtype, bool back, const RepackJob& first, const RepackJob& second, const CudaContext& context) {
  const Grid grid{first.blocks + second.blocks, repack_threads};
  const auto run = [&](auto kernel) { return launch("Convolution repack", kernel, grid, context, first, second); };
  if (dtype == DType::f32) return run(repack<4, false>);
  if (dtype == DType::i8) return back ? run(repack<1, true>) : run(repack<1, false>);
  return back ? run(repack<2, true>) : run(repack<2, false>);
}

}  // namespace graft::ops
