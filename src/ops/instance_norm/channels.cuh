// InstanceNorm where a channel fits on the chip: it is read once and waits in registers for its statistics.
#pragma once

#include <algorithm>

#include "kernels/cluster.cuh"
#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "ops/instance_norm/channel_map.cuh"

namespace graft {

/// Channels of all items, one after the other.
struct Channels {
  std::int64_t count;
  int length;    ///< Elements of each.
  int per_item;  ///< Channels of an item.
};

/// Tuned on an H200.
struct ChannelsPolicy {
  static constexpr int in_warp = 4;                     ///< Vectors that a thread holds.
  static constexpr int few = 4;                         ///< The same, of small tensors, whose latency counts,
  static constexpr int many = 8;                        ///< and of those that fill the GPU.
  static constexpr int fewest_lanes = 8;                ///< 128 bytes side by side.
  static constexpr int least_share = 512;               ///< Vectors of a channel that are worth a block of a cluster.
  static constexpr int most_in_few_blocks = 512 * many;  ///< Vectors of a block where few channels cannot fill the GPU.
};

namespace detail {

inline constexpr int lanes_threads = 128;
inline constexpr int largest_block = 1024;

/// A thread's part of a channel: R vectors of N elements, `step` vectors apart. Ragged: the channel does not begin or end
/// at a multiple of a vector; what then lies before the first one and behind the last one goes to the first 2 * N
/// threads, an element each. x and y lie alike.
template <class T, int N, int R, bool Ragged>
struct ChannelPart {
  Vector<T, N> vectors[R];
  Vector<T, 1> edge;
  Shift shift;
  float scale;
  float bias;
  int begin;         ///< Of the vectors, in elements.
  int valid;         ///< Vectors that are not beyond the end.
  int edge_at = -1;  ///< In elements; negative if there is none.

  __device__ void load(const T* x, std::int64_t channel, const Channels& channels, const ChannelNorm& norm, int first,
                       int step) {
    const T* from = x + channel * channels.length;
    begin = 0;
    if constexpr (Ragged) {
      const auto beyond = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) / sizeof(T) % N);
      begin = beyond == 0 ? 0 : N - beyond;
      const int rest = (channels.length - begin) % N;
      if (first < begin) edge_at = first;
      if (first >= N && first < N + rest) edge_at = channels.length - rest + first - N;
      if (edge_at >= 0) edge = Vector<T, 1>::load(from + edge_at);
    }
    const int count = (channels.length - begin) / N;
    valid = 0;
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const int at = first + j * step;
      valid += at < count ? 1 : 0;
      vectors[j] = at < count ? Vector<T, N>::load(from + begin + static_cast<std::int64_t>(at) * N)
                              : Vector<T, N>::zero();
    }
    shift = {norm.power, static_cast<float>(*from) * norm.power};
    const auto place = static_cast<int>(channel - divide(channel, channels.per_item) * channels.per_item);
    scale = norm.scale[place];
    bias = norm.bias[place];
  }
  [[nodiscard]] __device__ Moments moments() const {
    const Moments inside = moments_of(vectors, valid, shift);
    if constexpr (Ragged) {
      float value[1];
      edge.unpack(value);
      if (edge_at >= 0) return join(inside, {1, fmaf(value[0], shift.power, -shift.origin), 0});
    }
    return inside;
  }
  __device__ void store(T* y, std::int64_t channel, const Channels& channels, const ChannelNorm& norm,
                        const Moments& whole, int first, int step) {
    const ChannelMap<T> map(norm, scale, bias, shift, whole);
    T* to = y + channel * channels.length;
#pragma unroll
    for (int j = 0; j < R; ++j) {
      vectors[j].forget();
      const Vector<T, N> result = map(vectors[j]);
      if (j < valid) result.store(to + begin + static_cast<std::int64_t>(first + j * step) * N);
    }
    if constexpr (Ragged) {
      if (edge_at >= 0) map(edge).store(to + edge_at);
    }
  }
};

/// 1 << log2_lanes lanes of a warp to a channel; all of them if it is ragged.
template <class T, int N, int R, bool Ragged>
__global__ void __launch_bounds__(lanes_threads)
    channels_by_lanes(const T* x, T* y, Channels channels, int log2_lanes, ChannelNorm norm) {
  const int lanes = 1 << log2_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t channel =
      static_cast<std::int64_t>(blockIdx.x) * (lanes_threads >> log2_lanes) + (threadIdx.x >> log2_lanes);
  const bool active = channel < channels.count;
  ChannelPart<T, N, R, Ragged> part{};
  if (active) part.load(x, channel, channels, norm, lane, lanes);
  const Moments whole = join_lanes(part.moments(), lanes);
  if (active) part.store(y, channel, channels, norm, whole, lane, lanes);
}

