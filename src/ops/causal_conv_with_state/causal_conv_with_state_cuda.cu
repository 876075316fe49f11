// CUDA kernels of CausalConvWithState: long rows in vectors of 128 bits, short rows with one thread per row.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/vector.cuh"
#include "ops/causal_conv_with_state/task.hpp"

namespace graft::ops {
namespace {

/// The number of taps for which kernels are specialized. Other kernels read the number of taps at run time.
constexpr int usual_taps = 4;

template <class T>
__device__ float activated(const CausalTask<T>& task, float sum) {
  if (!task.has_silu) return sum;
  // __expf is faster than expf and accurate to 16 bits or more; f16 has 11 bits and bf16 has 8.
  const float power = std::is_same_v<T, float> ? expf(-sum) : __expf(-sum);
  return __fdividef(sum, 1.F + power);
}

/// Stores the last taps - 1 elements of the sequence (the past followed by x) as the new state. One thread stores them
/// in ascending order, because the state may overwrite the past in place.
template <class T>
__device__ void store_state(const CausalTask<T>& task, std::int64_t row) {
  const std::int64_t state = task.taps - 1;
  const T* x = task.x + row * task.length;
  T* present = task.present + row * state;
  for (std::int64_t i = 0; i < state; ++i) {
    const std::int64_t at = i + task.length - state;  // the index in x
    if (at >= 0) {
      present[i] = x[at];
    } else {
      present[i] = task.past == nullptr ? T(0.F) : task.past[row * state + i + task.length];
    }
  }
}

/// Computes one row per thread. The elements of the current sum are held in registers and shifted by one per step.
template <class T, int Taps>
__global__ void __launch_bounds__(spread_most_threads) slide_along_rows(CausalTask<T> task) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= task.rows) return;
  const int channel = static_cast<int>(row) % static_cast<int>(task.channels);
  const float bias = task.bias == nullptr ? 0.F : static_cast<float>(task.bias[channel]);
  float weight[Taps];
#pragma unroll
  for (int tap = 0; tap < Taps; ++tap) {
    weight[tap] = static_cast<float>(task.weight[std::int64_t{channel} * Taps + tap]);
  }
  T window[Taps];
#pragma unroll
  for (int tap = 0; tap + 1 < Taps; ++tap) {
    window[tap] = task.past == nullptr ? T(0.F) : task.past[row * (Taps - 1) + tap];
  }
  for (std::int64_t place = 0; place < task.length; ++place) {
    window[Taps - 1] = task.x[row * task.length + place];
    float sum = bias;
#pragma unroll
    for (int tap = 0; tap < Taps; ++tap) sum += weight[tap] * static_cast<float>(window[tap]);
    task.y[row * task.length + place] = static_cast<T>(activated(task, sum));
#pragma unroll
    for (int tap = 0; tap + 1 < Taps; ++tap) window[tap] = window[tap + 1];
  }
#pragma unroll
  for (int tap = 0; tap + 1 < Taps; ++tap) task.present[row * (Taps - 1) + tap] = window[tap];
}

/// Computes one row per thread for any number of taps, reading the elements of every sum from memory.
template <class T>
__global__ void __launch_bounds__(spread_most_threads) walk_along_rows(CausalTask<T> task) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row >= task.rows) return;
  const std::int64_t state = task.taps - 1;
  const int channel = static_cast<int>(row) % static_cast<int>(task.channels);
  const T* weight = task.weight + std::int64_t{channel} * task.taps;
  const T* x = task.x + row * task.length;
  for (std::int64_t place = 0; place < task.length; ++place) {
    float sum = task.bias == nullptr ? 0.F : static_cast<float>(task.bias[channel]);
    for (std::int64_t tap = 0; tap < task.taps; ++tap) {
      const std::int64_t at = place + tap - state;  // the index in x
      float element = 0;
      if (at >= 0) {
        element = static_cast<float>(x[at]);
      } else if (task.past != nullptr) {
        element = static_cast<float>(task.past[row * state + place + tap]);
      }
      sum += static_cast<float>(weight[tap]) * element;
    }
    task.y[row * task.length + place] = static_cast<T>(activated(task, sum));
  }
  store_state(task, row);
}

/// Returns the maximum number of vectors of `width` elements that a row of `length` elements touches. Rows are divided
/// at addresses that are multiples of 128 bits, so a row that begins within a vector touches one vector more, and its
/// first and last vector may contain elements of neighboring rows.
constexpr std::int64_t vectors_of(std::int64_t length, std::int64_t width) {
  return ceil_divide(length + (length % width == 0 ? 0 : width - 1), width);
}

