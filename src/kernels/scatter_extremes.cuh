// Minima and maxima of floating-point numbers with atomics. The result does not depend on the order of updates, except
// for NaN, which a later number replaces, and for zeros of both signs, of which the last one counts. The updates are
// therefore reduced into y in any order, while the kernels search for such elements. If there are any, the last kernel
// computes y again with regard to the position of each update.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/overlap.cuh"
#include "kernels/scatter_task.cuh"
#include "kernels/strides.cuh"

namespace graft {

/// Atomically replaces `*y` with the maximum (or minimum) of `*y` and `update`. If either is NaN, the result is wrong,
/// and order_extremes() computes y again. f32 is compared by its bits as integers: the bits of positive numbers
/// increase with the number, and the bits of negative numbers decrease.
template <class T>
__device__ void reduce_extreme(bool is_max, T* y, T update) {
  if constexpr (std::is_same_v<T, float>) {
    if (const int bits = __float_as_int(update); bits >= 0) {
      auto* const numbers = reinterpret_cast<int*>(y);
      if (is_max) {
        atomicMax(numbers, bits);
      } else {
        atomicMin(numbers, bits);
      }
    } else {
      auto* const numbers = reinterpret_cast<unsigned*>(y);
      if (is_max) {
        atomicMin(numbers, static_cast<unsigned>(bits));
      } else {
        atomicMax(numbers, static_cast<unsigned>(bits));
      }
    }
  } else {
    auto* const words = reinterpret_cast<unsigned short*>(y);
    const auto number = static_cast<float>(update);
    unsigned short before = *static_cast<volatile unsigned short*>(words);
    while (true) {
      const auto old = static_cast<float>(reinterpret_cast<const T&>(before));
      if (!(is_max ? number > old : number < old)) return;
      const unsigned short found = atomicCAS(words, before, reinterpret_cast<const unsigned short&>(update));
      if (found == before) return;
      before = found;
    }
  }
}

/// Reduces the updates into y by maximum or minimum. A thread reduces one element of an update.
template <class T, class RowOf>
__global__ void __launch_bounds__(scatter_threads)
    reduce_extremes(const __grid_constant__ RowOf row_of, bool is_max, const T* updates, T* y, std::int64_t numbers,
                    std::int64_t slice, ExtremesState* state) {
  let_next_kernel_begin();
  const std::int64_t number = std::int64_t{blockIdx.x} * scatter_threads + threadIdx.x;
  if (number >= numbers) return;
  const std::int64_t update = divide(number, slice);
  const std::int64_t row = row_of(static_cast<int>(update));
  const T value = updates[number];
  wait_for_kernel_ahead();
  if (row < 0) return;
  if (has_order(static_cast<float>(value))) state->has_order = 1;
  reduce_extreme(is_max, y + row * slice + (number - update * slice), value);
}

/// Returns an integer, never 0, that orders numbers: the maximum (or, unless `is_max`, the minimum) of several numbers
/// has the largest rank. Zeros of both signs have the same rank.
[[nodiscard]] __device__ inline unsigned extreme_rank(bool is_max, float number) {
  constexpr unsigned sign = 0x80000000U;
  const unsigned bits = __float_as_uint(number == 0.F ? 0.F : number);
  const unsigned rank = (bits & sign) != 0 ? ~bits : bits | sign;
  return is_max ? rank : ~rank;
}
[[nodiscard]] __device__ inline float number_of_rank(bool is_max, unsigned rank) {
  constexpr unsigned sign = 0x80000000U;
  if (!is_max) rank = ~rank;
  return __uint_as_float((rank & sign) != 0 ? rank & ~sign : ~rank);
}

/// Returns the rank of a number that is not NaN for the maximum (or, unless `is_max`, the minimum). The lower bits of
/// the rank of a zero contain its position `place` and its sign: of two zeros, the one with the higher position has the
/// larger rank.
[[nodiscard]] __device__ inline unsigned long long ordered_extreme(bool is_max, float number, unsigned place) {
  const unsigned zero = number == 0.F ? 2 * place + (__float_as_uint(number) >> 31U) : 0;
  return (static_cast<unsigned long long>(extreme_rank(is_max, number)) << 32U) | zero;
}
[[nodiscard]] __device__ inline float number_of_extreme(bool is_max, unsigned long long extreme) {
  const float number = number_of_rank(is_max, static_cast<unsigned>(extreme >> 32U));
  return number == 0.F && (extreme & 1U) != 0 ? -0.F : number;
}

/// The work of order_extremes(). Its steps follow each other, and each step is divided into parts that single blocks
/// process.
struct OrderedExtremes {
  enum Step { clear, find_nan, reduce, finish, steps };

  ExtremesState* state;
  unsigned* last_nan;
  unsigned long long* best;
  std::int64_t numbers;   ///< The number of elements in all updates.
  std::int64_t elements;  ///< The number of elements in y.
  std::int64_t slice;

  static constexpr int part = 4096;

