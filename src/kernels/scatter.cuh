// Scatters with a reduction on the GPU. In order: a kernel of each operator finds the row of each update; the kernels
// after it are compiled once, in scatter.cu. With atomics: y is initialized with a copy of data, into which one kernel
// of each operator reduces the updates. Minima and maxima of floating-point numbers are in scatter_extremes.cuh.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "core/scatter.hpp"
#include "graft/operator/define_operator.hpp"
#include "kernels/atomics.cuh"
#include "kernels/divisor.cuh"
#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/overlap.cuh"
#include "kernels/scatter_extremes.cuh"
#include "kernels/scatter_task.cuh"
#include "kernels/strides.cuh"

namespace graft {

/// Computes y from data and the updates, in the order of the updates. `targets` of the task contains the row of each
/// update, and `order` the indices of the updates. Updates whose row is not below `rows` are skipped.
[[nodiscard]] Status reduce_in_order(const ScatterTask& task, const CudaContext& context);

/// Calls `f` with a value of the data's device type, and with the number of elements in one access as a constant: as
/// many as fill 128 bits, or one.
template <class F>
[[nodiscard]] Status with_accesses(const ScatterTask& task, F&& f) {
  return dispatch_numbers(task.dtype, [&](auto element) -> Status {
    using T = decltype(element);
    constexpr int bytes = 16;
    const bool is_wide = task.sizes.slice % widest<T> == 0 && is_aligned(task.data, bytes) &&
                         is_aligned(task.updates, bytes) && is_aligned(task.y, bytes);
    if (is_wide) return f(element, std::integral_constant<int, widest<T>>{});
    return f(element, std::integral_constant<int, 1>{});
  });
}

/// Divides slices into accesses of N elements, one access per thread. A slice consists of the contiguous elements of
/// one row or of one update.
class SliceAccesses {
 public:
  SliceAccesses(std::int64_t slices, std::int64_t slice, int N) : all_(slices * (slice / N)), of_slice_(slice / N) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - scatter_threads;
    is_small_ = all_ <= most;
    if (is_small_ && of_slice_ > 0) by_slice_ = Divisor(static_cast<int>(of_slice_));
  }

  [[nodiscard]] Grid grid() const { return {.blocks = ceil_divide(all_, scatter_threads), .threads = scatter_threads}; }

  struct Place {
    /// The index of the slice. For threads beyond the last access it is at least the number of slices.
    std::int64_t slice;
    std::int64_t access;  ///< The index of the access within the slice.
  };
  [[nodiscard]] __device__ Place place() const {
    const std::int64_t thread = std::int64_t{blockIdx.x} * scatter_threads + threadIdx.x;
    const std::int64_t slice = is_small_ ? by_slice_.quotient(static_cast<int>(thread)) : divide(thread, of_slice_);
    return {slice, thread - slice * of_slice_};
  }

 private:
  std::int64_t all_;
  std::int64_t of_slice_;
  Divisor by_slice_;
  bool is_small_ = false;
};

/// Sets targets[i] to the row of update i, and order[i] to i. `row_of(i)` returns the row, or -1 for an update to skip,
/// whose target becomes `rows`. `row_of` stays in parameter memory. Otherwise every thread would copy it to local
/// memory, because its arrays are indexed (374 us against 145 us on an H200).
template <class RowOf>
__global__ void find_targets(const __grid_constant__ RowOf row_of, unsigned* targets, int* order, int updates,
                             unsigned rows) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (thread >= updates) return;
  const auto update = static_cast<int>(thread);
  const std::int64_t row = row_of(update);
  targets[update] = row < 0 ? rows : static_cast<unsigned>(row);
  order[update] = update;
}

/// Reduces the updates into y with atomics. A thread reduces N adjacent elements of an update.
template <class T, int N, class RowOf>
__global__ void __launch_bounds__(scatter_threads)
    reduce_updates(const __grid_constant__ RowOf row_of, ScatterReduction reduction, const T* updates, T* y,
                   std::int64_t count, std::int64_t slice, std::int64_t elements, SliceAccesses accesses) {
  const auto [update, access] = accesses.place();
  if (update >= count) return;
  const std::int64_t row = row_of(static_cast<int>(update));
  if (row < 0) return;
  const std::int64_t column = access * N;
  // The update is loaded in one access.
  const auto loaded = *reinterpret_cast<const Elements<T, N>*>(updates + update * slice + column);
  wait_for_kernel_ahead();
  reduce_atomically(reduction, y, row * slice + column, elements, loaded);
}