/// Returns a vector of the elements of a row from index `first` on. Negative indices denote elements of the past, or
/// zeros if there is no past. Elements after the end of the row are unspecified.
template <class T>
__device__ Vector<T, widest<T>> load_elements(const CausalTask<T>& task, std::int64_t row, std::int64_t first) {
  constexpr int width = widest<T>;
  using V = Vector<T, width>;
  const T* const x = task.x + row * task.length;
  if (first >= 0) {
    const std::int64_t left = (task.rows - row) * task.length - first;
    return left >= width ? V::load(x + first) : V::load_first(x + first, static_cast<int>(left));
  }
  const std::int64_t state = task.taps - 1;
  T elements[width];
#pragma unroll
  for (int i = 0; i < width; ++i) {
    const std::int64_t at = first + i;
    if (at >= 0) {
      elements[i] = at < task.length ? x[at] : T(0.F);
    } else {
      elements[i] = task.past != nullptr && state + at >= 0 ? task.past[row * state + state + at] : T(0.F);
    }
  }
  return V::of(elements);
}

/// Applies the activation to `sums` and stores them as the results of a row from index `first` on. If `stores_state` is
/// true, the thread of the last vector of the row also stores the state.
template <class T>
__device__ void finish(const CausalTask<T>& task, std::int64_t row, std::int64_t first, float (&sums)[widest<T>],
                       bool stores_state) {
  constexpr int width = widest<T>;
#pragma unroll
  for (float& sum : sums) sum = activated(task, sum);
  const auto y = Vector<T, width>::pack(sums);
  T* const to = task.y + row * task.length + first;
  if (first >= 0 && first + width <= task.length) {
    y.store(to);
  } else {
    y.store_between(to, static_cast<int>(::max(-first, std::int64_t{0})),
                    static_cast<int>(::min(task.length - first, std::int64_t{width})));
  }
  if (stores_state && first + width >= task.length) store_state(task, row);
}

/// Computes `Count` vectors of a row per thread, and loads all of them before it computes. Each result depends only on
/// the elements of its own vector and of the vector before it, since usual_taps is not larger than a vector.
template <class T, int Count>
__global__ void __launch_bounds__(spread_most_threads)
    convolve_vectors(CausalTask<T> task, Divisor by_threads, int threads_of_row, int vectors_of_row,
                     Divisor by_channels, bool stores_state) {
  constexpr int width = widest<T>;
  static_assert(usual_taps <= width);
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread >= task.rows * threads_of_row) return;
  const int row = by_threads.quotient(static_cast<int>(thread));
  const int vector = static_cast<int>(thread) - row * threads_of_row;
  const std::int64_t in_vector = row * task.length % width;
  const auto first_of = [&](int i) { return std::int64_t{vector + i * threads_of_row} * width - in_vector; };
  const auto exists = [&](int i) { return vector + i * threads_of_row < vectors_of_row && first_of(i) < task.length; };

  using V = Vector<T, width>;
  V upper[Count];
  V lower[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    if (!exists(i)) continue;
    upper[i] = load_elements(task, row, first_of(i));
    lower[i] = load_elements(task, row, first_of(i) - width);
  }
  const int channel = by_channels.remainder(row);
  const float bias = task.bias == nullptr ? 0.F : static_cast<float>(task.bias[channel]);
  float weight[usual_taps];
#pragma unroll
  for (int tap = 0; tap < usual_taps; ++tap) {
    weight[tap] = static_cast<float>(task.weight[std::int64_t{channel} * usual_taps + tap]);
  }
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    if (!exists(i)) continue;
    float elements[2 * width];
    lower[i].unpack(*reinterpret_cast<float(*)[width]>(elements));
    upper[i].unpack(*reinterpret_cast<float(*)[width]>(elements + width));
    float sums[width];
#pragma unroll
    for (int j = 0; j < width; ++j) {
      sums[j] = bias;
#pragma unroll
      for (int back = 0; back < usual_taps; ++back) {
        sums[j] += weight[usual_taps - 1 - back] * elements[width + j - back];
      }
    }
    finish(task, row, first_of(i), sums, stores_state);
  }
}

/// Computes one vector of results per thread, for any number of taps. For each group of as many taps as a vector has
/// elements, the thread combines two adjacent vectors of the sequence; then it loads the next older vector for the next
/// group.
template <class T>
__global__ void __launch_bounds__(spread_most_threads)
    convolve_vectors_any(CausalTask<T> task, Divisor by_vectors, int vectors_of_row, Divisor by_channels,
                         bool stores_state) {
  constexpr int width = widest<T>;
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread >= task.rows * vectors_of_row) return;
  const int row = by_vectors.quotient(static_cast<int>(thread));
  const int vector = static_cast<int>(thread) - row * vectors_of_row;
  const std::int64_t first = std::int64_t{vector} * width - row * task.length % width;
  if (first >= task.length) return;
  const int channel = by_channels.remainder(row);
  const T* weight = task.weight + std::int64_t{channel} * task.taps;

  float upper[width];
  load_elements(task, row, first).unpack(upper);
  float sums[width];
  const float bias = task.bias == nullptr ? 0.F : static_cast<float>(task.bias[channel]);
