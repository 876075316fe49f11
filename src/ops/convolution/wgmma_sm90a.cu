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
/// Fitted to timings of every cut of 90 convolutions of ResNet-50 and VGG-16 on an H200, so that the shortest estimate
/// is seldom more than a tenth slower than the fastest cut.
struct TileTimes {
  double stage_alone, stage, end_alone, end;
};
template <class T>
inline constexpr std::array<TileTimes, 4> times = {
    {{.46, .68, 5.8, 3.0}, {.098, .55, .5, 1.4}, {.46, .67, 1.6, 2.4}, {.20, .39, .64, .93}}};
template <>
inline constexpr std::array<TileTimes, 4> times<std::int8_t> = {
    {{.81, 1.2, 5.2, 4.6}, {.30, 1.4, .71, 1.9}, {.64, 1.8, 3.3, 3.2}, {.43, 1.2, 2.3, 2.0}}};
/// The same where weights were repacked.
constexpr std::array<TileTimes, 4> times_of_repacked = {
    {{.56, .73, 4.6, 4.2}, {.28, .80, .76, 1.2}, {.45, .93, 2.7, 3.3}, {.38, .66, 1.7, 1.8}}};
constexpr double repack_time = 1.2;
constexpr double repack_bytes_at_a_time = 2e6;  // in a microsecond

/// Microseconds that a cut takes, less those that every cut takes.
template <class T, class Tile>
std::optional<double> estimate(wgmma::Sizes sizes, const wgmma::Cut& cut, int multiprocessors) {
  int blocks = 0;
  if (!wgmma::spread<T, Tile>(sizes, cut.cluster, multiprocessors, blocks)) return std::nullopt;
  const TileTimes& time = (cut.repack ? times_of_repacked : times<T>)[static_cast<std::size_t>(cut.tile)];
  const int slots = multiprocessors * Tile::blocks;
  const auto round = [&](int tiles, int stages) {
    if (tiles == 0) return 0.;
    return tiles <= multiprocessors ? stages * time.stage_alone + time.end_alone : stages * time.stage + time.end;
  };
  double total =
      sizes.whole_tiles / slots * round(slots, sizes.stages) + round(sizes.whole_tiles % slots, sizes.stages);
  if (sizes.split_tiles > 0) {
    total += round(sizes.split_tiles * cut.cluster, static_cast<int>(ceil_divide(sizes.stages, cut.cluster)));
    total += .7 + .05 * cut.cluster;
  }
  if (!cut.repack) return total;
  const double weights = static_cast<double>(sizes.stages) * Tile::depth * sizes.channels;
  return total + repack_time + weights / repack_bytes_at_a_time;
}

/// The cut whose estimate is the shortest.
template <class T>
wgmma::Cut choose_cut(const ConvolutionPlan& plan, int multiprocessors) {
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
  for (const bool repack : {false, true}) {
    if (repack && !wgmma::may_repack<T>(plan)) continue;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (consider(std::tuple_element_t<I, wgmma::Tiles>{}, {.tile = static_cast<int>(I), .repack = repack}), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<wgmma::Tiles>>{});
  }
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
  const wgmma::Finish finish{
      ConvolutionEpilogue::of(op, to.dtype), static_cast<const float*>(buffers.inputs[Convolution::bias]),
      static_cast<const float*>(buffers.inputs[Convolution::scale]), wgmma::safe_inverse(op.y_scale)};
  return dispatch_device(to.dtype, [&](auto element) -> Status {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, float>) {
      return unsupported("hwc8 and chw32 are layouts of smaller types");
    } else {
      return wgmma::run<T>(plan, choose_cut<T>(plan, device.multiprocessors), static_cast<const T*>(x),
                           static_cast<const T*>(weight), static_cast<T*>(y), finish, buffers.workspace,
                           device.multiprocessors, context);
    }
  });
#else
  static_cast<void>(buffers);
  static_cast<void>(context);
  return wgmma_fits(op, problem);
#endif
}

}  // namespace graft
