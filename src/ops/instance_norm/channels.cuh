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

/// A thread's part of a channel: R vectors of N elements, `step` vectors apart.
template <class T, int N, int R>
struct ChannelPart {
  Vector<T, N> vectors[R];
  Shift shift;
  float scale;
  float bias;
  int valid;  ///< Vectors that are not beyond the end.

  __device__ void load(const T* x, std::int64_t channel, const Channels& channels, const ChannelNorm& norm, int first,
                       int step) {
    const T* begin = x + channel * channels.length;
    const int count = channels.length / N;
    valid = 0;
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const int at = first + j * step;
      valid += at < count ? 1 : 0;
      vectors[j] = at < count ? Vector<T, N>::load(begin + static_cast<std::int64_t>(at) * N) : Vector<T, N>::zero();
    }
    shift = {norm.power, static_cast<float>(*begin) * norm.power};
    const auto place = static_cast<int>(channel - divide(channel, channels.per_item) * channels.per_item);
    scale = norm.scale[place];
    bias = norm.bias[place];
  }
  [[nodiscard]] __device__ Moments moments() const { return moments_of(vectors, valid, shift); }
  __device__ void store(T* y, std::int64_t channel, const Channels& channels, const ChannelNorm& norm,
                        const Moments& whole, int first, int step) {
    const ChannelMap<T> map(norm, scale, bias, shift, whole);
    T* begin = y + channel * channels.length;
#pragma unroll
    for (int j = 0; j < R; ++j) {
      vectors[j].forget();
      const Vector<T, N> result = map(vectors[j]);
      if (j < valid) result.store(begin + static_cast<std::int64_t>(first + j * step) * N);
    }
  }
};

/// 1 << log2_lanes lanes of a warp to a channel.
template <class T, int N, int R>
__global__ void __launch_bounds__(lanes_threads)
    channels_by_lanes(const T* x, T* y, Channels channels, int log2_lanes, ChannelNorm norm) {
  const int lanes = 1 << log2_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t channel =
      static_cast<std::int64_t>(blockIdx.x) * (lanes_threads >> log2_lanes) + (threadIdx.x >> log2_lanes);
  const bool active = channel < channels.count;
  ChannelPart<T, N, R> part{};
  if (active) part.load(x, channel, channels, norm, lane, lanes);
  const Moments whole = join_lanes(part.moments(), lanes);
  if (active) part.store(y, channel, channels, norm, whole, lane, lanes);
}

/// A block of whole warps to a channel, or a cluster of such blocks.
template <class T, int N, int R, bool Clustered>
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
  ChannelPart<T, N, R> part;
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

/// The longest channel, in vectors of the width that is used, without clusters and with them.
inline constexpr int channel_capacity_of_block = detail::largest_block * ChannelsPolicy::many;
inline constexpr int channel_capacity = channel_capacity_of_block * max_cluster;

template <class T, int N>
[[nodiscard]] Status run_channels(const T* x, T* y, const Channels& channels, const ChannelNorm& norm,
                                  const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  using Policy = ChannelsPolicy;
  constexpr auto what = "InstanceNorm channels";
  const int vectors = channels.length / N;
  const std::int64_t held = std::int64_t{device.multiprocessors} * device.threads_per_multiprocessor;
  const bool fills = channels.count * vectors >= held;
  if (vectors <= 32 * Policy::in_warp) {
    const int wanted =
        fills ? std::max(Policy::fewest_lanes, static_cast<int>(ceil_divide(vectors, Policy::in_warp))) : vectors;
    int log2_lanes = 0;
    while (log2_lanes < 5 && 1 << log2_lanes < std::min(wanted, vectors)) ++log2_lanes;
    auto* kernel = vectors <= 1 << log2_lanes ? channels_by_lanes<T, N, 1> : channels_by_lanes<T, N, Policy::in_warp>;
    const Grid grid{ceil_divide(channels.count, lanes_threads >> log2_lanes), lanes_threads};
    return launch(what, kernel, grid, context, x, y, channels, log2_lanes, norm);
  }
  int cluster = 1;
  const auto too_long = [&] { return vectors > largest_block * Policy::many * cluster; };
  const auto too_few_blocks = [&] {
    const bool worth = vectors >= 2 * cluster * Policy::least_share;
    return (channels.count * cluster < device.multiprocessors && worth) ||
           (channels.count * cluster < std::int64_t{4} * device.multiprocessors &&
            vectors > Policy::most_in_few_blocks * cluster);
  };
  while (device.has_clusters() && cluster < max_cluster && (too_long() || too_few_blocks())) cluster *= 2;
  const auto by_block = [&](auto kernel, int vectors_per_thread) {
    const std::int64_t threads = ceil_divide(vectors, vectors_per_thread * cluster);
    const Grid grid{channels.count * cluster, static_cast<int>(ceil_divide(threads, 32) * 32), cluster};
    return launch(what, kernel, grid, context, x, y, channels, norm);
  };
  constexpr int few = Policy::few;
  constexpr int many = Policy::many;
  if (fills || vectors > largest_block * few * cluster) {
    return by_block(cluster > 1 ? channels_by_block<T, N, many, true> : channels_by_block<T, N, many, false>, many);
  }
  return by_block(cluster > 1 ? channels_by_block<T, N, few, true> : channels_by_block<T, N, few, false>, few);
}

}  // namespace graft
