// Tensor maps of a convolution and the launch of wgmma.cuh's kernel.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "kernels/launch.cuh"
#include "ops/convolution/wgmma.cuh"

namespace graft::wgmma {

/// How a convolution is cut up.
struct Cut {
  int tile = 0;         ///< Of Tiles.
  int cluster = 1;      ///< Blocks that share a tile of those that are left over.
  bool repack = false;  ///< i8: bring the weights into rows of channels first.
};

/// chw32 weights (row, plane, tap, 32) as rows (row, tap, plane, 32), 16 bytes a thread.
inline __global__ void __launch_bounds__(256)
    repack(const uint4* from, uint4* to, std::int64_t count, unsigned planes, unsigned taps) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= count) return;
  const std::int64_t pair = i / 2;
  const std::int64_t tap_of_row = pair / planes;
  const std::int64_t row = tap_of_row / taps;
  const std::int64_t plane = pair - tap_of_row * planes;
  const std::int64_t tap = tap_of_row - row * taps;
  to[i] = from[((row * planes + plane) * taps + tap) * 2 + i % 2];
}

/// Whether a copy can bring more than one plane of repacked weights.
template <class T>
[[nodiscard]] bool may_repack(const ConvolutionPlan& plan) {
  return std::is_same_v<T, std::int8_t> && ceil_divide(plan.channels, 32) % 2 == 0;
}

/// Where the window's first tap stands for the last output, from the end of the image.
[[nodiscard]] inline std::int64_t last_corner(const ConvolutionAxis& axis) {
  return (axis.out - 1) * axis.stride - axis.pad + 1 - axis.in;
}

