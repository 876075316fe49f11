// InstanceNorm for channels that fit on the chip: x is read once and kept in registers until the statistics are known.
#pragma once

#include <algorithm>

#include "kernels/cluster.cuh"
#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "ops/instance_norm/channel_map.cuh"

namespace graft::ops {

/// The channels of all items, one after the other.
struct Channels {
  std::int64_t count;
  int length;    ///< The number of elements in a channel.
  int per_item;  ///< The number of channels in an item.
};

/// The number of vectors that a thread holds, tuned on an H100.
struct ChannelsPolicy {
  static constexpr int in_warp = 4;
  static constexpr int few = 2;  ///< Used for short channels of small tensors, where latency matters.
  static constexpr int medium = 4;
  static constexpr int many = 8;
  static constexpr int fewest_lanes = 8;  ///< 128 contiguous bytes.
  /// The largest number of elements of a ragged channel for which single elements are less work than vectors.
  static constexpr int longest_single = 32;
  /// The largest number of vectors of a channel for which a thread holds `few` of them.
  static constexpr int longest_few = 384;
  /// The largest number of vectors of a channel for which a thread holds `medium` of them, if the tensor fills the
  /// GPU.
  static constexpr int longest_medium = 1024;
  /// The number of vectors from which clusters process the channels, if there are few channels.
  static constexpr int least_clustered = 2560;
  /// The number of vectors per block, half of them in shared memory.
  static constexpr int half_staged_share = 256 * 2 * many;
};

namespace detail {

inline constexpr int largest_block = 1024;
inline constexpr int staged_threads = 256;

/// The part of a channel that one thread holds: R vectors of N elements, `step` vectors apart. A ragged channel does
/// not begin or end at a multiple of a vector. The elements before its first vector and after its last one are read by
/// the first 2 * N threads, one element each, or with two Edges by the first N threads. x and y lie at the same
/// distance from a multiple of a vector.
template <class T, int N, int R, bool Ragged, int Edges = 1>
struct ChannelPart {
  Vector<T, N> vectors[R];
  Vector<T, 1> edges[Edges];
  Shift shift;
  float scale;
  float bias;
  int begin;                  ///< The index of the element at which the vectors begin.
  int valid;                  ///< The number of vectors before the end of the channel.
  int edge_at[2] = {-1, -1};  ///< The indices of the edge elements; negative if there are none.

  __device__ void load(const T* x, std::int64_t channel, const Channels& channels, const ChannelNorm& norm, int first,
                       int step) {
    const T* from = x + channel * channels.length;
    begin = 0;
    if constexpr (Ragged) {
      const auto beyond = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) / sizeof(T) % N);
      begin = beyond == 0 ? 0 : N - beyond;
      const int rest = (channels.length - begin) % N;
      if (first < begin) edge_at[0] = first;
      const int behind = Edges == 1 ? first - N : first;
      if (behind >= 0 && behind < rest) edge_at[Edges - 1] = channels.length - rest + behind;
#pragma unroll
      for (int i = 0; i < Edges; ++i) {
        if (edge_at[i] >= 0) edges[i] = Vector<T, 1>::load(from + edge_at[i]);
      }
    }
    const int count = (channels.length - begin) / N;
    valid = 0;
#pragma unroll
    for (int j = 0; j < R; ++j) {
      const int at = first + j * step;
      valid += at < count ? 1 : 0;
      vectors[j] =
          at < count ? Vector<T, N>::load(from + begin + static_cast<std::int64_t>(at) * N) : Vector<T, N>::zero();
    }
    // Instructions that wait for one of the loads follow after all loads have been issued.
    const T origin = *from;
    const auto place = static_cast<int>(channel - divide(channel, channels.per_item) * channels.per_item);
    scale = norm.scale[place];
    bias = norm.bias[place];
    shift = {norm.power, static_cast<float>(origin) * norm.power};
  }
  [[nodiscard]] __device__ Moments moments() const {
    const Moments inside = moments_of(vectors, valid, shift);
    if constexpr (Ragged) {
      Moments outside;
      float before = 0;
#pragma unroll
      for (int i = 0; i < Edges; ++i) {
        if (edge_at[i] < 0) continue;
        float value[1];
        edges[i].unpack(value);
        value[0] = fmaf(value[0], shift.power, -shift.origin);
        // The squared distances of two values from their mean sum up to half of their squared difference.
        if (outside.count > 0) outside.squares = 0.5F * (value[0] - before) * (value[0] - before);
        before = value[0];
        outside.sum += value[0];
        ++outside.count;
      }
      if (outside.count > 0) return join(inside, outside);
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
#pragma unroll
      for (int i = 0; i < Edges; ++i) {
        if (edge_at[i] >= 0) map(edges[i]).store(to + edge_at[i]);
      }
    }
  }
};

