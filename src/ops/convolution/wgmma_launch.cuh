// Creates the tensor maps of a convolution, and launches the kernels of wgmma.cuh and wgmma_patch.cuh.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "kernels/launch.cuh"
#include "ops/convolution/wgmma.cuh"
#include "ops/convolution/wgmma_patch.cuh"

namespace graft::ops::wgmma {

/// The choice of a tile, and of the number of blocks that share a tile, for a convolution.
struct Cut {
  int tile = 0;     ///< An index into Tiles followed by Patches, or into GatheredTiles.
  int cluster = 1;  ///< The number of blocks that share each split tile.
  int chunk = 128;  ///< The bytes that one copy takes from the channels of a pixel.
};

/// Returns the position of the first tap of the window for the last output, relative to the last element of the image.
[[nodiscard]] inline std::int64_t last_corner(const ConvolutionAxis& axis) {
  return (axis.out - 1) * axis.stride - axis.pad + 1 - axis.in;
}

namespace detail {

struct Encoders {
  decltype(&cuTensorMapEncodeTiled) tiled = nullptr;
  decltype(&cuTensorMapEncodeIm2col) im2col = nullptr;
};

/// Sets `result` to the functions of the driver that encode tensor maps, which are looked up at run time, so that the
/// driver need not be linked.
[[nodiscard]] inline Status encoders(Encoders& result) {
  constexpr unsigned since = 12000;
  const auto find = [](const char* name, auto& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult outcome{};
    Status status =
        cuda_status(cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &outcome), name);
    if (!status.ok()) return status;
    if (found == nullptr || outcome != cudaDriverEntryPointSuccess) {
      return unsupported(std::string("the NVIDIA driver does not have the function ") + name);
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
         : chunk == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                       : CU_TENSOR_MAP_SWIZZLE_NONE;
}

/// The number of contiguous channels of a pixel, the bytes that they take, and the number of planes.
struct DenseChannels {
  cuuint64_t count, bytes, planes;
  template <class T>
  [[nodiscard]] static DenseChannels of(std::int64_t channels) {
    if (std::is_same_v<T, std::int8_t>) return {32, 32, static_cast<cuuint64_t>(ceil_divide(channels, 32))};
    return {static_cast<cuuint64_t>(channels), static_cast<cuuint64_t>(ceil_divide(channels, 8) * 16), 1};
  }
};

/// Encodes the tensor map of the input, in the order in which the taps of the window read it: (channels, w, h, image),
/// or (32, w, h, image, plane) for chw32.
template <class T>
[[nodiscard]] Status map_pixels(const T* x, const ConvolutionPlan& plan, int chunk, int pixels, CUtensorMap& map) {
  Encoders encode;
  if (Status status = encoders(encode); !status.ok()) return status;
  const auto& [depth, h, w] = plan.axis;
  const auto channels = DenseChannels::of<T>(plan.channels);
  const auto rows = static_cast<cuuint64_t>(h.in);
  const auto columns = static_cast<cuuint64_t>(w.in);
  const cuuint64_t extents[5] = {channels.count, columns, rows, static_cast<cuuint64_t>(plan.batch), channels.planes};
  const cuuint64_t plane = channels.bytes * columns * rows;
  const cuuint64_t strides[4] = {channels.bytes, channels.bytes * columns, plane * channels.planes, plane};
  const cuuint32_t steps[5] = {1, static_cast<cuuint32_t>(w.stride), static_cast<cuuint32_t>(h.stride), 1, 1};
  // The first tap of the window begins before the image by the padding, and visits as many positions as there are
  // outputs.
  const int lower[3] = {static_cast<int>(-w.pad), static_cast<int>(-h.pad), 0};
  const int upper[3] = {static_cast<int>(last_corner(w)), static_cast<int>(last_corner(h)), 0};
  return encoded(encode.im2col(&map, map_type<T>, std::is_same_v<T, std::int8_t> ? 5 : 4, const_cast<T*>(x), extents,
                               strides, lower, upper, static_cast<cuuint32_t>(chunk / static_cast<int>(sizeof(T))),
                               static_cast<cuuint32_t>(pixels), steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(chunk),
                               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                 "cuTensorMapEncodeIm2col");
}

/// Encodes the map of a tensor of rank 5 whose first axis is dense. Strides are in bytes.
template <class T>
[[nodiscard]] Status map_tensor(const T* from, const cuuint64_t (&extents)[5], const cuuint64_t (&strides)[4],
                                const cuuint32_t (&box)[5], int chunk, CUtensorMap& map) {
  Encoders encode;
  if (Status status = encoders(encode); !status.ok()) return status;
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  return encoded(encode.tiled(&map, map_type<T>, 5, const_cast<T*>(from), extents, strides, box, steps,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(chunk), CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                 "cuTensorMapEncodeTiled");
}

/// Encodes the map of the pixels of hwc8 as rows of a matrix: (channels, 1, pixels, 1, 1).
template <class T>
[[nodiscard]] Status map_flat(const T* x, const Sizes& sizes, std::int64_t channels, int rows, CUtensorMap& map) {
  const auto dense = DenseChannels::of<T>(channels);
  const auto count = static_cast<cuuint64_t>(sizes.pixels);
  const cuuint64_t all = dense.bytes * count;
  return map_tensor(
      x, {dense.count, 1, count, 1, 1}, {dense.bytes, dense.bytes, all, all},
      {static_cast<cuuint32_t>(sizes.chunk / static_cast<int>(sizeof(T))), 1, static_cast<cuuint32_t>(rows), 1, 1},
      sizes.chunk, map);
}

/// Encodes the map of the filters. The first two axes are their depth and taps: (channels, taps), in chw32 (planes x
/// taps x 32, 1), for gathered pixels (taps x channels, 1). The other axes are the filter indices: (number, 1, 1) or,
/// if permuted, (2, octets, 4), of which a box contains the octets for each of the four pairs.
template <class T>
[[nodiscard]] Status map_filters(const T* weight, const ConvolutionPlan& plan, const Sizes& sizes, int columns,
                                 CUtensorMap& map) {
  const bool in_rows = std::is_same_v<T, std::int8_t> || sizes.gathered;
  const auto dense = DenseChannels::of<T>(plan.channels);
  const auto taps = static_cast<cuuint64_t>(plan.window());
  const cuuint64_t row = dense.bytes * dense.planes * taps;
  const auto count = static_cast<cuuint64_t>(plan.outputs);
  const auto rows = static_cast<cuuint32_t>(columns);
  const cuuint64_t depth = in_rows ? row / sizeof(T) : dense.count;
  const cuuint64_t taps_apart = in_rows ? 1 : taps;
  const cuuint64_t tap = in_rows ? row : dense.bytes;
  const auto chunk = static_cast<cuuint32_t>(sizes.weight_chunk / static_cast<int>(sizeof(T)));
  if (!sizes.permuted) {
    return map_tensor(weight, {depth, taps_apart, count, 1, 1}, {tap, row, row * count, row * count},
                      {chunk, 1, rows, 1, 1}, sizes.weight_chunk, map);
  }
  return map_tensor(weight, {depth, taps_apart, 2, count / 8, 4}, {tap, row, row * 8, row * 2},
                    {chunk, 1, 2, rows / 8, 4}, sizes.weight_chunk, map);
}

}  // namespace detail

/// Returns whether the channels of a pixel may be copied in chunks of `chunk` bytes. For example, 80 channels of f16
/// fill all chunks of 32 bytes, whereas with chunks of 128 bytes three eighths of two chunks would be multiplied
/// needlessly.
template <class T>
[[nodiscard]] bool chunk_fits(int chunk, std::int64_t channels) {
  if (std::is_same_v<T, std::int8_t>) return chunk == 32;
  return chunk == 32 || channels * static_cast<std::int64_t>(sizeof(T)) > chunk / 2;
}

[[nodiscard]] inline int shift_of(int chunk) { return chunk == 128 ? 7 : chunk == 64 ? 6 : 5; }

template <class T>
[[nodiscard]] Sizes sizes_of(const ConvolutionPlan& plan, int chunk) {
  const auto& [depth, h, w] = plan.axis;
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
      .weight_chunk = std::is_same_v<T, std::int8_t> ? 128 : chunk,
      .chunks_of_tap = static_cast<int>(chunks),
      .stages = static_cast<int>(ceil_divide(plan.window() * chunks * chunk, 128)),
      .flat = sizeof(T) == 2 && plan.window() == 1 && w.stride == 1 && h.stride == 1 && w.in == w.out && h.in == h.out,
      .permuted = plan.outputs % 8 == 0,
      .by_width = Divisor(static_cast<int>(w.out)),
      .by_height = Divisor(static_cast<int>(h.out)),
      .by_image = Divisor(static_cast<int>(w.out * h.out)),
      .chunk_shift = shift_of(chunk),
      .weight_chunk_shift = std::is_same_v<T, std::int8_t> ? 7 : shift_of(chunk)};
}

/// Distributes the tiles of `sizes` over blocks that run at the same time, and sets `blocks` to the number of blocks.
/// Returns false if clusters of this size do not suit the problem.
template <class T, class Tile>
[[nodiscard]] bool spread(Sizes& sizes, int cluster, int multiprocessors, int& blocks) {
  sizes.tiles_n = static_cast<int>(ceil_divide(sizes.channels, Tile::n));
  sizes.by_tiles_n = Divisor(sizes.tiles_n);
  const int tiles = static_cast<int>(ceil_divide(sizes.pixels, Tile::m)) * sizes.tiles_n;
  if (!sizes.permuted) {
    // Adjacent channels are collected in shared memory, as for a split tile, in clusters of one block.
    sizes.split_tiles = tiles;
    blocks = tiles;
    return cluster == 1;
  }
  const int clusters = multiprocessors * Tile::blocks / cluster;
  const int most = clusters * cluster;
  const int left = tiles % most;
  sizes.whole_tiles = tiles;
  blocks = std::min(tiles, most);
  if (cluster == 1) return true;
  if (left == 0 || left > clusters || cluster > sizes.stages || (cluster > 2 && left < tiles)) return false;
  sizes.cluster = cluster;
  sizes.whole_tiles = tiles - left;
  sizes.split_tiles = left;
  blocks = sizes.whole_tiles > 0 ? most : left * cluster;
  return true;
}

template <class T, class Tile>
[[nodiscard]] Status run_tile(const ConvolutionPlan& plan, const Cut& cut, const T* x, const T* weight, T* y,
                              const Finish& finishing, int multiprocessors, const CudaContext& context) {
  Sizes sizes = sizes_of<T>(plan, cut.chunk);
  int blocks = 0;
  if (!spread<T, Tile>(sizes, cut.cluster, multiprocessors, blocks))
    return unsupported("the GPU cannot run thread block clusters of this size");
  CUtensorMap x_map;
  CUtensorMap w_map;
  Status status = sizes.flat ? detail::map_flat(x, sizes, plan.channels, Tile::m, x_map)
                             : detail::map_pixels(x, plan, sizes.chunk, Tile::m, x_map);
  if (!status.ok()) return status;
  if (Status mapped = detail::map_filters(weight, plan, sizes, Tile::n, w_map); !mapped.ok()) return mapped;
  return launch("Convolution wgmma", convolve<T, Tile, CUtensorMap>,
                {blocks, Tile::threads, sizes.cluster, Tile::template shared_bytes<detail::channel_arrays<T>>}, context,
                x_map, w_map, y, sizes, finishing);
}

/// Returns whether the pixels of the problem can be copied in parts of 16 bytes (GatheredPixels).
template <class T>
[[nodiscard]] bool gathered_fits(const ConvolutionPlan& plan) {
  const auto& [depth, h, w] = plan.axis;
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  return sizeof(T) == 2 && plan.channels % 8 == 0 && std::max(h.kernel, w.kernel) <= GatheredPixels::most_window &&
         plan.batch * plan.in_pixels() * (plan.channels / 8) <= most;
}

template <class T>
[[nodiscard]] Sizes gathered_sizes(const ConvolutionPlan& plan) {
  constexpr int whole_stage = 128;
  Sizes sizes = sizes_of<T>(plan, whole_stage);
  sizes.flat = false;
  sizes.gathered = true;
  sizes.stages =
      static_cast<int>(ceil_divide(plan.window() * plan.channels * static_cast<std::int64_t>(sizeof(T)), whole_stage));
  return sizes;
}

template <class T, class Tile>
[[nodiscard]] Status run_gathered_tile(const ConvolutionPlan& plan, int cluster, const T* x, const T* weight, T* y,
                                       const Finish& finishing, int multiprocessors, const CudaContext& context) {
  Sizes sizes = gathered_sizes<T>(plan);
  int blocks = 0;
  if (!spread<T, Tile>(sizes, cluster, multiprocessors, blocks))
    return unsupported("the GPU cannot run thread block clusters of this size");
  CUtensorMap w_map;
  if (Status mapped = detail::map_filters(weight, plan, sizes, Tile::n, w_map); !mapped.ok()) return mapped;
  const auto& [depth, h, w] = plan.axis;
  const int parts = static_cast<int>(plan.channels / 8);
  const GatheredPixels pixels{.x = reinterpret_cast<const char*>(x),
                              .width = static_cast<int>(w.in),
                              .height = static_cast<int>(h.in),
                              .parts = parts,
                              .by_parts = Divisor(parts),
                              .by_taps_w = Divisor(sizes.taps_w)};
  return launch("Convolution wgmma gathered", convolve<T, Tile, GatheredPixels>,
                {blocks, Tile::threads, sizes.cluster, Tile::template shared_bytes<detail::channel_arrays<T>>}, context,
                pixels, w_map, y, sizes, finishing);
}

/// Encodes the map of patches of pixels: (16 bytes, w, h, chunk, image), in chw32 (16 bytes, w, h, half, plane of an
/// image).
template <class T>
[[nodiscard]] Status map_patches(const T* x, const ConvolutionPlan& plan, int reach, CUtensorMap& map) {
  constexpr bool planes = std::is_same_v<T, std::int8_t>;
  const auto& [depth, h, w] = plan.axis;
  const auto dense = detail::DenseChannels::of<T>(plan.channels);
  const auto rows = static_cast<cuuint64_t>(h.in);
  const auto columns = static_cast<cuuint64_t>(w.in);
  const cuuint64_t chunks = dense.bytes / 16;
  const auto side = static_cast<cuuint32_t>(reach);
  return detail::map_tensor(x,
                            {16 / sizeof(T), columns, rows, chunks, static_cast<cuuint64_t>(plan.batch) * dense.planes},
                            {dense.bytes, dense.bytes * columns, 16, dense.bytes * columns * rows},
                            {16 / static_cast<cuuint32_t>(sizeof(T)), side, side, static_cast<cuuint32_t>(chunks),
                             planes ? static_cast<cuuint32_t>(dense.planes) : 1},
                            16, map);
}

/// The number of bytes of a chunk of the filters that a block of patches keeps in shared memory.
template <class T>
inline constexpr int patch_chunk = std::is_same_v<T, std::int8_t> ? 32 : 128;

/// Returns whether the problem can be computed in patches of this shape.
template <class T, class Patch>
[[nodiscard]] bool patches_fit(const ConvolutionPlan& plan) {
  const auto& [depth, h, w] = plan.axis;
  const auto fits = [](const ConvolutionAxis& axis) {
    return axis.kernel == Patch::window && axis.stride == 1 && axis.dilation == 1;
  };
  return fits(h) && fits(w) && plan.channels * static_cast<std::int64_t>(sizeof(T)) == Patch::chunks * 16 &&
         plan.outputs % 8 == 0;
}

/// Returns the distribution of the patches of the problem over blocks that run at the same time, and sets `blocks` to
/// the number of blocks.
template <class Patch>
[[nodiscard]] PatchSizes spread_patches(const ConvolutionPlan& plan, int multiprocessors, int& blocks) {
  const auto& [depth, h, w] = plan.axis;
  PatchSizes patches{.tile_rows = static_cast<int>(ceil_divide(h.out, Patch::side)),
                     .tile_columns = static_cast<int>(ceil_divide(w.out, Patch::side)),
                     .slices = static_cast<int>(ceil_divide(plan.outputs, Patch::n)),
                     .pad_w = static_cast<int>(w.pad),
                     .pad_h = static_cast<int>(h.pad)};
  patches.by_rows = Divisor(patches.tile_rows);
  patches.by_columns = Divisor(patches.tile_columns);
  patches.tiles = static_cast<int>(plan.batch) * patches.tile_rows * patches.tile_columns;
  blocks = std::min(std::max(multiprocessors / patches.slices, 1), patches.tiles) * patches.slices;
  return patches;
}

template <class T, class Patch>
[[nodiscard]] Status run_patches(const ConvolutionPlan& plan, const T* x, const T* weight, T* y,
                                 const Finish& finishing, int multiprocessors, const CudaContext& context) {
  const Sizes sizes = sizes_of<T>(plan, patch_chunk<T>);
  int blocks = 0;
  const PatchSizes patches = spread_patches<Patch>(plan, multiprocessors, blocks);
  CUtensorMap x_map;
  CUtensorMap w_map;
  if (Status status = map_patches(x, plan, Patch::reach, x_map); !status.ok()) return status;
  if (Status status = detail::map_filters(weight, plan, sizes, Patch::n, w_map); !status.ok()) return status;
  return launch("Convolution wgmma patches", convolve_patches<T, Patch>,
                {blocks, Patch::threads, 1, Patch::template shared_bytes<detail::channel_arrays<T>>}, context, x_map,
                w_map, y, sizes, patches, finishing);
}

template <class T>
using Tiles = std::conditional_t<std::is_same_v<T, std::int8_t>,
                                 std::tuple<Tile<128, 256, 4, 1>, Tile<64, 64, 4, 3, 1>, Tile<128, 64, 4, 2>,
                                            Tile<128, 128, 6, 1>, Tile<64, 128, 8, 1, 1>>,
                                 std::tuple<Tile<256, 128, 4, 1>, Tile<128, 64, 4, 2>, Tile<64, 64, 6, 2, 1>,
                                            Tile<64, 128, 8, 1, 1>, Tile<256, 96, 4, 1>, Tile<128, 96, 3, 2>>>;
template <class T>
using Patches = std::conditional_t<std::is_same_v<T, std::int8_t>, std::tuple<Patch<4, 64, 4, 8>, Patch<8, 128, 3, 4>>,
                                   std::tuple<Patch<8, 64, 3, 6>, Patch<8, 128, 3, 5>>>;

/// The tiles of gathered pixels. The memory of a multiprocessor that their stages do not need serves as L1 cache.
using GatheredTiles = std::tuple<GatheredTile<128, 128, 4, 1>, GatheredTile<128, 64, 3, 2>>;

/// Runs one of the GatheredTiles; `cut.tile` is its index.
template <class T>
[[nodiscard]] Status run_gathered(const ConvolutionPlan& plan, const Cut& cut, const T* x, const T* weight, T* y,
                                  const Finish& finishing, int multiprocessors, const CudaContext& context) {
  const auto at = [&]<std::size_t I>(const auto& self, std::integral_constant<std::size_t, I>) -> Status {
    if constexpr (I == std::tuple_size_v<GatheredTiles>) {
      return unsupported("no such tile");
    } else {
      if (cut.tile != static_cast<int>(I)) return self(self, std::integral_constant<std::size_t, I + 1>{});
      using Chosen = std::tuple_element_t<I, GatheredTiles>;
      return run_gathered_tile<T, Chosen>(plan, cut.cluster, x, weight, y, finishing, multiprocessors, context);
    }
  };
  return at(at, std::integral_constant<std::size_t, 0>{});
}

template <class T>
[[nodiscard]] Status run(const ConvolutionPlan& plan, const Cut& cut, const T* x, const T* weight, T* y,
                         const Finish& finishing, int multiprocessors, const CudaContext& context) {
  constexpr std::size_t tiles = std::tuple_size_v<Tiles<T>>;
  const auto at = [&]<std::size_t I>(const auto& self, std::integral_constant<std::size_t, I>) -> Status {
    if constexpr (I == tiles + std::tuple_size_v<Patches<T>>) {
      return unsupported("no such tile");
    } else {
      if (cut.tile != static_cast<int>(I)) return self(self, std::integral_constant<std::size_t, I + 1>{});
      if constexpr (I < tiles) {
        using Chosen = std::tuple_element_t<I, Tiles<T>>;
        return run_tile<T, Chosen>(plan, cut, x, weight, y, finishing, multiprocessors, context);
      } else {
        using Chosen = std::tuple_element_t<I - tiles, Patches<T>>;
        return run_patches<T, Chosen>(plan, x, weight, y, finishing, multiprocessors, context);
      }
    }
  };
  return at(at, std::integral_constant<std::size_t, 0>{});
}

}  // namespace graft::ops::wgmma
