// CUDA kernels of Padding, and the choice between them.
#include <cstring>

#include "graft/operator/float8.hpp"
#include "ops/padding/elements.cuh"
#include "ops/padding/padding.hpp"
#include "ops/padding/rows.cuh"
#include "ops/padding/tiles.cuh"
#include "ops/padding/units.cuh"
#include "ops/padding/vectors.cuh"

namespace graft::ops {
namespace {

constexpr std::size_t vector_bytes = 16;

/// Returns the constant in the type of y, repeated to fill a word.
unsigned outside_of(const Padding& op, DType dtype) {
  unsigned word = 0;
  switch (dtype) {
    case DType::f16: return __half_as_ushort(__float2half_rn(op.value)) * 0x10001U;
    case DType::bf16: return __bfloat16_as_ushort(__float2bfloat16_rn(op.value)) * 0x10001U;
    case DType::i8: return static_cast<std::uint8_t>(quantize(op.value, op.y_scale)) * 0x1010101U;
    case DType::f8e4m3fn: return Float8E4M3FN(static_cast<double>(op.value / op.y_scale)).bits * 0x1010101U;
    default: std::memcpy(&word, &op.value, sizeof(word)); return word;
  }
}

PaddingTask make_task(const Padding& op, const Problem& problem, const Buffers& buffers, bool aligned) {
  // With this factor every step except 0 saturates already.
  constexpr float most = 16384;
  const TensorDesc& x = problem.inputs[0];
  return {.x = static_cast<const std::byte*>(buffers.inputs[0]),
          .y = static_cast<std::byte*>(buffers.outputs[0]),
          .x_bytes = x.storage_bytes(),
          .geometry = make_geometry(op, x, aligned),
          .outside = outside_of(op, x.dtype),
          .ratio = x.dtype == DType::i8 ? std::min(op.x_scale / op.y_scale, most) : 1};
}

/// Returns unsupported if the rows or their units cannot be counted in 31 bits, including the intermediate results of a
/// mirrored index.
Status rows_that_count(const Geometry& geometry) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  bool fits = std::max({geometry.rows, geometry.row_units(), geometry.column.size * geometry.inner}) <= most;
  for (int axis = 0; axis < geometry.outer_rank; ++axis) fits = fits && geometry.outer_maps[axis].size <= most;
  if (fits) return {};
  return unsupported("supports at most 2^30 rows of at most 2^30 elements, found " + std::to_string(geometry.rows) +
                     " of " + std::to_string(geometry.row_units()));
}

Status counts_fit(const Padding& op, const Problem& problem) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  if (Status status = rows_that_count(make_geometry(op, problem.inputs[0], true)); !status.ok()) return status;
  return rows_that_count(make_geometry(op, problem.inputs[0], false));
}

Status elements_fits(const Padding& /*op*/, const Problem& problem) {
  if (problem.inputs[0].layout == Layout::linear) return {};
  return unsupported("supports only the linear layout, found " + std::string(to_string(problem.inputs[0].layout)));
}

Status linear_counts_fit(const Padding& op, const Problem& problem) {
  if (Status status = elements_fits(op, problem); !status.ok()) return status;
  return counts_fit(op, problem);
}

Status elements_run(const Padding& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  return run_elements(make_task(op, problem, buffers, false), context);
}

Status run_fastest(const PaddingTask& task, const CudaContext& context) {
  // "vectors" took at most 1.04 of the time of every other kernel in 65 random problems of 2 and 4 bytes on an H100,
  // except "tiles" for rows of 2-byte elements in large tensors, which took .81 to .98 of the time of "vectors". Longer
  // rows are read in words.
  constexpr std::int64_t few_elements = 1 << 18;
  constexpr std::int64_t many_elements = 1 << 23;
  constexpr std::int64_t long_row = 96;
  const Geometry& geometry = task.geometry;
  const std::int64_t elements = geometry.rows * geometry.row_units();
  const bool is_byte = geometry.unit_bytes == 1;
  if (elements <= (is_byte ? 4 * few_elements : few_elements)) return run_units(task, context);
  if (is_byte && rows_fit(task)) return run_rows(task, context);
  const bool for_tiles = geometry.unit_bytes == 2 && elements > many_elements && geometry.row_units() >= long_row &&
                         geometry.row_units() < detail::VectorsPolicy::long_row;
  if (!for_tiles && !is_byte && detail::PlaneLines::fits(geometry) && vectors_fit(task)) {
    return run_vectors(task, context);
  }
  if (tiles_fit(task)) return run_tiles(task, context);
  return run_units(task, context);
}

Status run_rows_or_units(const PaddingTask& task, const CudaContext& context) {
  return rows_fit(task) ? run_rows(task, context) : run_units(task, context);
}

Status run_vectors_or_units(const PaddingTask& task, const CudaContext& context) {
  return vectors_fit(task) ? run_vectors(task, context) : run_units(task, context);
}

Status run_tiles_or_units(const PaddingTask& task, const CudaContext& context) {
  return tiles_fit(task) ? run_tiles(task, context) : run_units(task, context);
}

template <Status (*Run)(const PaddingTask&, const CudaContext&)>
Status run_task(const Padding& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  const bool aligned = is_aligned(buffers.inputs[0], vector_bytes) && is_aligned(buffers.outputs[0], vector_bytes);
  if (problem.inputs[0].layout != Layout::linear && !aligned) {
    return invalid_argument("Padding: the addresses of hwc8 and chw32 tensors must be multiples of 16");
  }
  return Run(make_task(op, problem, buffers, aligned), context);
}

}  // namespace

std::span<const Variant<Padding>> cuda_kernels(const Padding& /*op*/) {
  static constexpr std::array variants{Variant<Padding>{"fastest", counts_fit, run_task<run_fastest>},
                                       Variant<Padding>{"rows", linear_counts_fit, run_task<run_rows_or_units>},
                                       Variant<Padding>{"vectors", linear_counts_fit, run_task<run_vectors_or_units>},
                                       Variant<Padding>{"tiles", linear_counts_fit, run_task<run_tiles_or_units>},
                                       Variant<Padding>{"units", linear_counts_fit, run_task<run_units>},
                                       Variant<Padding>{"elements", elements_fits, elements_run}};
  return variants;
}

}  // namespace graft::ops
