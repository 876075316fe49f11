// Convolution on Hopper's tensor cores: which problems it takes and how they are cut up.
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "ops/convolution/variants.hpp"
#include "ops/convolution/wgmma_launch.cuh"

namespace graft {
namespace {

#if GRAFT_SM90A
/// Microseconds of a stage and of the end of a tile, with one block on a multiprocessor and with as many as find place.
/// Fitted to timings of every cut of 72 convolutions of ResNet-50 and VGG-16 on an H200 whose cache was cold, so that
/// the shortest estimate is seldom more than a tenth slower than the fastest cut.
struct TileTimes {
  double stage_alone, stage, end_alone, end;
};
template <class T>
inline constexpr std::array<TileTimes, 6> times = {{{.669, .669, 2.40, 2.40},
                                                    {.222, .376, .281, .847},
                                                    {.257, .465, 1.02, 1.34},
                                                    {.167, .247, .547, .590},
                                                    {.202, .202, .961, .961},
                                                    {.330, .330, 1.63, 1.63}}};
template <>
constexpr std::array<TileTimes, 5> times<std::int8_t> = {{{.690, .690, 6.75, 6.75},
                                                          {.456, .758, .682, 2.03},
                                                          {.478, 1.30, 2.37, 1.45},
                                                          {.615, .615, 3.16, 3.16},
                                                          {.350, .350, 3.40, 3.40}}};
/// What a split costs, and each block that shares it.
template <class T>
inline constexpr std::array<double, 2> split_times = {2.04, .336};
template <>
constexpr std::array<double, 2> split_times<std::int8_t> = {.086, 1.05};

/// Microseconds of patches, and of each that a block makes.
struct PatchTimes {
  double begin, each;
};
template <class T>
inline constexpr std::array<PatchTimes, 2> patch_times = {{{1.6, .97}, {3.7, 1.61}}};
template <>
constexpr std::array<PatchTimes, 2> patch_times<std::int8_t> = {{{2.5, .68}, {3.4, 1.93}}};

/// Microseconds that a cut takes, less those that every cut takes.
template <class T, class Tile>
std::optional<double> estimate(wgmma::Sizes sizes, const wgmma::Cut& cut, int multiprocessors) {
  int blocks = 0;
  if (!wgmma::spread<T, Tile>(sizes, cut.cluster, multiprocessors, blocks)) return std::nullopt;
  const TileTimes& time = times<T>[static_cast<std::size_t>(cut.tile)];
  const int slots = multiprocessors * Tile::blocks;
  const auto round = [&](int tiles, int stages) {
    if (tiles == 0) return 0.;
    return tiles <= multiprocessors ? stages * time.stage_alone + time.end_alone : stages * time.stage + time.end;
  };
  const double total =
      sizes.whole_tiles / slots * round(slots, sizes.stages) + round(sizes.whole_tiles % slots, sizes.stages);
  if (sizes.split_tiles == 0) return total;
  return total + round(sizes.split_tiles * cut.cluster, static_cast<int>(ceil_divide(sizes.stages, cut.cluster))) +
         split_times<T>[0] + split_times<T>[1] * cut.cluster;
}

/// The cut whose estimate is the shortest.
template <class T>
wgmma::Cut choose_cut(const ConvolutionPlan& plan, int multiprocessors) {
  constexpr std::size_t tiles = std::tuple_size_v<wgmma::Tiles<T>>;
  const wgmma::Sizes sizes = wgmma::sizes_of<T>(plan);
  wgmma::Cut best;
  double shortest = std::numeric_limits<double>::infinity();
  const auto consider = [&]<class Tile>(Tile, wgmma::Cut cut) {
    for (const int cluster : {1, 2, 4, 8}) {
      cut.cluster = cluster;
      const std::optional<double> time = estimate<T, Tile>(sizes, cut, multiprocessors);
      if (time && *time < shortest) {
        shortest = *time;
        best = cut;
      }
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (consider(std::tuple_element_t<I, wgmma::Tiles<T>>{}, {.tile = static_cast<int>(I)}), ...);
  }
  (std::make_index_sequence<tiles>{});
  const auto consider_patches = [&]<class Patch>(Patch, std::size_t which) {
    if (!wgmma::patches_fit<T, Patch>(plan, sizes)) return;
    int blocks = 0;
    const wgmma::PatchSizes patches = wgmma::spread_patches<Patch>(plan, multiprocessors, blocks);
    const PatchTimes& time = patch_times<T>[which];
    const double total =
        time.begin + static_cast<double>(ceil_divide(patches.tiles, blocks / patches.slices)) * time.each;
    if (total < shortest) {
      shortest = total;
      best = {.tile = static_cast<int>(tiles + which)};
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (consider_patches(std::tuple_element_t<I, wgmma::Patches<T>>{}, I), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<wgmma::Patches<T>>>{});
  return best;
}
#endif

}  // namespace

Status wgmma_fits(const Convolution& op, const Problem& problem) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1024;
  const TensorDesc& from = problem.inputs[Convolution::x];
  if (from.layout == Layout::linear) return unsupported("takes hwc8 and chw32, found linear");
  constexpr std::int64_t fewest = 9;
  if (from.extents[1] < fewest) {
    return unsupported("takes " + std::to_string(fewest) + " channels and more: copies of fewer are too short");
  }
  // Of a plane that is not full all 32 channels are copied, and what pads may be anything.
  if (from.layout == Layout::chw32 && from.extents[1] % channels_per_vector(Layout::chw32) != 0) {
    return unsupported("takes full planes of 32 channels");
  }
  if (op.group != 1) return unsupported("takes one group, found " + std::to_string(op.group));
  const ConvolutionPlan plan = plan_convolution(op, problem);
  const bool planes = from.layout == Layout::chw32;
  // What a tensor map's fields hold.
  const std::int64_t most_corner = planes ? 15 : 127;
  const std::int64_t most_reach = planes ? 31 : 255;
  constexpr std::int64_t most_stride = 8;
  for (const ConvolutionAxis& axis : std::span(plan.axis).subspan(1)) {
    const std::int64_t end = wgmma::last_corner(axis);
    if (axis.stride > most_stride || axis.pad > most_corner || end > most_corner || end < -most_corner ||
        (axis.kernel - 1) * axis.dilation > most_reach) {
      return unsupported("takes strides up to 8, windows up to " + std::to_string(most_corner) + " wide");
    }
  }
  if (plan.batch * plan.out_pixels() > most || plan.window() * plan.channels > most ||
      std::max({plan.axis[1].in, plan.axis[2].in, plan.outputs}) > most) {
    return unsupported("takes up to " + std::to_string(most) + " pixels, and products of a sum");
  }
#if GRAFT_SM90A
  return {};
#else
  return unsupported("needs code for compute capability 9.0, which this build does not have");
#endif
}

Status wgmma_run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
#if GRAFT_SM90A
  constexpr std::size_t copy_bytes = 16;
  const TensorDesc& to = problem.outputs[0];
  if (to.extents.element_count() == 0) return {};
  const void* x = buffers.inputs[Convolution::x];
  const void* weight = buffers.inputs[Convolution::weight];
  void* y = buffers.outputs[0];
  if (!is_aligned(x, copy_bytes) || !is_aligned(weight, copy_bytes) || !is_aligned(y, copy_bytes)) {
    return invalid_argument("Convolution: " + std::string(to_string(to.layout)) +
                            " tensors must lie at multiples of 16 bytes");
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
      return unsupported("hwc8 and chw32 are layouts of smaller types");
    } else {
      return wgmma::run<T>(plan, choose_cut<T>(plan, device.multiprocessors), static_cast<const T*>(x),
                           static_cast<const T*>(weight), static_cast<T*>(y), finish, device.multiprocessors, context);
    }
  });
#else
  static_cast<void>(buffers);
  static_cast<void>(context);
  return wgmma_fits(op, problem);
#endif
}

}  // namespace graft
