// CUDA kernel of MultiScaleDeformableAttention. The channels of a query's head are contiguous, so a group of a few
// threads holds one vector of channels per thread, and a warp has several groups. The pixels and coefficients of a
// point are the same for all channels: the threads of a warp compute them, one point per thread, and exchange them
// through shared memory. The groups of a warp are queries of one head, because neighboring queries read neighboring
// pixels.
#include <algorithm>
#include <bit>

#include "kernels/launch.cuh"
#include "kernels/numbers.cuh"
#include "kernels/vector.cuh"
#include "ops/multi_scale_deformable_attention/multi_scale_deformable_attention.hpp"
#include "ops/multi_scale_deformable_attention/sampling.hpp"

namespace graft::ops {
namespace {

constexpr int warp_threads = 32;
constexpr int attention_warps = 4;    // the number of warps of a block
constexpr int prepared_points = 128;  // the number of points that a warp prepares at a time

/// The sizes of a problem and the division of its work, which all blocks share.
struct AttentionSizes {
  std::int64_t pixels;
  std::int64_t heads;
  std::int64_t channels;
  std::int64_t queries;
  std::int64_t slices;  ///< The number of slices into which a head's channels are divided; a group computes one slice.
  std::int64_t groups;  ///< B*M*slices*Q
  int points;
  int levels;
  int ends[MultiScaleDeformableAttention::most_levels];  ///< The index after the last point of each level.
  bool has_narrow_shapes;                                ///< Whether spatial_shapes is i32; otherwise it is i64.
  int lanes;                                             ///< The number of threads in a group, a power of two.
  int chunk_bits;                                        ///< A group's points are prepared in chunks of 2^chunk_bits.
};

template <class T, int N>
__global__ void __launch_bounds__(attention_warps* warp_threads)
    attend(const T* value, const void* spatial_shapes, const T* locations, const T* weights, T* y,
           const __grid_constant__ AttentionSizes sizes) {
  __shared__ AttentionLevel levels[MultiScaleDeformableAttention::most_levels];
  __shared__ int4 block_pixels[attention_warps][prepared_points];
  __shared__ float4 block_coefficients[attention_warps][prepared_points];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < sizes.levels) levels[thread] = level_at(spatial_shapes, sizes.has_narrow_shapes, thread, sizes.pixels);
  __syncthreads();

  const int lane = thread % warp_threads;
  int4* pixels = block_pixels[thread / warp_threads];
  float4* coefficients = block_coefficients[thread / warp_threads];
  const int warp_groups = warp_threads / sizes.lanes;
  const int group_of_warp = lane / sizes.lanes;
  const std::int64_t warp = std::int64_t{blockIdx.x} * attention_warps + thread / warp_threads;
  const std::int64_t group = warp * warp_groups + group_of_warp;
  const bool has_group = group < sizes.groups;
  const std::int64_t query = group % sizes.queries;
  const std::int64_t slice = group / sizes.queries % sizes.slices;
  const std::int64_t head_of_item = group / sizes.queries / sizes.slices;
  const std::int64_t head = head_of_item % sizes.heads;
  const std::int64_t item = head_of_item / sizes.heads;
  const std::int64_t row = has_group ? (item * sizes.queries + query) * sizes.heads + head : -1;
  const std::int64_t channel = (slice * sizes.lanes + lane % sizes.lanes) * N;
  const bool has_channels = has_group && channel < sizes.channels;
  const int pixel_stride = static_cast<int>(sizes.heads * sizes.channels);
  const T* from = value + item * sizes.pixels * sizes.heads * sizes.channels + head * sizes.channels + channel;