namespace detail {

struct Encoders {
  decltype(&cuTensorMapEncodeTiled) tiled = nullptr;
  decltype(&cuTensorMapEncodeIm2col) im2col = nullptr;
};

/// The driver's functions, without linking the driver.
[[nodiscard]] inline Status encoders(Encoders& result) {
  constexpr unsigned since = 12000;
  const auto find = [](const char* name, auto& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult outcome{};
    Status status =
        cuda_status(cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &outcome), name);
    if (!status.ok()) return status;
    if (found == nullptr || outcome != cudaDriverEntryPointSuccess) {
      return unsupported(std::string("the driver has no ") + name);
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    return Status{};
  };
  static Encoders known;
  static const Status status = [&] {
    if (Status found = find("cuTensorMapEncodeTiled", known.tiled); !found.ok()) return found;
    return find("cuTensorMapEncodeIm2col", known.im2col);
  }();
  result = known;
  return status;
}

[[nodiscard]] inline Status encoded(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return {};
  return {StatusCode::cuda_error, std::string(what) + ": error " + std::to_string(static_cast<int>(result))};
}

template <class T>
inline constexpr CUtensorMapDataType map_type = std::is_same_v<T, __half>          ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                : std::is_same_v<T, __nv_bfloat16> ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                                                   : CU_TENSOR_MAP_DATA_TYPE_UINT8;

[[nodiscard]] inline CUtensorMapSwizzle swizzle_of(int chunk) {
  return chunk == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
         : chunk == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                       : CU_TENSOR_MAP_SWIZZLE_32B;
}

/// Bytes of a pixel's channels that lie beside each other, and the planes that hold the others.
struct Channels {
  cuuint64_t count, bytes, planes;
  template <class T>
  [[nodiscard]] static Channels of(std::int64_t channels) {
    if (std::is_same_v<T, std::int8_t>) return {32, 32, static_cast<cuuint64_t>(ceil_divide(channels, 32))};
    return {static_cast<cuuint64_t>(channels), static_cast<cuuint64_t>(ceil_divide(channels, 8) * 16), 1};
  }
};

/// The input as the window's taps see it: (channels, w, h, image) or (32, w, h, image, plane).
template <class T>
[[nodiscard]] Status map_pixels(const T* x, const ConvolutionPlan& plan, int chunk, int pixels, CUtensorMap& map) {
  Encoders encode;
  if (Status status = encoders(encode); !status.ok()) return status;
  const auto& [depth, h, w] = plan.axis;
  const auto channels = Channels::of<T>(plan.channels);
  const auto rows = static_cast<cuuint64_t>(h.in);
  const auto columns = static_cast<cuuint64_t>(w.in);
  const cuuint64_t extents[5] = {channels.count, columns, rows, static_cast<cuuint64_t>(plan.batch), channels.planes};
  const cuuint64_t plane = channels.bytes * columns * rows;
  const cuuint64_t strides[4] = {channels.bytes, channels.bytes * columns, plane * channels.planes, plane};
  const cuuint32_t steps[5] = {1, static_cast<cuuint32_t>(w.stride), static_cast<cuuint32_t>(h.stride), 1, 1};
  // The window's first tap begins before the image by the padding and visits as many places as there are outputs.
  const int lower[3] = {static_cast<int>(-w.pad), static_cast<int>(-h.pad), 0};
  const int upper[3] = {static_cast<int>(last_corner(w)), static_cast<int>(last_corner(h)), 0};
  return encoded(encode.im2col(&map, map_type<T>, std::is_same_v<T, std::int8_t> ? 5 : 4, const_cast<T*>(x), extents,
                               strides, lower, upper, static_cast<cuuint32_t>(chunk / static_cast<int>(sizeof(T))),
                               static_cast<cuuint32_t>(pixels), steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(chunk),
                               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                 "cuTensorMapEncodeIm2col");
}

/// Rows of channels as (channels, taps, planes, rows).
template <class T>
[[nodiscard]] Status map_rows(const T* from, std::int64_t channels_of_tap, std::int64_t tap_count, std::int64_t rows,
                              int chunk, int rows_of_box, CUtensorMap& map) {
  Encoders encode;
  if (Status status = encoders(encode); !status.ok()) return status;
  const auto channels = Channels::of<T>(channels_of_tap);
  const auto taps = static_cast<cuuint64_t>(tap_count);
  const cuuint64_t extents[4] = {channels.count, taps, channels.planes, static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[3] = {channels.bytes, channels.bytes * taps, channels.bytes * taps * channels.planes};
  const cuuint32_t box[4] = {static_cast<cuuint32_t>(chunk / static_cast<int>(sizeof(T))), 1, 1,
                             static_cast<cuuint32_t>(rows_of_box)};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  return encoded(encode.tiled(&map, map_type<T>, 4, const_cast<T*>(from), extents, strides, box, steps,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(chunk), CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                 "cuTensorMapEncodeTiled");
}

}  // namespace detail

/// Bytes of a chunk: as many of a pixel's channels as are worth a copy of their own.
template <class T>
[[nodiscard]] int chunk_of(std::int64_t channels) {
  const auto bytes = channels * static_cast<std::int64_t>(sizeof(T));
  if (std::is_same_v<T, std::int8_t> || bytes <= 32) return 32;
  return bytes <= 64 ? 64 : 128;
}

template <class T>
[[nodiscard]] Sizes sizes_of(const ConvolutionPlan& plan) {
  const auto& [depth, h, w] = plan.axis;
  const int chunk = chunk_of<T>(plan.channels);
  const auto vector = channels_per_vector(std::is_same_v<T, std::int8_t> ? Layout::chw32 : Layout::hwc8);
  const std::int64_t vectors = ceil_divide(plan.outputs, vector);
  const std::int64_t chunks = ceil_divide(plan.channels * static_cast<std::int64_t>(sizeof(T)), chunk);
  return {
      .pixels = static_cast<int>(plan.batch * plan.out_pixels()),
      .channels = static_cast<int>(plan.outputs),
      .pitch = static_cast<int>(std::is_same_v<T, std::int8_t> ? vectors : vectors * vector),
      .width = static_cast<int>(w.out),
      .height = static_cast<int>(h.out),
      .stride_w = static_cast<int>(w.stride),
      .stride_h = static_cast<int>(h.stride),
      .pad_w = static_cast<int>(w.pad),
      .pad_h = static_cast<int>(h.pad),
      .dilation_w = static_cast<int>(w.dilation),
      .dilation_h = static_cast<int>(h.dilation),
      .taps_w = static_cast<int>(w.kernel),
      .taps = static_cast<int>(plan.window()),
      .chunk = chunk,
      .weight_chunk = chunk,
      .chunks_of_tap = static_cast<int>(chunks),
      .stages = static_cast<int>(ceil_divide(plan.window() * chunks * chunk, 128)),
      .flat = sizeof(T) == 2 && plan.window() == 1 && w.stride == 1 && h.stride == 1 && w.in == w.out && h.in == h.out};
}

/// How `sizes` are spread over so many blocks at a time; false: a cluster finds no place.
template <class T, class Tile>
[[nodiscard]] bool spread(Sizes& sizes, int cluster, int multiprocessors, int& blocks) {
  sizes.tiles_n = static_cast<int>(ceil_divide(sizes.channels, Tile::n));
  const int tiles = static_cast<int>(ceil_divide(sizes.pixels, Tile::m)) * sizes.tiles_n;
  const int clusters = multiprocessors * Tile::blocks / cluster;
  const int most = clusters * cluster;
  const int left = tiles % most;
  sizes.whole_tiles = tiles;
  blocks = std::min(tiles, most);
  if (cluster == 1) return true;
  if (left == 0 || left > clusters || cluster > sizes.stages || cluster * 16 / static_cast<int>(sizeof(T)) > Tile::n ||
      cluster > Tile::most_split || (cluster > 2 && left < tiles)) {
    return false;
  }
  sizes.cluster = cluster;
  sizes.whole_tiles = tiles - left;
  sizes.split_tiles = left;
  blocks = sizes.whole_tiles > 0 ? most : left * cluster;
  return true;
}

/// Weights of chw32 with an even number of planes as rows of channels, and their map. `sizes` learn how wide a copy of
/// them is.
[[nodiscard]] inline Status repack_weights(const ConvolutionPlan& plan, Sizes& sizes, const void* weight,
                                           void* workspace, int rows_of_box, CUtensorMap& map,
                                           const CudaContext& context) {
  const std::int64_t planes = ceil_divide(plan.channels, 32);
  const std::int64_t vectors = plan.outputs * plan.window() * planes * 2;
  Status status = launch("Convolution repack", repack, {ceil_divide(vectors, 256), 256}, context,
                         static_cast<const uint4*>(weight), static_cast<uint4*>(workspace), vectors,
                         static_cast<unsigned>(planes), static_cast<unsigned>(plan.window()));
  if (!status.ok()) return status;
  sizes.weight_chunk = planes % 4 == 0 ? 128 : 64;
  // Rows of pairs of bytes have the form that map_rows makes for 16-bit types.
  return detail::map_rows(static_cast<const __half*>(workspace), planes * 16, plan.window(), plan.outputs,
                          sizes.weight_chunk, rows_of_box, map);
}

template <class T, class Tile>
[[nodiscard]] Status run_tile(const ConvolutionPlan& plan, const Cut& cut, const T* x, const T* weight, T* y,
                              const Finish& finishing, void* workspace, int multiprocessors,
                              const CudaContext& context) {
  Sizes sizes = sizes_of<T>(plan);
  int blocks = 0;
  if (!spread<T, Tile>(sizes, cut.cluster, multiprocessors, blocks)) return unsupported("no place for clusters");
  CUtensorMap x_map;
  CUtensorMap w_map;
  if (sizes.flat) {
    Status status = detail::map_rows(x, plan.channels, 1, sizes.pixels, sizes.chunk, Tile::m, x_map);
    if (!status.ok()) return status;
  } else {
    Status status = detail::map_pixels(x, plan, sizes.chunk, Tile::m, x_map);
    if (!status.ok()) return status;
  }
  Status status =
      cut.repack ? repack_weights(plan, sizes, weight, workspace, Tile::n, w_map, context)
                 : detail::map_rows(weight, plan.channels, plan.window(), plan.outputs, sizes.chunk, Tile::n, w_map);
  if (!status.ok()) return status;
  return launch("Convolution wgmma", convolve<T, Tile>, {blocks, Tile::threads, sizes.cluster, Tile::shared_bytes},
                context, x_map, w_map, y, sizes, finishing);
}

using Tiles = std::tuple<Tile<128, 256, 4, 1>, Tile<64, 64, 4, 3, 1>, Tile<128, 128, 3, 2>, Tile<128, 64, 4, 2>>;

template <class T>
[[nodiscard]] Status run(const ConvolutionPlan& plan, const Cut& cut, const T* x, const T* weight, T* y,
                         const Finish& finishing, void* workspace, int multiprocessors, const CudaContext& context) {
  const auto with = [&]<class Tile>(Tile) {
    return run_tile<T, Tile>(plan, cut, x, weight, y, finishing, workspace, multiprocessors, context);
  };
  switch (cut.tile) {
    case 0: return with(std::tuple_element_t<0, Tiles>{});
    case 1: return with(std::tuple_element_t<1, Tiles>{});
    case 2: return with(std::tuple_element_t<2, Tiles>{});
    default: return with(std::tuple_element_t<3, Tiles>{});
  }
}

}  // namespace graft::wgmma