  [[nodiscard]] __device__ std::int64_t count(int step) const {
    return step == find_nan || step == reduce ? numbers : elements;
  }
  [[nodiscard]] __device__ unsigned parts(int step) const {
    return static_cast<unsigned>((count(step) + part - 1) / part);
  }
};

/// Computes y again if there are elements whose order matters, and returns immediately otherwise. The parts of the work
/// are assigned in order, so a block waits only for parts that are done or in progress, whichever blocks run at the
/// same time.
template <class T, class RowOf>
__global__ void __launch_bounds__(scatter_threads)
    order_extremes(const __grid_constant__ RowOf row_of, bool is_max, const T* data, const T* updates, T* y,
                   OrderedExtremes work) {
  using Work = OrderedExtremes;
  wait_for_kernel_ahead();
  if (*static_cast<volatile unsigned*>(&work.state->has_order) == 0) return;
  __shared__ unsigned ticket;
  while (true) {
    if (threadIdx.x == 0) ticket = atomicAdd(&work.state->begun, 1U);
    __syncthreads();
    unsigned own = ticket;
    __syncthreads();  // All threads have read the ticket, which may be written again.
    int step = 0;
    while (step < Work::steps && own >= work.parts(step)) own -= work.parts(step++);
    if (step == Work::steps) return;
    if (step > 0 && threadIdx.x == 0) {
      const volatile unsigned* ended = work.state->ended + step - 1;
      while (*ended < work.parts(step - 1)) {
      }
      __threadfence();
    }
    __syncthreads();
    const std::int64_t begin = std::int64_t{own} * Work::part;
    const std::int64_t end = ::min(begin + Work::part, work.count(step));
    for (std::int64_t i = begin + threadIdx.x; i < end; i += scatter_threads) {
      if (step == Work::clear) {
        work.last_nan[i] = 0;
        work.best[i] = 0;
      } else if (step == Work::finish) {
        const auto before = static_cast<float>(data[i]);
        unsigned long long extreme = __ldcg(work.best + i);
        const unsigned last_nan = __ldcg(work.last_nan + i);
        if (last_nan == 0 && before == before) extreme = ::max(extreme, ordered_extreme(is_max, before, 0));
        y[i] = static_cast<T>(extreme == 0 ? NAN : number_of_extreme(is_max, extreme));
      } else {
        const std::int64_t update = divide(i, work.slice);
        const std::int64_t row = row_of(static_cast<int>(update));
        if (row < 0) continue;
        const std::int64_t element = row * work.slice + (i - update * work.slice);
        const auto place = static_cast<unsigned>(update) + 1;
        const auto number = static_cast<float>(updates[i]);
        if (step == Work::find_nan) {
          if (number != number) atomicMax(work.last_nan + element, place);
        } else if (number == number && place > __ldcg(work.last_nan + element)) {
          atomicMax(work.best + element, ordered_extreme(is_max, number, place));
        }
      }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(work.state->ended + step, 1U);
  }
}

/// Computes y from data and the updates by minimum or maximum, for slices of up to most_atomic_extremes elements.
template <class RowOf>
[[nodiscard]] Status scatter_extremes(const ScatterTask& task, const RowOf& row_of, const CudaContext& context) {
  const ScatterSizes& sizes = task.sizes;
  const ExtremesPlan plan(sizes);
  const bool is_max = task.reduction == ScatterReduction::max;
  const std::int64_t numbers = sizes.updates * sizes.slice;
  const OrderedExtremes work{reinterpret_cast<ExtremesState*>(task.workspace + plan.state),
                             reinterpret_cast<unsigned*>(task.workspace + plan.last_nan),
                             reinterpret_cast<unsigned long long*>(task.workspace + plan.best),
                             numbers,
                             sizes.rows * sizes.slice,
                             sizes.slice};
  const auto cleared = cudaMemsetAsync(work.state, 0, sizeof(ExtremesState), context.stream);
  if (Status status = cuda_status(cleared, task.what); !status.ok()) return status;
  if (Status copied = copy_data(task, work.state, context); !copied.ok() || numbers == 0) return copied;
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  return dispatch_floats(task.dtype, [&](auto element) -> Status {
    using T = decltype(element);
    const auto* data = static_cast<const T*>(task.data);
    const auto* updates = static_cast<const T*>(task.updates);
    auto* y = static_cast<T*>(task.y);
    Grid grid{.blocks = ceil_divide(numbers, scatter_threads), .threads = scatter_threads, .overlaps = true};
    if (Status reduced = launch(task.what, reduce_extremes<T, RowOf>, grid, context, row_of, is_max, updates, y,
                                numbers, sizes.slice, work.state);
        !reduced.ok()) {
      return reduced;
    }
    constexpr std::int64_t blocks_of_multiprocessor = 4;
    const std::int64_t parts = ceil_divide(std::max(numbers, work.elements), OrderedExtremes::part);
    grid.blocks = std::min(parts, blocks_of_multiprocessor * device.multiprocessors);
    return launch(task.what, order_extremes<T, RowOf>, grid, context, row_of, is_max, data, updates, y, work);
  });
}

}  // namespace graft