  float sums[N] = {};
  const int chunk = 1 << sizes.chunk_bits;
  for (int first = 0; first < sizes.points; first += chunk) {
    __syncwarp();
    for (int begin = 0; begin < warp_groups * chunk; begin += warp_threads) {
      const int each = begin + lane;
      const int of_group = ::min(each >> sizes.chunk_bits, warp_groups - 1);
      const std::int64_t row_of_group = __shfl_sync(0xFFFFFFFFU, row, of_group * sizes.lanes);
      const int of_chunk = each & (chunk - 1);
      const int point = first + of_chunk;
      if (each >= warp_groups * chunk || point >= sizes.points || row_of_group < 0) continue;
      int level = 0;
      while (point >= sizes.ends[level]) ++level;
      const std::int64_t at = row_of_group * sizes.points + point;
      const AttentionCorners corners =
          corners_at(static_cast<float>(locations[2 * at]), static_cast<float>(locations[2 * at + 1]),
                     static_cast<float>(weights[at]), levels[level], sizes.pixels);
      const int slot = of_chunk * warp_groups + of_group;
      pixels[slot] = {corners.pixels[0], corners.pixels[1], corners.pixels[2], corners.pixels[3]};
      coefficients[slot] = {corners.weights[0], corners.weights[1], corners.weights[2], corners.weights[3]};
    }
    __syncwarp();
    if (!has_channels) continue;
    const int count = ::min(chunk, sizes.points - first);
#pragma unroll 2
    for (int point = 0; point < count; ++point) {
      const int4 pixel = pixels[point * warp_groups + group_of_warp];
      const float4 coefficient = coefficients[point * warp_groups + group_of_warp];
      const int of_corner[4] = {pixel.x, pixel.y, pixel.z, pixel.w};
      const float weight_of_corner[4] = {coefficient.x, coefficient.y, coefficient.z, coefficient.w};
      Vector<T, N> corners[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const T* pixel_of_head = from + std::int64_t{of_corner[i]} * pixel_stride;
        corners[i] = of_corner[i] < 0 ? Vector<T, N>::zero() : Vector<T, N>::load(pixel_of_head);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float channels[N];
        corners[i].unpack(channels);
#pragma unroll
        for (int c = 0; c < N; ++c) sums[c] = fmaf(weight_of_corner[i], channels[c], sums[c]);
      }
    }
  }
  if (has_channels) Vector<T, N>::pack(sums).store(y + row * sizes.channels + channel);
}

AttentionSizes sizes_of(const MultiScaleDeformableAttention& op, const Problem& problem, int vector) {
  const Extents& value = problem.inputs[0].extents;
  AttentionSizes sizes{};
  sizes.pixels = value[1];
  sizes.heads = value[2];
  sizes.channels = value[3];
  sizes.queries = problem.inputs[2].extents[1];
  sizes.has_narrow_shapes = problem.inputs[1].dtype == DType::i32;
  sizes.points = static_cast<int>(op.point_count(problem));
  sizes.levels = static_cast<int>(op.level_count(problem));
  int end = 0;
  for (std::size_t level = 0; level < op.level_count(problem); ++level) {
    end += static_cast<int>(op.points_at(level, problem));
    sizes.ends[level] = end;
  }
  const auto vectors = static_cast<unsigned>(std::min<std::int64_t>(sizes.channels / vector, warp_threads));
  sizes.lanes = static_cast<int>(std::bit_ceil(vectors));
  sizes.slices = ceil_divide(sizes.channels, std::int64_t{sizes.lanes} * vector);
  sizes.groups = value[0] * sizes.heads * sizes.slices * sizes.queries;
  const int most_of_group = prepared_points / (warp_threads / sizes.lanes);
  const auto chunk = std::min(static_cast<unsigned>(most_of_group), std::bit_ceil(static_cast<unsigned>(sizes.points)));
  sizes.chunk_bits = std::countr_zero(chunk);
  return sizes;
}

template <class T, int N>
Status attend_in_vectors(const MultiScaleDeformableAttention& op, const Problem& problem, const Buffers& buffers,
                         const CudaContext& context) {
  if constexpr (N > 1) {
    const bool fits = problem.inputs[0].extents[3] % N == 0 && is_aligned(buffers.inputs[0], N * sizeof(T)) &&
                      is_aligned(buffers.outputs[0], N * sizeof(T));
    if (!fits) return attend_in_vectors<T, N / 2>(op, problem, buffers, context);
  }
  const AttentionSizes sizes = sizes_of(op, problem, N);
  const std::int64_t warps = ceil_divide(sizes.groups, warp_threads / sizes.lanes);
  const Grid grid{.blocks = ceil_divide(warps, attention_warps), .threads = attention_warps * warp_threads};
  return launch(MultiScaleDeformableAttention::name, attend<T, N>, grid, context,
                static_cast<const T*>(buffers.inputs[0]), buffers.inputs[1], static_cast<const T*>(buffers.inputs[2]),
                static_cast<const T*>(buffers.inputs[3]), static_cast<T*>(buffers.outputs[0]), sizes);
}

Status fits_attention(const MultiScaleDeformableAttention& /*op*/, const Problem& /*problem*/) { return {}; }

Status run_attention(const MultiScaleDeformableAttention& op, const Problem& problem, const Buffers& buffers,
                     const CudaContext& context) {
  return dispatch_floats(problem.inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    return attend_in_vectors<T, widest<T>>(op, problem, buffers, context);
  });
}

}  // namespace

std::span<const Variant<MultiScaleDeformableAttention>> cuda_kernels(const MultiScaleDeformableAttention& /*op*/) {
  static constexpr std::array variants{Variant<MultiScaleDeformableAttention>{"groups", fits_attention, run_attention}};
  return variants;
}

}  // namespace graft::ops
