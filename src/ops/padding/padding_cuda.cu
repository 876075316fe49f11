// CUDA kernels of Padding: which of them takes which problem.
#include <cstring>

#include "ops/padding/elements.cuh"
#include "ops/padding/padding.hpp"
#include "ops/padding/stream.cuh"

namespace graft {
namespace {

constexpr std::size_t vector_bytes = 16;

/// The constant as its type stores it, in each element of 16 bytes.
uint4 outside_of(const Padding& op, DType dtype) {
  unsigned word = 0;
  switch (dtype) {
    case DType::f16: word = __half_as_ushort(__float2half_rn(op.value)) * 0x10001U; break;
    case DType::bf16: word = __bfloat16_as_ushort(__float2bfloat16_rn(op.value)) * 0x10001U; break;
    case DType::i8: word = static_cast<std::uint8_t>(quantize(op.value, op.y_scale)) * 0x1010101U; break;
    default: std::memcpy(&word, &op.value, sizeof(word)); break;
  }
  return make_uint4(word, word, word, word);
}

PaddingTask make_task(const Padding& op, const Problem& problem, const Buffers& buffers, bool aligned) {
  // Beyond this factor every step but 0 saturates.
  constexpr float most = 16384;
  const TensorDesc& x = problem.inputs[0];
  return {.x = static_cast<const std::byte*>(buffers.inputs[0]),
          .y = static_cast<std::byte*>(buffers.outputs[0]),
          .x_bytes = x.storage_bytes(),
          .geometry = make_geometry(op, x, aligned),
          .outside = outside_of(op, x.dtype),
          .ratio = x.dtype == DType::i8 ? std::min(op.x_scale / op.y_scale, most) : 1};
}

Status wants_rows_that_count(const Geometry& geometry) {
  if (stream_fits(geometry)) return {};
  return unsupported("takes rows of fewer than 2^31 / 16 elements, found " + std::to_string(geometry.row_units()));
}

Status stream_fits_problem(const Padding& op, const Problem& problem) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  if (Status status = wants_rows_that_count(make_geometry(op, problem.inputs[0], true)); !status.ok()) return status;
  return wants_rows_that_count(make_geometry(op, problem.inputs[0], false));
}

Status elements_fits(const Padding& /*op*/, const Problem& problem) {
  if (problem.inputs[0].layout == Layout::linear) return {};
  return unsupported("takes linear, found " + std::string(to_string(problem.inputs[0].layout)));
}

Status elements_run(const Padding& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  return run_elements(make_task(op, problem, buffers, false), context);
}

Status stream_run(const Padding& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  const bool x_aligned = is_aligned(buffers.inputs[0], vector_bytes);
  if (problem.inputs[0].layout != Layout::linear && !(x_aligned && is_aligned(buffers.outputs[0], vector_bytes))) {
    return invalid_argument("Padding: hwc8 and chw32 tensors must lie at multiples of 16 bytes");
  }
  if (!is_aligned(buffers.outputs[0], vector_bytes)) return elements_run(op, problem, buffers, context);
  DeviceTraits device;
  if (Status status = current_device(device); !status.ok()) return status;
  return run_stream(make_task(op, problem, buffers, x_aligned), device, context);
}

}  // namespace

std::span<const Variant<Padding>> cuda_kernels(const Padding& /*op*/) {
  static constexpr std::array variants{Variant<Padding>{"stream", stream_fits_problem, stream_run},
                                       Variant<Padding>{"elements", elements_fits, elements_run}};
  return variants;
}

}  // namespace graft