/// Normalizes each channel with 1 << log2_lanes lanes of a warp; ragged channels need at least N lanes.
template <class T, int N, int R, bool Ragged>
__global__ void __launch_bounds__(spread_most_threads)
    channels_by_lanes(const T* x, T* y, Channels channels, int log2_lanes, ChannelNorm norm) {
  const int lanes = 1 << log2_lanes;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::int64_t channel =
      static_cast<std::int64_t>(blockIdx.x) * (blockDim.x >> log2_lanes) + (threadIdx.x >> log2_lanes);
  const bool active = channel < channels.count;
  ChannelPart<T, N, R, Ragged, 2> part{};
  if (active) part.load(x, channel, channels, norm, lane, lanes);
  const Moments whole = join_lanes(part.moments(), lanes);
  if (active) part.store(y, channel, channels, norm, whole, lane, lanes);
}

/// Returns the moments of a channel, joined from the moments `part` of each block of a cluster. All threads of the
/// cluster call the function and receive the result.
template <bool Clustered>
__device__ Moments join_cluster(BlockCluster<Clustered>& cluster, const Moments& part) {
  constexpr int values = 3;
  __shared__ float from_blocks[max_cluster * values];
  if (cluster.size() == 1) return part;
  cluster.begin_sending();
  if (threadIdx.x == 0) {
    cluster.send(from_blocks, values, 0, part.count);
    cluster.send(from_blocks, values, 1, part.sum);
    cluster.send(from_blocks, values, 2, part.squares);
  }
  cluster.receive();
  const int rank = static_cast<int>(threadIdx.x) % max_cluster;
  const float* of_block = from_blocks + rank * values;
  return join_lanes(rank < cluster.size() ? Moments{of_block[0], of_block[1], of_block[2]} : Moments{}, max_cluster);
}

/// Normalizes each channel with one block of whole warps, or with one cluster of such blocks.
template <class T, int N, int R, bool Ragged, bool Clustered>
__global__ void __launch_bounds__(largest_block)
    channels_by_block(const T* x, T* y, Channels channels, ChannelNorm norm) {
  if constexpr (Clustered && !compiles_clusters) return;
  __shared__ Moments shared[most_warps];
  BlockCluster<Clustered> cluster;
  const int threads = static_cast<int>(blockDim.x);
  const int first = cluster.rank() * threads + static_cast<int>(threadIdx.x);
  const int step = cluster.size() * threads;
  const std::int64_t channel = cluster.index();
  ChannelPart<T, N, R, Ragged> part;
  part.load(x, channel, channels, norm, first, step);
  const Moments whole = join_cluster(cluster, join_block(part.moments(), shared));
  part.store(y, channel, channels, norm, whole, first, step);
}

__device__ inline void copy_async(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
  *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
#endif
}
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/// Normalizes each long channel with one cluster. Each thread holds as many vectors in shared memory as in registers.
template <class T, int N, int R>
__global__ void __launch_bounds__(staged_threads, 2)
    channels_half_staged(const T* x, T* y, Channels channels, ChannelNorm norm) {
  if constexpr (!compiles_clusters) return;
  extern __shared__ uint4 stage[];
  __shared__ Moments shared[most_warps];
  BlockCluster<true> cluster;
  const int threads = static_cast<int>(blockDim.x);
  const int first = cluster.rank() * threads + static_cast<int>(threadIdx.x);
  const int step = cluster.size() * threads;
  const std::int64_t channel = cluster.index();
  const int count = channels.length / N;
  uint4* mine = stage + threadIdx.x;
  const auto place = [&](int j) { return static_cast<std::int64_t>(first + (R + j) * step) * N; };
  int staged = 0;
#pragma unroll
  for (int j = 0; j < R; ++j) {
    if (first + (R + j) * step >= count) continue;
    copy_async(mine + j * threads, x + channel * channels.length + place(j));
    ++staged;
  }
  ChannelPart<T, N, R, false> part;
  part.load(x, channel, channels, norm, first, step);
  Moments own = part.moments();
  wait_for_copies();
  constexpr int group = 4;
#pragma unroll
  for (int j = 0; j < R; j += group) {
    Vector<T, N> vectors[group];
#pragma unroll
    for (int i = 0; i < group; ++i) vectors[i].raw = mine[(j + i) * threads];
    own = join(own, moments_of(vectors, staged - j, part.shift));
  }
  const Moments whole = join_cluster(cluster, join_block(own, shared));
  part.store(y, channel, channels, norm, whole, first, step);
  const ChannelMap<T> map(norm, part.scale, part.bias, part.shift, whole);
#pragma unroll
  for (int j = 0; j < R; ++j) {
    if (j < staged) map(Vector<T, N>{mine[j * threads]}).store(y + channel * channels.length + place(j));
  }
}

}  // namespace detail

/// The largest length of a channel, in vectors of 128 bits, for one block (channel_capacity_of_block) and for a
/// cluster. Larger blocks could hold channels of twice this length, but reading such channels twice is faster.
inline constexpr int channel_capacity_of_block = detail::largest_block * ChannelsPolicy::many;
inline constexpr int channel_capacity = ChannelsPolicy::half_staged_share * max_cluster;

