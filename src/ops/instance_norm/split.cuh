// InstanceNorm of channels of any length: one launch gathers the statistics, a second one reads the channels again.
// Blocks share each channel.
#pragma once

#include <algorithm>

#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "ops/instance_norm/channel_map.cuh"

namespace graft {

/// `count` channels from `first` on; element `at` of a channel lies in the vector at / N.
struct SplitChannels {
  std::int64_t first;
  std::int64_t count;
  std::int64_t length;
  int per_item;
  int splits;      ///< Blocks that share a channel; no more than threads of a block.
  Moments* parts;  ///< Of `count` channels, `splits` each.
};

namespace detail {

inline constexpr int split_threads = 512;
inline constexpr int split_in_flight = 4;  // vectors that a thread reads before it uses the first

/// A block's share of a channel.
template <int N>
struct Share {
  std::int64_t channel;  ///< Of those of this launch.
  int split;
  std::int64_t begin;  ///< In vectors.
  std::int64_t end;

  __device__ explicit Share(const SplitChannels& channels, std::int64_t block) {
    channel = divide(block, channels.splits);
    split = static_cast<int>(block - channel * channels.splits);
    const std::int64_t vectors = channels.length / N;
    const std::int64_t each = divide(vectors + channels.splits - 1, channels.splits);
    begin = split * each;
    end = ::min(vectors, begin + each);
  }
};

template <class T, int N>
__global__ void __launch_bounds__(split_threads) split_statistics(const T* x, SplitChannels channels, float power) {
  __shared__ Moments shared[most_warps];
  const Share<N> share(channels, blockIdx.x);
  const T* from = x + (channels.first + share.channel) * channels.length;
  const Shift shift{power, static_cast<float>(*from) * power};
  Moments sum;
  for (std::int64_t i = share.begin + threadIdx.x; i < share.end; i += split_in_flight * split_threads) {
    Vector<T, N> vectors[split_in_flight];
    int valid = 0;
#pragma unroll
    for (int j = 0; j < split_in_flight; ++j) {
      const std::int64_t at = i + j * split_threads;
      valid += at < share.end ? 1 : 0;
      vectors[j] = at < share.end ? Vector<T, N>::load(from + at * N) : Vector<T, N>::zero();
    }
    sum = join(sum, moments_of(vectors, valid, shift));
  }
  sum = join_block(sum, shared);
  if (threadIdx.x == 0) channels.parts[blockIdx.x] = sum;
}

/// Backwards, so that what the first launch read last, which is still in the L2 cache, is read first.
template <class T, int N>
__global__ void __launch_bounds__(split_threads)
    split_apply(const T* x, T* y, SplitChannels channels, ChannelNorm norm) {
  __shared__ Moments shared[most_warps];
  const Share<N> share(channels, gridDim.x - 1 - blockIdx.x);
  const std::int64_t channel = channels.first + share.channel;
  const T* from = x + channel * channels.length;
  T* to = y + channel * channels.length;
  const auto lane = static_cast<int>(threadIdx.x);
  const Moments* parts = channels.parts + share.channel * channels.splits;
  const Moments whole = join_block(lane < channels.splits ? parts[lane] : Moments{}, shared);
  const Shift shift{norm.power, static_cast<float>(*from) * norm.power};
  const auto place = static_cast<int>(channel - divide(channel, channels.per_item) * channels.per_item);
  const ChannelMap<T> map(norm, norm.scale[place], norm.bias[place], shift, whole);
  for (std::int64_t i = share.begin + threadIdx.x; i < share.end; i += split_in_flight * split_threads) {
    Vector<T, N> vectors[split_in_flight];
#pragma unroll
    for (int j = 0; j < split_in_flight; ++j) {
      const std::int64_t at = i + j * split_threads;
      if (at < share.end) vectors[j] = Vector<T, N>::load(from + at * N);
    }
#pragma unroll
    for (int j = 0; j < split_in_flight; ++j) {
      const std::int64_t at = i + j * split_threads;
      if (at < share.end) map(vectors[j]).store(to + at * N);
    }
  }
}

}  // namespace detail

/// `workspace` holds `room` parts. Channels are taken in groups that fit there and, if they are many, in the L2 cache.
template <class T, int N>
[[nodiscard]] Status run_split(const T* x, T* y, std::int64_t count, std::int64_t length, int per_item,
                               const ChannelNorm& norm, Moments* workspace, std::int64_t room,
                               const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  constexpr std::int64_t group_bytes = 24 << 20;
  constexpr std::int64_t blocks_per_multiprocessor = 4;
  constexpr auto what = "InstanceNorm split";
  const std::int64_t vectors = length / N;
  const std::int64_t fitting = std::max<std::int64_t>(group_bytes / (length * static_cast<std::int64_t>(sizeof(T))), 1);
  const std::int64_t group = std::min({count, fitting, room});
  // A block's share is worth two turns of its threads.
  const std::int64_t wanted = ceil_divide(device.multiprocessors * blocks_per_multiprocessor, group);
  const std::int64_t worth = ceil_divide(vectors, 2 * split_in_flight * split_threads);
  const auto splits = static_cast<int>(std::min<std::int64_t>({wanted, worth, room / group, split_threads}));
  for (std::int64_t first = 0; first < count; first += group) {
    const SplitChannels channels{.first = first,
                                 .count = std::min(group, count - first),
                                 .length = length,
                                 .per_item = per_item,
                                 .splits = splits,
                                 .parts = workspace};
    const Grid grid{channels.count * splits, split_threads};
    if (Status status = launch(what, split_statistics<T, N>, grid, context, x, channels, norm.power); !status.ok()) {
      return status;
    }
    if (Status status = launch(what, split_apply<T, N>, grid, context, x, y, channels, norm); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace graft
