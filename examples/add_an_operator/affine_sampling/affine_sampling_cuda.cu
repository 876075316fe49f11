// CUDA kernel of AffineSampling: a thread for each point, in f32.
#include "affine_sampling/affine_sampling.hpp"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"

namespace my {
namespace {

constexpr int threads = 256;

/// The spatial sizes of the images, as a kernel argument.
struct Sizes {
  int axes;
  std::int64_t at[3];
};

template <class T>
__global__ void affine_points(const T* theta, T* grid, Sizes sizes, bool align_corners, std::int64_t count) {
  const std::int64_t point = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (point >= count) return;
  const int axes = sizes.axes;
  float place[4];  // x first, then y and z, and a 1
  std::int64_t rest = point;
  for (int axis = axes - 1; axis >= 0; --axis) {
    const std::int64_t size = sizes.at[axis];
    const std::int64_t divisor = !align_corners ? size : size > 1 ? size - 1 : 1;
    place[axes - 1 - axis] = static_cast<float>(2 * (rest % size) - (size - 1)) / static_cast<float>(divisor);
    rest /= size;
  }
  place[axes] = 1;
  for (int row = 0; row < axes; ++row) {
    float sum = 0;
    for (int column = 0; column <= axes; ++column) {
      sum += static_cast<float>(theta[(rest * axes + row) * (axes + 1) + column]) * place[column];
    }
    grid[point * axes + row] = static_cast<T>(sum);
  }
}

graft::Status fits(const AffineSampling& /*op*/, const graft::Problem& /*problem*/) { return {}; }

graft::Status run_scalar(const AffineSampling& op, const graft::Problem& problem, const graft::Buffers& buffers,
                         const graft::CudaContext& context) {
  return graft::dispatch_device(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    const graft::Extents& grid = problem.outputs[0].extents;
    Sizes sizes{grid.rank() - 2, {}};
    for (int axis = 0; axis < sizes.axes; ++axis) sizes.at[axis] = grid[1 + axis];
    const std::int64_t count = grid.element_count() / sizes.axes;
    return graft::launch(AffineSampling::name, affine_points<T>, {graft::ceil_divide(count, threads), threads}, context,
                         static_cast<const T*>(buffers.inputs[0]), static_cast<T*>(buffers.outputs[0]), sizes,
                         op.align_corners, count);
  });
}

}  // namespace

std::span<const graft::Variant<AffineSampling>> cuda_kernels(const AffineSampling& /*op*/) {
  static constexpr std::array variants{graft::Variant<AffineSampling>{"scalar", fits, run_scalar}};
  return variants;
}

}  // namespace my
