// CUDA kernels of SelectRows: one block numbers the selected rows, then each thread copies an element.
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "select_rows/select_rows.hpp"

namespace my_ops {
namespace {

constexpr int threads = 256;
constexpr int warp = 32;
constexpr int numbering_threads = 1024;

/// Numbers the selected rows in their order, so that two runs give the same result. `count` is the value of the size
/// output.
template <class T, class Size>
__global__ void number_rows(const T* score, std::int64_t* positions, Size* count, std::int64_t rows, float threshold) {
  __shared__ int of_warps[numbering_threads / warp];
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int own_warp = static_cast<int>(threadIdx.x) / warp;
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < rows; first += numbering_threads) {
    const std::int64_t row = first + threadIdx.x;
    const bool is_selected = (row < rows) && (static_cast<float>(score[row]) > threshold);
    const unsigned selected = __ballot_sync(0xffffffffU, is_selected);
    if (lane == 0) of_warps[own_warp] = __popc(selected);
    __syncthreads();
    int in_earlier_warps = 0;
    int in_all_warps = 0;
    for (int each = 0; each < numbering_threads / warp; ++each) {
      if (each < own_warp) in_earlier_warps += of_warps[each];
      in_all_warps += of_warps[each];
    }
    const int in_earlier_lanes = __popc(selected & ((1U << lane) - 1));
    if (row < rows) positions[row] = is_selected ? before + in_earlier_warps + in_earlier_lanes : -1;
    before += in_all_warps;
    __syncthreads();  // before of_warps is overwritten
  }
  if (threadIdx.x == 0) *count = static_cast<Size>(before);
}

template <class T>
__global__ void copy_rows(const T* x, const std::int64_t* positions, T* y, std::int64_t elements,
                          std::int64_t columns) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= elements) return;
  const std::int64_t position = positions[i / columns];
  if (position >= 0) y[position * columns + i % columns] = x[i];
}

graft::Status fits(const SelectRows& /*op*/, const graft::Problem& /*problem*/) { return {}; }

graft::Status run_ordered(const SelectRows& op, const graft::Problem& problem, const graft::Buffers& buffers,
                          const graft::CudaContext& context) {
  const std::int64_t rows = problem.inputs[0].extents[0];
  const std::int64_t columns = problem.inputs[0].extents[1];
  auto* positions = static_cast<std::int64_t*>(buffers.workspace);
  return graft::dispatch_device(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    const auto number = [&](auto* count) {
      using Size = std::remove_pointer_t<decltype(count)>;
      return graft::launch(SelectRows::name, number_rows<T, Size>, {1, numbering_threads}, context,
                           static_cast<const T*>(buffers.inputs[1]), positions, count, rows, op.threshold);
    };
    const graft::Status status = graft::dispatch_size(problem.outputs[1].dtype, buffers.outputs[1], number);
    if (!status.ok()) return status;
    return graft::launch(SelectRows::name, copy_rows<T>, {graft::ceil_divide(rows * columns, threads), threads},
                         context, static_cast<const T*>(buffers.inputs[0]), static_cast<const std::int64_t*>(positions),
                         static_cast<T*>(buffers.outputs[0]), rows * columns, columns);
  });
}

}  // namespace

/// Returns the kernels, best first. The first one that fits a problem runs.
std::span<const graft::Variant<SelectRows>> cuda_kernels(const SelectRows& /*op*/) {
  static constexpr std::array variants{graft::Variant<SelectRows>{"ordered", fits, run_ordered}};
  return variants;
}

}  // namespace my_ops
