// Convolution of linear f16, bf16 and i8 through the vector layouts: x and weight are transposed to a vector layout,
// wgmma runs, and its result is transposed back. The transpositions cost little compared with the gain of wgmma.
#include <array>
#include <limits>

#include "ops/convolution/plan.hpp"
#include "ops/convolution/repack.hpp"
#include "ops/convolution/variants.hpp"

namespace graft::ops {

Status repacked_fits(const Convolution& op, const Problem& problem) {
  const TensorDesc& x = problem.inputs[Convolution::x];
  if (x.layout != Layout::linear || x.dtype == DType::f32)
    return unsupported("supports f16, bf16 and i8 in the linear layout");
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 4;
  for (const TensorDesc& desc : {x, problem.inputs[Convolution::weight], problem.outputs[0]}) {
    if (desc.extents.element_count() / 256 > most || desc.extents[0] * desc.extents[1] > most) {
      return unsupported("supports tensors of up to 2^37 elements");
    }
  }
  const ConvolutionPlan plan = plan_convolution(op, problem);
  if (plan.axis[0].in != 1 || plan.axis[0].kernel != 1 || plan.axis[0].out != 1) {
    return unsupported("supports 1 or 2 spatial axes");
  }
  const VectorProblem vectors(problem);
  return wgmma_fits(op, vectors.problem());
}

Status repacked_run(const Convolution& op, const Problem& problem, const Buffers& buffers, const CudaContext& context) {
  if (problem.outputs[0].extents.element_count() == 0) return {};
  const VectorProblem vectors(problem);
  const DType dtype = vectors.inputs[Convolution::x].dtype;
  auto* const workspace = static_cast<char*>(buffers.workspace);
  RepackJob x = RepackJob::of(dtype, vectors.inputs[Convolution::x].extents, buffers.inputs[Convolution::x]);
  RepackJob weight =
      RepackJob::of(dtype, vectors.inputs[Convolution::weight].extents, buffers.inputs[Convolution::weight]);
  RepackJob y = RepackJob::of(dtype, vectors.outputs[0].extents, buffers.outputs[0]);
  x.from = buffers.inputs[Convolution::x];
  x.to = workspace;
  weight.from = buffers.inputs[Convolution::weight];
  weight.to = workspace + vectors.weight;
  y.from = workspace + vectors.y;
  y.to = buffers.outputs[0];
  if (Status status = run_repack(dtype, false, x, weight, context); !status.ok()) return status;
  const std::array<const void*, 4> from{x.to, weight.to, buffers.inputs[Convolution::bias],
                                        buffers.inputs[Convolution::scale]};
  const std::array<void*, 1> to{workspace + vectors.y};
  if (Status status = wgmma_run(op, vectors.problem(), {from, to, nullptr}, context); !status.ok()) {
    return status;
  }
  return run_repack(dtype, true, y, {}, context);
}

}  // namespace graft::ops