/// A block of whole warps to a channel, or a cluster of such blocks.
template <class T, int N, int R, bool Ragged, bool Clustered>
__global__ void __launch_bounds__(largest_block)
    channels_by_block(const T* x, T* y, Channels channels, ChannelNorm norm) {
  __shared__ Moments shared[most_warps];
  constexpr int values = 3;
  __shared__ float from_blocks[max_cluster * values];
  BlockCluster<Clustered> cluster;
  const int threads = static_cast<int>(blockDim.x);
  const int first = cluster.rank() * threads + static_cast<int>(threadIdx.x);
  const int step = cluster.size() * threads;
  const std::int64_t channel = cluster.index();
  ChannelPart<T, N, R, Ragged> part;
  part.load(x, channel, channels, norm, first, step);
  Moments whole = join_block(part.moments(), shared);
  if (cluster.size() > 1) {
    cluster.begin_sending();
    if (threadIdx.x == 0) {
      cluster.send(from_blocks, values, 0, whole.count);
      cluster.send(from_blocks, values, 1, whole.sum);
      cluster.send(from_blocks, values, 2, whole.squares);
    }
    cluster.receive();
    const int rank = static_cast<int>(threadIdx.x) % max_cluster;
    const float* of_block = from_blocks + rank * values;
    whole = join_lanes(rank < cluster.size() ? Moments{of_block[0], of_block[1], of_block[2]} : Moments{}, max_cluster);
  }
  part.store(y, channel, channels, norm, whole, first, step);
}

}  // namespace detail

/// The longest channel, in vectors of 128 bits, without clusters and with them.
inline constexpr int channel_capacity_of_block = detail::largest_block * ChannelsPolicy::many;
inline constexpr int channel_capacity = channel_capacity_of_block * max_cluster;

namespace detail {

/// Short channels: lanes of a warp.
template <class T, int N, bool Ragged>
[[nodiscard]] Status run_lanes(const T* x, T* y, const Channels& channels, const ChannelNorm& norm, bool fills,
                               const CudaContext& context) {
  using Policy = ChannelsPolicy;
  const int vectors = static_cast<int>(ceil_divide(channels.length, N));
  const int wanted =
      fills ? std::max(Policy::fewest_lanes, static_cast<int>(ceil_divide(vectors, Policy::in_warp))) : vectors;
  int log2_lanes = 0;
  while (log2_lanes < 5 && (Ragged || 1 << log2_lanes < std::min(wanted, vectors))) ++log2_lanes;
  auto* kernel = channels_by_lanes<T, N, Policy::in_warp, Ragged>;
  if constexpr (!Ragged) {
    if (vectors <= 1 << log2_lanes) kernel = channels_by_lanes<T, N, 1, false>;
  }
  const Grid grid{ceil_divide(channels.count, lanes_threads >> log2_lanes), lanes_threads};
  return launch("InstanceNorm lanes", kernel, grid, context, x, y, channels, log2_lanes, norm);
}

/// Longer ones: a block or a cluster.
template <class T, int N, bool Ragged>
[[nodiscard]] Status run_blocks(const T* x, T* y, const Channels& channels, const ChannelNorm& norm, bool fills,
                                const DeviceTraits& device, const CudaContext& context) {
  using Policy = ChannelsPolicy;
  const int vectors = channels.length / N;
  int cluster = 1;
  const auto too_long = [&] { return vectors > largest_block * Policy::many * cluster; };
  const auto too_few_blocks = [&] {
    const bool worth = vectors >= 2 * cluster * Policy::least_share;
    return (channels.count * cluster < device.multiprocessors && worth) ||
           (channels.count * cluster < std::int64_t{4} * device.multiprocessors &&
            vectors > Policy::most_in_few_blocks * cluster);
  };
  while (device.has_clusters() && cluster < max_cluster && (too_long() || too_few_blocks())) cluster *= 2;
  const auto run = [&]<int R>(std::integral_constant<int, R>) {
    const std::int64_t threads = ceil_divide(vectors, R * cluster);
    const Grid grid{channels.count * cluster, static_cast<int>(ceil_divide(threads, 32) * 32), cluster};
    auto* kernel = cluster > 1 ? channels_by_block<T, N, R, Ragged, true> : channels_by_block<T, N, R, Ragged, false>;
    return launch("InstanceNorm channels", kernel, grid, context, x, y, channels, norm);
  };
  constexpr int few = Policy::few;
  if (fills || vectors > largest_block * few * cluster) return run(std::integral_constant<int, Policy::many>{});
  return run(std::integral_constant<int, few>{});
}

}  // namespace detail

/// x and y lie alike: the same distance from a multiple of 16 bytes.
template <class T>
[[nodiscard]] Status run_channels(const T* x, T* y, const Channels& channels, const ChannelNorm& norm,
                                  const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  constexpr int N = widest<T>;
  constexpr int most_in_warp = 32 * ChannelsPolicy::in_warp;
  const std::int64_t held = std::int64_t{device.multiprocessors} * device.threads_per_multiprocessor;
  const bool fills = channels.count * channels.length >= held * N;
  const bool ragged = channels.length % N != 0 || !is_aligned(x, sizeof(uint4));
  if (ragged && channels.length <= most_in_warp) return run_lanes<T, 1, false>(x, y, channels, norm, fills, context);
  if (channels.length <= most_in_warp * N) {
    return ragged ? run_lanes<T, N, true>(x, y, channels, norm, fills, context)
                  : run_lanes<T, N, false>(x, y, channels, norm, fills, context);
  }
  return ragged ? run_blocks<T, N, true>(x, y, channels, norm, fills, device, context)
                : run_blocks<T, N, false>(x, y, channels, norm, fills, device, context);
}

}  // namespace graft