namespace detail {

/// Normalizes short channels, each with some lanes of a warp.
template <class T, int N, bool Ragged>
[[nodiscard]] Status run_lanes(const T* x, T* y, const Channels& channels, const ChannelNorm& norm, bool fills,
                               const DeviceTraits& device, const CudaContext& context) {
  using Policy = ChannelsPolicy;
  const int vectors = static_cast<int>(ceil_divide(channels.length, N));
  const int wanted =
      fills ? std::max(Policy::fewest_lanes, static_cast<int>(ceil_divide(vectors, Policy::in_warp))) : vectors;
  int log2_lanes = 0;
  while (log2_lanes < 5 && 1 << log2_lanes < std::max(std::min(wanted, vectors), Ragged ? N : 1)) ++log2_lanes;
  const int lanes = 1 << log2_lanes;
  auto* kernel = vectors <= lanes                     ? channels_by_lanes<T, N, 1, Ragged>
                 : vectors <= Policy::few * lanes     ? channels_by_lanes<T, N, Policy::few, Ragged>
                 : vectors <= Policy::in_warp * lanes ? channels_by_lanes<T, N, Policy::in_warp, Ragged>
                                                      : channels_by_lanes<T, N, Policy::many, Ragged>;
  const Grid grid = spread_grid(channels.count << log2_lanes, device);
  return launch("InstanceNorm lanes", kernel, grid, context, x, y, channels, log2_lanes, norm);
}

/// Normalizes longer channels, each with a block or a cluster.
template <class T, int N, bool Ragged>
[[nodiscard]] Status run_blocks(const T* x, T* y, const Channels& channels, const ChannelNorm& norm, bool fills,
                                const DeviceTraits& device, const CudaContext& context) {
  using Policy = ChannelsPolicy;
  const int vectors = channels.length / N;
  const bool few_and_long = channels.count * 4 <= device.multiprocessors && vectors >= Policy::least_clustered;
  int cluster = 1;
  if constexpr (!Ragged) {
    if (device.has_clusters() && vectors > channel_capacity_of_block && !few_and_long) {
      while (cluster < max_cluster && vectors > Policy::half_staged_share * cluster) cluster *= 2;
      const std::int64_t threads = ceil_divide(ceil_divide(vectors, 2 * Policy::many * cluster), 32) * 32;
      const Grid grid{.blocks = channels.count * cluster,
                      .threads = static_cast<int>(threads),
                      .cluster = cluster,
                      .shared_bytes = static_cast<int>(threads * Policy::many * sizeof(uint4))};
      return launch("InstanceNorm half staged", channels_half_staged<T, N, Policy::many>, grid, context, x, y, channels,
                    norm);
    }
  }
  while (device.has_clusters() && cluster < max_cluster &&
         (few_and_long || vectors > channel_capacity_of_block * cluster)) {
    cluster *= 2;
  }
  const auto run = [&]<int R>(std::integral_constant<int, R>) {
    const std::int64_t threads = ceil_divide(vectors, R * cluster);
    const Grid grid{channels.count * cluster, static_cast<int>(ceil_divide(threads, 32) * 32), cluster};
    auto* kernel = cluster > 1 ? channels_by_block<T, N, R, Ragged, true> : channels_by_block<T, N, R, Ragged, false>;
    return launch("InstanceNorm channels", kernel, grid, context, x, y, channels, norm);
  };
  // A single warp needs no barrier, so it holds a medium number of vectors per thread.
  if (!fills && vectors > 32 * Policy::medium && vectors <= Policy::longest_few) {
    return run(std::integral_constant<int, Policy::few>{});
  }
  if (vectors <= (fills ? Policy::longest_medium : largest_block * Policy::medium * cluster)) {
    return run(std::integral_constant<int, Policy::medium>{});
  }
  return run(std::integral_constant<int, Policy::many>{});
}

}  // namespace detail

/// Normalizes channels that fit into the registers and the shared memory of a block or a cluster. Requires that x and y
/// lie at the same distance from a multiple of 16 bytes.
template <class T>
[[nodiscard]] Status run_channels(const T* x, T* y, const Channels& channels, const ChannelNorm& norm,
                                  const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  using Policy = ChannelsPolicy;
  constexpr int N = widest<T>;
  const std::int64_t held = std::int64_t{device.multiprocessors} * device.threads_per_multiprocessor;
  const bool fills = channels.count * channels.length >= held * N;
  const bool ragged = channels.length % N != 0 || !is_aligned(x, sizeof(uint4));
  if (ragged && channels.length <= Policy::longest_single) {
    return run_lanes<T, 1, false>(x, y, channels, norm, fills, device, context);
  }
  const auto vectors = static_cast<int>(ceil_divide(channels.length, N));
  constexpr int in_lanes = 32 * Policy::few;
  if (vectors <= in_lanes || (fills && vectors > 2 * in_lanes && vectors <= 4 * in_lanes)) {
    return ragged ? run_lanes<T, N, true>(x, y, channels, norm, fills, device, context)
                  : run_lanes<T, N, false>(x, y, channels, norm, fills, device, context);
  }
  return ragged ? run_blocks<T, N, true>(x, y, channels, norm, fills, device, context)
                : run_blocks<T, N, false>(x, y, channels, norm, fills, device, context);
}

}  // namespace graft::ops