#pragma unroll
  for (float& sum : sums) sum = bias;
  for (int newest = 0; newest < task.taps; newest += width) {  // from newer to older elements
    float lower[width];
    load_elements(task, row, first - newest - width).unpack(lower);
#pragma unroll
    for (int back = 0; back < width; ++back) {
      if (newest + back >= task.taps) break;
      const auto factor = static_cast<float>(weight[task.taps - 1 - newest - back]);
#pragma unroll
      for (int i = 0; i < width; ++i) sums[i] += factor * (i >= back ? upper[i - back] : lower[width + i - back]);
    }
#pragma unroll
    for (int i = 0; i < width; ++i) upper[i] = lower[i];
  }
  finish(task, row, first, sums, stores_state);
}

/// Stores the states in place, after the kernel that reads the past has ended.
template <class T>
__global__ void __launch_bounds__(spread_most_threads) store_states(CausalTask<T> task) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (row < task.rows) store_state(task, row);
}

/// Computes one row per thread, with the kernel that is specialized for the number of taps or with the general one.
template <class T>
Status run_rows(const CausalTask<T>& task, const CudaContext& context) {
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  auto* kernel = task.taps == usual_taps ? &slide_along_rows<T, usual_taps> : &walk_along_rows<T>;
  return launch(CausalConvWithState::name, kernel, spread_grid(task.rows, device), context, task);
}

template <class T>
Status run_vectors(const CausalTask<T>& task, const CudaContext& context) {
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  const auto vectors = static_cast<int>(vectors_of(task.length, widest<T>));
  const bool is_in_place = task.past != nullptr && task.past == task.present;
  const Divisor by_channels(static_cast<int>(task.channels));
  const auto of_several = [&]<int Count>(std::integral_constant<int, Count> /*tag*/) {
    const auto threads_of_row = static_cast<int>(ceil_divide(vectors, Count));
    return launch(CausalConvWithState::name, convolve_vectors<T, Count>,
                  spread_grid(task.rows * threads_of_row, device), context, task, Divisor(threads_of_row),
                  threads_of_row, vectors, by_channels, !is_in_place);
  };
  constexpr int several = 4;  // Used if one thread per `several` vectors still fills the GPU.
  const std::int64_t all_threads = std::int64_t{device.multiprocessors} * device.threads_per_multiprocessor;
  const auto convolve = [&] {
    if (task.taps != usual_taps) {
      return launch(CausalConvWithState::name, convolve_vectors_any<T>, spread_grid(task.rows * vectors, device),
                    context, task, Divisor(vectors), vectors, by_channels, !is_in_place);
    }
    const bool are_many = task.rows * ceil_divide(vectors, several) >= all_threads;
    return are_many ? of_several(std::integral_constant<int, several>{}) : of_several(std::integral_constant<int, 1>{});
  };
  const Status status = convolve();
  if (!status.ok() || !is_in_place) return status;
  return launch(CausalConvWithState::name, store_states<T>, spread_grid(task.rows, device), context, task);
}

template <bool InVectors>
Status run_causal(const CausalConvWithState& op, const Problem& problem, const Buffers& buffers,
                  const CudaContext& context) {
  return dispatch_floats(problem.inputs[CausalConvWithState::x].dtype, [&](auto element) -> Status {
    const CausalTask<decltype(element)> task(op, problem, buffers);
    if (task.rows == 0) return {};
    constexpr std::size_t vector_bytes = 16;
    const bool are_aligned = is_aligned(task.x, vector_bytes) && is_aligned(task.y, vector_bytes);
    return InVectors && are_aligned ? run_vectors(task, context) : run_rows(task, context);
  });
}

Status always_fits(const CausalConvWithState& /*op*/, const Problem& /*problem*/) { return {}; }

/// Returns unsupported unless rows are at least as long as the state, so that the state is a part of x and does not
/// depend on the past.
Status fits_vectors(const CausalConvWithState& /*op*/, const Problem& problem) {
  const TensorDesc& x = problem.inputs[CausalConvWithState::x];
  const auto width = 16 / static_cast<std::int64_t>(size_of(x.dtype));
  const std::int64_t length = x.extents[2];
  const std::int64_t needed = std::max(width, problem.inputs[CausalConvWithState::weight].extents[2] - 1);
  if (length < needed) {
    return unsupported("supports x with at least " + std::to_string(needed) + " elements along the last axis, found " +
                       std::to_string(length));
  }
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (vectors_of(length, width) <= most / std::max<std::int64_t>(x.extents[0] * x.extents[1], 1)) return {};
  return unsupported("supports at most 2147483647 vectors of 16 bytes in x");
}

}  // namespace

/// Returns the variants. The variant "vectors" runs the kernels of "rows" if an address is not a multiple of 16.
std::span<const Variant<CausalConvWithState>> cuda_kernels(const CausalConvWithState& /*op*/) {
  static constexpr std::array variants{Variant<CausalConvWithState>{"vectors", fits_vectors, run_causal<true>},
                                       Variant<CausalConvWithState>{"rows", always_fits, run_causal<false>}};
  return variants;
}

}  // namespace graft::ops