template <class RowOf>
[[nodiscard]] Status scatter_by_atomics(const ScatterTask& task, const RowOf& row_of, const CudaContext& context) {
  const ScatterSizes& sizes = task.sizes;
  const std::int64_t elements = sizes.rows * sizes.slice;
  if (elements == 0) return {};
  if (has_atomic_extremes(task.reduction, task.dtype, sizes)) return scatter_extremes(task, row_of, context);
  if (Status copied = copy_data(task, nullptr, context); !copied.ok()) return copied;
  return with_accesses(task, [&](auto element, auto width) {
    using T = decltype(element);
    const SliceAccesses accesses(sizes.updates, sizes.slice, width);
    Grid grid = accesses.grid();
    grid.overlaps = true;
    return launch(task.what, reduce_updates<T, width, RowOf>, grid, context, row_of, task.reduction,
                  static_cast<const T*>(task.updates), static_cast<T*>(task.y), sizes.updates, sizes.slice, elements,
                  accesses);
  });
}

template <class RowOf>
[[nodiscard]] Status scatter(const ScatterTask& task, bool by_atomics, const RowOf& row_of,
                             const CudaContext& context) {
  if (by_atomics) return scatter_by_atomics(task, row_of, context);
  const ScatterSizes& sizes = task.sizes;
  if (Status found = launch(
          task.what, find_targets<RowOf>, {ceil_divide(sizes.updates, scatter_threads), scatter_threads}, context,
          row_of, task.targets(0), task.order(0), static_cast<int>(sizes.updates), static_cast<unsigned>(sizes.rows));
      !found.ok()) {
    return found;
  }
  return reduce_in_order(task, context);
}

/// Returns unsupported if the number of rows or updates does not fit into 31 bits.
template <class Definition>
[[nodiscard]] Status fits_counts(const Problem& problem) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const ScatterSizes sizes = Definition::sizes(problem);
  if (sizes.rows <= most && sizes.updates <= most) return {};
  return unsupported("supports at most 2147483647 updates and rows, found " + std::to_string(sizes.updates) +
                     " updates of " + std::to_string(sizes.rows) + " rows");
}

template <class Definition>
[[nodiscard]] Status fits_in_order(const Definition& op, const Problem& problem) {
  if (is_always_atomic(op.reduction, op.deterministic, problem.inputs[0].dtype, Definition::sizes(problem))) {
    return unsupported(
        "the order of the updates does not change the result or may be arbitrary, and atomics need no workspace");
  }
  return fits_counts<Definition>(problem);
}

/// Returns ok if the order of updates is irrelevant (integers and most minima and maxima) or arbitrary (sums that need
/// not be `deterministic`), and if atomics are faster than reducing in order. Otherwise returns unsupported with the
/// reason.
template <class Definition>
[[nodiscard]] Status fits_atomics(const Definition& op, const Problem& problem) {
  using enum ScatterReduction;
  const DType dtype = problem.inputs[0].dtype;
  const ScatterSizes sizes = Definition::sizes(problem);
  if (op.reduction == mul) return unsupported("CUDA has no atomic multiplication");
  if (is_faster_in_order(dtype, sizes)) return unsupported("many wide slices are reduced faster in a fixed order");
  if (has_atomic_extremes(op.reduction, dtype, sizes)) return fits_counts<Definition>(problem);
  if (is_floating_point(dtype)) {
    if (op.reduction != add) return unsupported("minimum and maximum of long slices are faster in a fixed order");
    if (op.deterministic) return unsupported("a deterministic sum of floating-point values needs a fixed order");
  }
  return fits_counts<Definition>(problem);
}

/// Returns the variants of a definition. `Run` is the definition's function that calls scatter().
template <class Definition,
          Status (*Run)(const Definition&, const Problem&, const Buffers&, const CudaContext&, bool by_atomics)>
[[nodiscard]] std::span<const Variant<Definition>> scatter_variants() {
  static constexpr std::array variants{
      Variant<Definition>{"atomics", fits_atomics<Definition>,
                          [](const Definition& op, const Problem& problem, const Buffers& buffers,
                             const CudaContext& context) { return Run(op, problem, buffers, context, true); }},
      Variant<Definition>{"in_order", fits_in_order<Definition>,
                          [](const Definition& op, const Problem& problem, const Buffers& buffers,
                             const CudaContext& context) { return Run(op, problem, buffers, context, false); }}};
  return variants;
}

}  // namespace graft
