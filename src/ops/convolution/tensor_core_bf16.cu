// The tensor-core kernels of Convolution for bf16.
#include "ops/convolution/tensor_core.cuh"

namespace graft::ops {

template Status launch_tensor_core<__nv_bfloat16>(const TensorCoreTask& task, const TensorCoreChoice& choice,
                                                  const CudaContext& context);

}  // namespace graft::ops
