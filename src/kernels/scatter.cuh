// Scattering with a reduction on the GPU. In order: the row of each update is found by a kernel of the operator's own;
// what follows is compiled once, in scatter.cu. By atomics: one kernel of the operator's own finds rows and reduces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "graft/define_operator.hpp"
#include "kernels/atomics.cuh"
#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/strides.cuh"
#include "ops/scatter.hpp"

namespace graft {

/// A problem as every kernel sees it.
struct ScatterTask {
  template <class Definition>
  ScatterTask(const Definition& op, const Problem& problem, const Buffers& buffers)
      : what(Definition::name),
        reduction(op.reduction),
        dtype(problem.inputs[0].dtype),
        sizes(Definition::sizes(problem)),
        data(buffers.inputs[0]),
        updates(buffers.inputs[2]),
        y(buffers.outputs[0]),
        workspace(static_cast<std::byte*>(buffers.workspace)) {}

  const char* what;
  ops::ScatterReduction reduction;
  DType dtype;
  ops::ScatterSizes sizes;
  const void* data;
  const void* updates;
  void* y;
  std::byte* workspace;

  [[nodiscard]] unsigned* targets(int side) const {
    return reinterpret_cast<unsigned*>(workspace + ops::ScatterPlan(sizes).targets[side]);
  }
  [[nodiscard]] int* order(int side) const {
    return reinterpret_cast<int*>(workspace + ops::ScatterPlan(sizes).order[side]);
  }
};

/// The task's targets hold the row of each update, of which those from `rows` on are left out, and its order the
/// numbers of the updates.
[[nodiscard]] Status reduce_in_order(const ScatterTask& task, const CudaContext& context);

inline constexpr int scatter_threads = 256;

/// Calls `f` with a value of the type that stores the data, and with the elements of one access as a constant: as many
/// as fill 128 bits, or one.
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

/// Threads for the accesses of so many slices, of N elements each.
[[nodiscard]] inline Grid scatter_grid(std::int64_t slices, std::int64_t slice, int N) {
  return {ceil_divide(slices * (slice / N), scatter_threads), scatter_threads};
}

/// The access of N elements to a slice that is a thread's.
template <int N>
class SliceAccess {
 public:
  __device__ explicit SliceAccess(std::int64_t slice) : of_slice_(slice / N), number_(divide(thread_, of_slice_)) {}

  /// The number of the slice; of threads beyond the last one, as many as there are or more.
  [[nodiscard]] __device__ std::int64_t slice_number() const { return number_; }
  /// Of its first element.
  [[nodiscard]] __device__ std::int64_t column() const { return (thread_ - number_ * of_slice_) * N; }

 private:
  std::int64_t thread_ = std::int64_t{blockIdx.x} * scatter_threads + threadIdx.x;
  std::int64_t of_slice_;
  std::int64_t number_;
};

/// `row_of` is called with the number of an update, and gives its row or -1. It stays where parameters are: every
/// thread would otherwise copy it to memory of its own, since its arrays are indexed (374 us against 145 us on an
/// H200).
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

/// A thread has N columns of an update.
template <class T, int N, class RowOf>
__global__ void __launch_bounds__(scatter_threads)
    reduce_updates(const __grid_constant__ RowOf row_of, ops::ScatterReduction reduction, const T* updates, T* y,
                   std::int64_t count, std::int64_t slice, std::int64_t elements) {
  const SliceAccess<N> access(slice);
  const std::int64_t update = access.slice_number();
  if (update >= count) return;
  const std::int64_t row = row_of(static_cast<int>(update));
  if (row < 0) return;
  const std::int64_t column = access.column();
  const auto loaded = *reinterpret_cast<const Elements<T, N>*>(updates + update * slice + column);  // all at once
  reduce_atomically(reduction, y, row * slice + column, elements, loaded);
}

template <class RowOf>
[[nodiscard]] Status scatter_by_atomics(const ScatterTask& task, const RowOf& row_of, const CudaContext& context) {
  const ops::ScatterSizes& sizes = task.sizes;
  const std::int64_t elements = sizes.rows * sizes.slice;
  if (elements == 0) return {};
  const auto bytes = static_cast<std::size_t>(elements) * size_of(task.dtype);
  const auto error = cudaMemcpyAsync(task.y, task.data, bytes, cudaMemcpyDeviceToDevice, context.stream);
  if (Status copied = cuda_status(error, task.what); !copied.ok()) return copied;
  return with_accesses(task, [&](auto element, auto width) {
    using T = decltype(element);
    return launch(task.what, reduce_updates<T, width, RowOf>, scatter_grid(sizes.updates, sizes.slice, width), context,
                  row_of, task.reduction, static_cast<const T*>(task.updates), static_cast<T*>(task.y), sizes.updates,
                  sizes.slice, elements);
  });
}

template <class RowOf>
[[nodiscard]] Status scatter(const ScatterTask& task, bool by_atomics, const RowOf& row_of,
                             const CudaContext& context) {
  if (by_atomics) return scatter_by_atomics(task, row_of, context);
  const ops::ScatterSizes& sizes = task.sizes;
  if (Status found = launch(
          task.what, find_targets<RowOf>, {ceil_divide(sizes.updates, scatter_threads), scatter_threads}, context,
          row_of, task.targets(0), task.order(0), static_cast<int>(sizes.updates), static_cast<unsigned>(sizes.rows));
      !found.ok()) {
    return found;
  }
  return reduce_in_order(task, context);
}

/// Rows and updates are counted in 31 bits.
template <class Definition>
[[nodiscard]] Status fits_counts(const Problem& problem) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const ops::ScatterSizes sizes = Definition::sizes(problem);
  if (sizes.rows <= most && sizes.updates <= most) return {};
  return unsupported(std::to_string(sizes.updates) + " updates of " + std::to_string(sizes.rows) +
                     " rows, allowed are 2147483647 of either");
}

template <class Definition>
[[nodiscard]] Status fits_in_order(const Definition& op, const Problem& problem) {
  if (ops::is_always_atomic(op.reduction, op.deterministic, problem.inputs[0].dtype)) {
    return unsupported("the order does not matter, and atomics need no workspace");
  }
  return fits_counts<Definition>(problem);
}

/// Where the order does not matter, as of integers, or may be any, as of sums where it was said.
template <class Definition>
[[nodiscard]] Status fits_atomics(const Definition& op, const Problem& problem) {
  using enum ops::ScatterReduction;
  if (op.reduction == mul) return unsupported("there is no atomic multiplication");
  if (is_floating_point(problem.inputs[0].dtype)) {
    if (op.reduction != add) return unsupported("of floating-point numbers only sums are atomic");
    if (op.deterministic) return unsupported("a deterministic sum of floating-point numbers has an order");
    // On an H200 memory adds 1.5 TB/s of f32, while those in order are read at twice the speed once they are sorted:
    // 372 us against 248 us for a million slices of 128, 372 us against 211 us for half as many of 256.
    constexpr std::int64_t wide = 128;
    constexpr std::int64_t many = std::int64_t{1} << 26;
    const ops::ScatterSizes sizes = Definition::sizes(problem);
    if (problem.inputs[0].dtype == DType::f32 && sizes.slice >= wide && sizes.updates >= many / sizes.slice) {
      return unsupported("many wide slices of f32 are added faster in order");
    }
  }
  return fits_counts<Definition>(problem);
}

/// Those of a definition for which `Run` calls scatter.
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
