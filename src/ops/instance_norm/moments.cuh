// Mean and variance of a channel, joined from the parts of threads, warps and blocks.
//
// Every part consists of a count, a sum and the sum of the squared distances from its own mean. Two parts are joined
// using the mean of both (Chan, Golub, LeVeque 1979), so that a large mean loses no digits. All values are computed
// relative to one element of the channel, the shift: an element lies at most sqrt(count) standard deviations from the
// mean, whatever the mean is.
#pragma once

#include "kernels/vector.cuh"

namespace graft::ops {

struct Moments {
  float count = 0;
  float sum = 0;
  float squares = 0;  ///< The sum of the squared distances from the part's own mean.

  [[nodiscard]] __device__ float mean() const { return count > 0 ? __fdividef(sum, count) : 0; }
};

/// The transformation of all values of a channel before they are summed: value = x * power - origin. `power` is a power
/// of two that keeps sums of the largest numbers finite (1 for i8), and `origin` is the value of one element of the
/// channel, for i8 in quantization steps.
struct Shift {
  float power;
  float origin;
};

namespace detail {

/// Returns to each thread the joined moments of its group of `lanes` neighboring threads, a power of two; `part` are
/// the moments of the thread itself.
__device__ inline Moments join_lanes(Moments part, int lanes = 32) {
  constexpr unsigned all = 0xFFFFFFFFU;
  Moments whole = part;
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    whole.count += __shfl_xor_sync(all, whole.count, distance);
    whole.sum += __shfl_xor_sync(all, whole.sum, distance);
  }
  const float distance_of_means = part.mean() - whole.mean();
  whole.squares = part.squares + part.count * distance_of_means * distance_of_means;
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    whole.squares += __shfl_xor_sync(all, whole.squares, distance);
  }
  return whole;
}

inline constexpr int most_warps = 32;

/// Returns the joined moments of all threads of a block of whole warps to all of its threads. `part` are the moments of
/// the thread itself; `shared` is scratch memory.
__device__ inline Moments join_block(Moments part, Moments (&shared)[most_warps]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  part = join_lanes(part);
  if (blockDim.x == 32) return part;
  if (lane == 0) shared[threadIdx.x / 32] = part;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int lanes = warps <= 8 ? 8 : 32;
  __syncthreads();
  return join_lanes(lane % lanes < warps ? shared[lane % lanes] : Moments{}, lanes);
}

/// Returns the moments of the elements of `a` and `b` together.
__device__ inline Moments join(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  const float distance = b.mean() - a.mean();
  const float weight = count > 0 ? __fdividef(a.count * b.count, count) : 0;
  return {count, a.sum + b.sum, a.squares + b.squares + distance * distance * weight};
}

/// Returns the moments of the elements of the first `valid` vectors. Sums are computed relative to the first of these
/// elements, so that the cancellation in `squares` is bounded by the number of elements times their size.
template <class T, int N, int R>
__device__ Moments moments_of(const Vector<T, N> (&vectors)[R], int valid, const Shift& shift) {
  if (valid <= 0) return {};
  Moments part{.count = static_cast<float>(::min(valid, R) * N)};
  if constexpr (std::is_same_v<T, std::int8_t>) {
    static_assert(R * N <= 128, "squares of sums would leave 32 bits");
    int sum = 0;
    int squares = 0;
#pragma unroll
    for (int j = 0; j < R; ++j) {
      if (j >= valid) continue;
      if constexpr (N == 1) {
        const int value = vectors[j].raw;
        sum += value;
        squares += value * value;
      } else {
#pragma unroll
        for (int w = 0; w < Vector<T, N>::words; ++w) {
          const auto word = static_cast<int>(vectors[j].word(w));
          sum = __dp4a(word, 0x01010101, sum);
          squares = __dp4a(word, word, squares);
        }
      }
    }
    const int count = ::min(valid, R) * N;
    part.sum = static_cast<float>(sum - count * static_cast<int>(shift.origin));
    part.squares = __fdividef(static_cast<float>(count * squares - sum * sum), part.count);
  } else {
    // Several independent chains of additions hide the latency of an addition.
    constexpr int chains = N < 4 ? N : 4;
    float sums[chains] = {};
    float squares_of[chains] = {};
    float first = 0;
#pragma unroll
    for (int j = 0; j < R; ++j) {
      if (j >= valid) continue;
      float values[N];
      vectors[j].unpack(values);
      if (j == 0) first = values[0] * shift.power;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float value = fmaf(values[i], shift.power, -first);
        sums[i % chains] += value;
        squares_of[i % chains] = fmaf(value, value, squares_of[i % chains]);
      }
    }
    float sum = sums[0];
    float squares = squares_of[0];
#pragma unroll
    for (int i = 1; i < chains; ++i) {
      sum += sums[i];
      squares += squares_of[i];
    }
    part.sum = fmaf(part.count, first - shift.origin, sum);
    const float rest = fmaf(-sum, __fdividef(sum, part.count), squares);
    part.squares = rest < 0 ? 0 : rest;  // A NaN is preserved.
  }
  return part;
}

}  // namespace detail
}  // namespace graft::ops
