// InstanceNorm for channels of any length: several blocks share each channel and read it twice in one launch.
#pragma once

#include <algorithm>

#include "kernels/launch.cuh"
#include "kernels/strides.cuh"
#include "kernels/two_steps.cuh"
#include "ops/instance_norm/channel_map.cuh"

namespace graft::ops {

/// The channels from index `first` on. Index `at` of an element in its channel lies in vector at / N.
struct SplitChannels {
  std::int64_t first;
  std::int64_t length;
  int per_item;
};

namespace detail {

inline constexpr int split_threads = 256;
inline constexpr int split_in_flight = 8;  // The number of vectors that a thread loads before it uses the first one.

/// Computes the moments of every part of a channel, stores them in `moments`, and then computes y from the moments of
/// all parts of the channel.
template <class T, int N>
__global__ void __launch_bounds__(split_threads)
    split_channels(const T* x, T* y, SplitChannels channels, TwoSteps steps, Moments* moments, ChannelNorm norm) {
  __shared__ Moments shared[most_warps];
  const TwoSteps::Turn turn = steps.take_turn();
  const std::int64_t channel = channels.first + turn.row;
  const std::int64_t base = channel * channels.length + turn.offset;
  const T* from = x + base;
  T* to = y + base;
  const std::int64_t valid = ::min(steps.share, channels.length - turn.offset);
  constexpr int step = split_threads * N;
  const std::int64_t first = static_cast<int>(threadIdx.x) * N;

  Vector<T, N> vectors[split_in_flight];
  const auto load = [&](std::int64_t begin) {
    int loaded = 0;
#pragma unroll
    for (int j = 0; j < split_in_flight; ++j) {
      const std::int64_t at = begin + j * step;
      loaded += at < valid ? 1 : 0;
      vectors[j] = at < valid ? Vector<T, N>::load(from + at) : Vector<T, N>::zero();
    }
    return loaded;
  };
  int loaded = load(first);
  const Shift shift{norm.power, static_cast<float>(x[channel * channels.length]) * norm.power};
  Moments own;
  if (turn.reduces) {
    for (std::int64_t begin = first;;) {
      own = join(own, moments_of(vectors, loaded, shift));
      begin += split_in_flight * step;
      if (begin >= valid) break;
      loaded = load(begin);
    }
    own = join_block(own, shared);
    if (threadIdx.x != 0) return;
    moments[turn.part] = own;
    steps.tell(turn);
    return;
  }
  const auto place = static_cast<int>(channel - divide(channel, channels.per_item) * channels.per_item);
  const float scale = norm.scale[place];
  const float bias = norm.bias[place];
  steps.wait_for_row(turn);
  for (int i = static_cast<int>(threadIdx.x); i < steps.parts; i += split_threads) {
    const Moments* part = moments + turn.row * steps.parts + i;
    own = join(own, {__ldcg(&part->count), __ldcg(&part->sum), __ldcg(&part->squares)});
  }
  const ChannelMap<T> map(norm, scale, bias, shift, join_block(own, shared));
  for (std::int64_t begin = first;;) {
#pragma unroll
    for (int j = 0; j < split_in_flight; ++j) {
      vectors[j].forget();
      const std::int64_t at = begin + j * step;
      if (at < valid) map(vectors[j]).store_streaming(to + at);
    }
    begin += split_in_flight * step;
    if (begin >= valid) break;
    load(begin);
  }
}

}  // namespace detail

/// Normalizes the channels in groups whose moments fit into the workspace.
template <class T, int N>
[[nodiscard]] Status run_split(const T* x, T* y, std::int64_t count, std::int64_t length, int per_item,
                               const ChannelNorm& norm, void* workspace, std::size_t workspace_bytes,
                               const DeviceTraits& device, const CudaContext& context) {
  using namespace detail;
  constexpr auto what = "InstanceNorm split";
  constexpr std::int64_t turn = std::int64_t{split_threads} * N * split_in_flight;
  const std::int64_t group = std::min(count, two_steps_most_rows<Moments>(workspace_bytes));
  for (std::int64_t first = 0; first < count; first += group) {
    const SplitChannels channels{.first = first, .length = length, .per_item = per_item};
    TwoSteps steps{};
    Moments* moments = nullptr;
    const std::int64_t rows = std::min(group, count - first);
    if (Status status =
            start_two_steps(what, rows, length, turn, workspace, workspace_bytes, device, context, steps, moments);
        !status.ok()) {
      return status;
    }
    const Grid grid{std::int64_t{2} * steps.all_parts, split_threads};
    if (Status status = launch(what, split_channels<T, N>, grid, context, x, y, channels, steps, moments, norm);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace graft::ops
