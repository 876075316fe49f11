// CUDA kernel of RmsNorm: one warp per row.
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"
#include "rms_norm/rms_norm.hpp"

namespace my_ops {
namespace {

constexpr int threads = 256;
constexpr int warp = 32;

/// Normalizes one row per warp. The sum is in double, because the squares of large values overflow f32.
template <class T>
__global__ void rms_norm_rows(const T* x, T* y, std::int64_t rows, std::int64_t columns, float epsilon) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / warp;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  x += row * columns;
  y += row * columns;
  double sum = 0;
  for (std::int64_t i = lane; i < columns; i += warp) {
    const double value = static_cast<float>(x[i]);
    sum += value * value;
  }
  for (int offset = warp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  const double root = sqrt(sum / static_cast<double>(columns) + static_cast<double>(epsilon));
  for (std::int64_t i = lane; i < columns; i += warp) {
    y[i] = static_cast<T>(static_cast<float>(static_cast<float>(x[i]) / root));
  }
}

graft::Status fits(const RmsNorm& /*op*/, const graft::Problem& /*problem*/) { return {}; }

graft::Status run_rows(const RmsNorm& op, const graft::Problem& problem, const graft::Buffers& buffers,
                       const graft::CudaContext& context) {
  const graft::Extents& extents = problem.inputs[0].extents;
  const std::int64_t columns = extents[extents.rank() - 1];
  if (extents.element_count() == 0) return {};
  const std::int64_t rows = extents.element_count() / columns;
  return graft::dispatch_device(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    return graft::launch(RmsNorm::name, rms_norm_rows<T>, {graft::ceil_divide(rows * warp, threads), threads}, context,
                         static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]), rows, columns,
                         op.epsilon);
  });
}

}  // namespace

/// Returns the kernels, best first. The first one that fits a problem runs.
std::span<const graft::Variant<RmsNorm>> cuda_kernels(const RmsNorm& /*op*/) {
  static constexpr std::array variants{graft::Variant<RmsNorm>{"rows", fits, run_rows}};
  return variants;
}

}  // namespace my_ops
