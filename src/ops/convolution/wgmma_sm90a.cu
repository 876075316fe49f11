// Host code of Convolution on Hopper's tensor cores: checks whether a problem is supported and divides it between
// blocks.
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "ops/convolution/variants.hpp"
#include "ops/convolution/wgmma_launch.cuh"

namespace graft::ops {
namespace {

#if GRAFT_SM90A
/// Times in microseconds: of a stage and of the final part of a tile, with one block on a multiprocessor (`_alone`) and
/// with as many as fit, and the additional time of the final part if filters are not permuted (`apart`). The times of
/// f16 were fitted by least squares to timings of every cut of 121 random convolutions (`graft bench --random 101`) on
/// an H100 with a cold cache: the cut with the shortest estimate takes 1.06 times as long as the fastest cut in the
/// geometric mean. The times of i8 were fitted to 72 convolutions of ResNet-50 and VGG-16 on an H200.
struct TileTimes {
  double stage_alone, stage, end_alone, end, apart;
};
template <class T>
inline constexpr std::array<TileTimes, 6> times = {{{.776, .776, 4.40, 4.40, 5.31},
                                                    {.337, .777, 2.53, 2.98, 1.38},
                                                    {.235, .468, 1.50, 2.25, 1.24},
                                                    {.318, .318, 2.45, 2.45, 2.17},
                                                    {.637, .637, 4.31, 4.31, 3.56},
                                                    {.429, .888, 3.22, 4.19, 1.76}}};
template <>
constexpr std::array<TileTimes, 5> times<std::int8_t> = {{{.690, .690, 6.75, 6.75, 0},
                                                          {.456, .758, .682, 2.03, 0},
                                                          {.478, 1.30, 2.37, 1.45, 0},
                                                          {.615, .615, 3.16, 3.16, 0},
                                                          {.350, .350, 3.40, 3.40, 0}}};
/// The times of gathered tiles, estimated from seven of the random convolutions on an H200.
inline constexpr std::array<TileTimes, 2> gathered_times = {{{.56, .56, 2.8, 2.8, 2.2}, {.40, .80, 2.5, 3.0, 1.4}}};
/// The factors by which a stage of f16 takes longer if it is copied in smaller chunks: with one block on a
/// multiprocessor, and with as many blocks as fit.
struct ChunkFactors {
  double alone, full;
};
constexpr ChunkFactors factors_of(int chunk) {
  if (chunk == 32) return {1.7, 2.55};
  return chunk == 64 ? ChunkFactors{1.2, 1.5} : ChunkFactors{1, 1};
}
/// Times in microseconds: of every launch (`begin`), of a split, and of each block that shares a split tile.
struct SplitTimes {
  double begin, split, block;
};
template <class T>
constexpr SplitTimes split_times = {2.71, 3.45, .105};
template <>
constexpr SplitTimes split_times<std::int8_t> = {0, .086, 1.05};

/// Times in microseconds: of a launch of patches (`begin`), and of each patch that a block computes.
struct PatchTimes {
  double begin, each;
};
template <class T>
inline constexpr std::array<PatchTimes, 2> patch_times = {{{1.6, .97}, {3.7, 1.61}}};
template <>
constexpr std::array<PatchTimes, 2> patch_times<std::int8_t> = {{{2.5, .68}, {3.4, 1.93}}};

/// Returns the estimated time of a cut (wgmma::Cut) in microseconds, without the time that all cuts have in common;
/// nothing if the cut is impossible.
template <class T, class Tile>
std::optional<double> estimate(wgmma::Sizes sizes, const wgmma::Cut& cut, TileTimes time, int multiprocessors) {
  int blocks = 0;
  if (!wgmma::spread<T, Tile>(sizes, cut.cluster, multiprocessors, blocks)) return std::nullopt;
  if (!std::is_same_v<T, std::int8_t>) {
    const ChunkFactors factors = factors_of(cut.chunk);
    time.stage_alone *= factors.alone;
    time.stage *= Tile::blocks == 1 ? factors.alone : factors.full;
  }
  const int slots = multiprocessors * Tile::blocks;
  const auto round = [&](int tiles, int stages) {
    if (tiles == 0) return 0.;
    return tiles <= multiprocessors ? stages * time.stage_alone + time.end_alone : stages * time.stage + time.end;
  };
  const auto rounds = [&](int tiles) {
    return tiles / slots * round(slots, sizes.stages) + round(tiles % slots, sizes.stages);
  };
  const auto [begin, split, block] = split_times<T>;
  if (!sizes.permuted) {
    return begin + rounds(sizes.split_tiles) + static_cast<double>(ceil_divide(sizes.split_tiles, slots)) * time.apart;
  }
  const double total = begin + rounds(sizes.whole_tiles);
  if (sizes.split_tiles == 0) return total;
  return total + round(sizes.split_tiles * cut.cluster, static_cast<int>(ceil_divide(sizes.stages, cut.cluster))) +
         split + block * cut.cluster;
}

/// Returns the cut with the shortest estimate among the tiles and patches that `shape` allows; nothing if none is
/// possible.
template <class T>
std::optional<wgmma::Cut> choose_cut(const ConvolutionPlan& plan, int multiprocessors, const WgmmaShape& shape) {
  constexpr std::size_t tiles = std::tuple_size_v<wgmma::Tiles<T>>;
  std::optional<wgmma::Cut> best;
  double shortest = std::numeric_limits<double>::infinity();
  const auto consider = [&]<class Tile>(Tile, wgmma::Cut cut) {
    if (!shape.takes(Tile::m, Tile::n)) return;
    for (const int chunk : {32, 64, 128}) {
      if (!wgmma::chunk_fits<T>(chunk, plan.channels)) continue;
      cut.chunk = chunk;
      const wgmma::Sizes sizes = wgmma::sizes_of<T>(plan, chunk);
      for (const int cluster : {1, 2, 4, 8}) {
        cut.cluster = cluster;
        const std::optional<double> time =
            estimate<T, Tile>(sizes, cut, times<T>[static_cast<std::size_t>(cut.tile)], multiprocessors);
        if (time && *time < shortest) {
          shortest = *time;
          best = cut;
        }
      }
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (consider(std::tuple_element_t<I, wgmma::Tiles<T>>{}, {.tile = static_cast<int>(I)}), ...);
  }
  (std::make_index_sequence<tiles>{});
  const auto consider_patches = [&]<class Patch>(Patch, std::size_t which) {
    if (!shape.takes_patches() || !wgmma::patches_fit<T, Patch>(plan)) return;
    int blocks = 0;
    const wgmma::PatchSizes patches = wgmma::spread_patches<Patch>(plan, multiprocessors, blocks);
    const PatchTimes& time = patch_times<T>[which];
    const double total =
        time.begin + static_cast<double>(ceil_divide(patches.tiles, blocks / patches.slices)) * time.each;
    if (total < shortest) {
      shortest = total;
      best = wgmma::Cut{.tile = static_cast<int>(tiles + which)};
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (consider_patches(std::tuple_element_t<I, wgmma::Patches<T>>{}, I), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<wgmma::Patches<T>>>{});
  return best;
}

/// Returns the cut with the shortest estimate among the gathered tiles that `shape` allows; nothing if none is
/// possible.
template <class T>
std::optional<wgmma::Cut> choose_gathered(const ConvolutionPlan& plan, int multiprocessors, const WgmmaShape& shape) {
  const wgmma::Sizes sizes = wgmma::gathered_sizes<T>(plan);
  std::optional<wgmma::Cut> best;
  double shortest = std::numeric_limits<double>::infinity();
  const auto consider = [&]<class Tile>(Tile, std::size_t which) {
    if (!shape.takes(Tile::m, Tile::n)) return;
    wgmma::Cut cut{.tile = static_cast<int>(which)};
    for (const int cluster : {1, 2, 4, 8}) {
      cut.cluster = cluster;
      const std::optional<double> time = estimate<T, Tile>(sizes, cut, gathered_times[which], multiprocessors);
      if (!time || *time >= shortest) continue;
      shortest = *time;
      best = cut;
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (consider(std::tuple_element_t<I, wgmma::GatheredTiles>{}, I), ...);
  }
  (std::make_index_sequence<gathered_times.size()>{});
  return best;
}

/// Returns whether there are tiles or patches of the shape `shape` that can compute the problem. For gathered tiles,
/// returns whether the pixels of the problem can be gathered.
template <class T>
bool has_shape(const ConvolutionPlan& plan, const WgmmaShape& shape) {
  if (shape.gathered) return wgmma::gathered_fits<T>(plan);
  const auto any = [&]<class... Tile>(std::type_identity<std::tuple<Tile...>>) {
    return (shape.takes(Tile::m, Tile::n) || ...);
  };
  const auto any_patch = [&]<class... Patch>(std::type_identity<std::tuple<Patch...>>) {
    return (wgmma::patches_fit<T, Patch>(plan) || ...);
  };
  return any(std::type_identity<wgmma::Tiles<T>>{}) ||
         (shape.takes_patches() && any_patch(std::type_identity<wgmma::Patches<T>>{}));
}
#endif

}  // namespace

Status wgmma_fits(const Convolution& op, const Problem& problem, [[maybe_unused]] const WgmmaShape& shape) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1024;
  const TensorDesc& from = problem.inputs[Convolution::x];
  if (from.layout == Layout::linear) return unsupported("supports hwc8 and chw32, found linear");
  constexpr std::int64_t fewest = 9;
  if (from.extents[1] < fewest) {
    return unsupported("supports at least " + std::to_string(fewest) +
                       " channels: copies of fewer channels are too short");
  }
  // All 32 channels of a partial plane are copied, including padding, which may contain any values.
  if (from.layout == Layout::chw32 && from.extents[1] % channels_per_vector(Layout::chw32) != 0) {
    return unsupported("supports chw32 only with a multiple of 32 channels");
  }
  if (op.group != 1) return unsupported("supports one group, found " + std::to_string(op.group));
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const bool planes = from.layout == Layout::chw32;
  // The limits of the fields of a tensor map.
  const std::int64_t most_corner = planes ? 15 : 127;
  const std::int64_t most_reach = planes ? 31 : 255;
  constexpr std::int64_t most_stride = 8;
  for (const ConvolutionAxis& axis : std::span(plan.axis).subspan(1)) {
    const std::int64_t end = wgmma::last_corner(axis);
    if (axis.stride > most_stride || axis.pad > most_corner || end > most_corner || end < -most_corner ||
        (axis.kernel - 1) * axis.dilation > most_reach) {
      return unsupported("supports strides of up to 8, padding of up to " + std::to_string(most_corner) +
                         ", and windows that span at most " + std::to_string(most_reach + 1) +
                         " elements and at most " + std::to_string(most_corner + 1) + " more than the padding");
    }
  }
  if (plan.batch * plan.out_pixels() > most || plan.window() * plan.channels > most ||
      std::max({plan.axis[1].in, plan.axis[2].in, plan.outputs}) > most) {
    return unsupported("supports up to " + std::to_string(most) + " pixels, and as many products per sum");
  }
#if GRAFT_SM90A
  return dispatch_device(from.dtype, [&](auto element) -> Status {
    if constexpr (!std::is_same_v<decltype(element), float>) {
      if (has_shape<decltype(element)>(plan, shape)) return {};
    }
    return unsupported("has no such tile for the problem");
  });
#else
  return unsupported("needs code for compute capability 9.0, which this build does not have");
#endif
}

Status wgmma_run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context,
                 const WgmmaShape& shape) {
#if GRAFT_SM90A
  constexpr std::size_t copy_bytes = 16;
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  const void* x = buffers.inputs[Convolution::x];
  const void* weight = buffers.inputs[Convolution::weight];
  void* y = buffers.outputs[0];
  if (!is_aligned(x, copy_bytes) || !is_aligned(weight, copy_bytes) || !is_aligned(y, copy_bytes)) {
    return invalid_argument("Convolution: " + std::string(to_string(to.layout)) +
                            " tensors must have addresses that are multiples of 16");
  }
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const auto finish = wgmma::Finish::of(
      ConvolutionEpilogue::of(op, to.dtype), static_cast<const float*>(buffers.inputs[Convolution::bias]),
      static_cast<const float*>(buffers.inputs[Convolution::scale]), plan.channels * plan.window());
  return dispatch_device(to.dtype, [&](auto element) -> Status {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, float>) {
      return unsupported("supports only f16, bf16 and i8");
    } else {
      if constexpr (sizeof(T) == 2) {
        if (shape.gathered) {
          const std::optional<wgmma::Cut> gathered = choose_gathered<T>(plan, device.multiprocessors, shape);
          if (!gathered) return unsupported("Convolution wgmma: no such tile for the problem");
          return wgmma::run_gathered<T>(plan, *gathered, static_cast<const T*>(x), static_cast<const T*>(weight),
                                        static_cast<T*>(y), finish, device.multiprocessors, context);
        }
      }
      const std::optional<wgmma::Cut> cut = choose_cut<T>(plan, device.multiprocessors, shape);
      if (!cut) return unsupported("Convolution wgmma: no such tile for the problem");
      return wgmma::run<T>(plan, *cut, static_cast<const T*>(x), static_cast<const T*>(weight), static_cast<T*>(y),
                           finish, device.multiprocessors, context);
    }
  });
#else
  static_cast<void>(buffers);
  static_cast<void>(context);
  return wgmma_fits(op, problem, shape);
#endif
}

}  // namespace graft::ops
