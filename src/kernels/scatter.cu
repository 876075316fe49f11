// Kernels that scatter with a reduction in order: updates are sorted by their row (CUB's radix sort keeps the order of
// equal keys), and the threads of a row reduce its updates one after the other.
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/scatter.cuh"
#include "kernels/sort.cuh"

namespace graft {
namespace {

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, T, float>;

/// Sets runs[row] to the range of the sorted updates of each row: x is the index of the first one, y the index after
/// the last one. `targets` contains the row of each sorted update. Rows without updates are not written.
__global__ void find_runs(const unsigned* targets, int2* runs, int updates, unsigned rows) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread >= updates) return;
  const auto at = static_cast<int>(thread);
  const unsigned row = targets[at];
  if (row >= rows) return;
  if (at == 0 || targets[at - 1] != row) runs[row].x = at;
  if (at == updates - 1 || targets[at + 1] != row) runs[row].y = at + 1;
}

template <class T, int N>
__device__ void reduce(ScatterReduction reduction, Sum<T> (&sums)[N], const Elements<T, N>& update) {
#pragma unroll
  for (int i = 0; i < N; ++i) sums[i] = reduced(reduction, sums[i], static_cast<Sum<T>>(update.at[i]));
}

/// Computes y from data and the sorted updates of each row. A thread computes N columns of a row.
template <class T, int N>
__global__ void __launch_bounds__(scatter_threads)
    reduce_runs(ScatterReduction reduction, const T* data, const T* updates, T* y, const int2* runs, const int* order,
                std::int64_t rows, std::int64_t slice, SliceAccesses accesses) {
  constexpr int loads = 4;  // the number of accesses that a thread loads at once
  const auto [row, access] = accesses.place();
  if (row >= rows) return;
  const std::int64_t column = access * N;
  const int2 run = runs[row];
  using Access = Elements<T, N>;
  const Access before = *reinterpret_cast<const Access*>(data + row * slice + column);
  Sum<T> sums[N];
#pragma unroll
  for (int i = 0; i < N; ++i) sums[i] = static_cast<Sum<T>>(before.at[i]);
  const auto load = [&](int at) {
    return *reinterpret_cast<const Access*>(updates + std::int64_t{order[at]} * slice + column);
  };
  int at = run.x;
  for (; at + loads <= run.y; at += loads) {
    Access several[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) several[i] = load(at + i);
#pragma unroll
    for (int i = 0; i < loads; ++i) reduce<T, N>(reduction, sums, several[i]);
  }
  for (; at < run.y; ++at) reduce<T, N>(reduction, sums, load(at));
  Access after;
#pragma unroll
  for (int i = 0; i < N; ++i) after.at[i] = static_cast<T>(sums[i]);
  *reinterpret_cast<Access*>(y + row * slice + column) = after;
}

/// Copies data to y. A thread copies N elements, or one of the remaining elements. If `state` is not null, the kernel
/// also sets its has_order if there are elements whose order matters.
template <class T, int N>
__global__ void __launch_bounds__(scatter_threads)
    copy_numbers(const T* data, T* y, std::int64_t count, ExtremesState* state) {
  let_next_kernel_begin();
  const std::int64_t thread = std::int64_t{blockIdx.x} * scatter_threads + threadIdx.x;
  const std::int64_t vectors = count / N;
  const auto copy = [&](const auto* from, auto* to) {
    const auto numbers = *from;
    *to = numbers;
    return numbers;
  };
  bool found = false;
  if (thread < vectors) {
    using Access = Elements<T, N>;
    const Access numbers = copy(reinterpret_cast<const Access*>(data) + thread, reinterpret_cast<Access*>(y) + thread);
    if (state == nullptr) return;
#pragma unroll
    for (int i = 0; i < N; ++i) found = found || has_order(static_cast<float>(numbers.at[i]));
  } else {
    const std::int64_t rest = vectors * N + (thread - vectors);
    if (rest >= count) return;
    const T number = copy(data + rest, y + rest);
    found = has_order(static_cast<float>(number));
  }
  if (found && state != nullptr) state->has_order = 1;
}

/// Sorts the updates by their row. `side` is set to the index of the double buffer that contains the sorted rows and,
/// for each of them, the index of its update.
Status sort_updates(const ScatterTask& task, const CudaContext& context, int& side) {
  const ScatterPlan plan(task.sizes);
  cub::DoubleBuffer<unsigned> targets(task.targets(0), task.targets(1));
  cub::DoubleBuffer<int> order(task.order(0), task.order(1));
  const int bits = std::bit_width(static_cast<unsigned>(task.sizes.rows));
  const auto sort = [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, targets, order, static_cast<int>(task.sizes.updates), 0,
                                           bits, context.stream);
  };
  if (Status sorted = sort_within(task.what, sort, task.workspace + plan.sort, plan.sort_bytes); !sorted.ok()) {
    return sorted;
  }
  side = targets.selector;
  return targets.selector == order.selector ? Status{} : unsupported("CUB left keys and values in different buffers");
}

}  // namespace

Status reduce_in_order(const ScatterTask& task, const CudaContext& context) {
  const ScatterSizes& sizes = task.sizes;
  auto* runs = reinterpret_cast<int2*>(task.workspace + ScatterPlan(sizes).runs);
  const auto run_bytes = static_cast<std::size_t>(sizes.rows) * sizeof(int2);
  if (Status cleared = cuda_status(cudaMemsetAsync(runs, 0, run_bytes, context.stream), task.what); !cleared.ok()) {
    return cleared;
  }
  int side = 0;
  if (sizes.updates > 0) {
    if (Status sorted = sort_updates(task, context, side); !sorted.ok()) return sorted;
  }
  if (Status found =
          launch(task.what, find_runs, {ceil_divide(sizes.updates, scatter_threads), scatter_threads}, context,
                 task.targets(side), runs, static_cast<int>(sizes.updates), static_cast<unsigned>(sizes.rows));
      !found.ok()) {
    return found;
  }
  return with_accesses(task, [&](auto element, auto width) {
    using T = decltype(element);
    const SliceAccesses accesses(sizes.rows, sizes.slice, width);
    return launch(task.what, reduce_runs<T, width>, accesses.grid(), context, task.reduction,
                  static_cast<const T*>(task.data), static_cast<const T*>(task.updates), static_cast<T*>(task.y), runs,
                  task.order(side), sizes.rows, sizes.slice, accesses);
  });
}

Status copy_data(const ScatterTask& task, ExtremesState* state, const CudaContext& context) {
  const std::int64_t elements = task.sizes.rows * task.sizes.slice;
  const auto copy = [&](auto element, auto width) {
    using T = decltype(element);
    const std::int64_t threads = elements / width + elements % width;
    const Grid grid{.blocks = ceil_divide(threads, scatter_threads), .threads = scatter_threads};
    return launch(task.what, copy_numbers<T, width>, grid, context, static_cast<const T*>(task.data),
                  static_cast<T*>(task.y), elements, state);
  };
  return dispatch_numbers(task.dtype, [&](auto element) -> Status {
    constexpr int N = widest<decltype(element)>;
    if (is_aligned(task.data, 16) && is_aligned(task.y, 16)) return copy(element, std::integral_constant<int, N>{});
    return copy(element, std::integral_constant<int, 1>{});
  });
}

}  // namespace graft
