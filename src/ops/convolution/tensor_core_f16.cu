// The tensor-core kernels of Convolution for f16.
#include "ops/convolution/tensor_core.cuh"

namespace graft::ops {

template Status launch_tensor_core<__half>(const TensorCoreTask& task, const TensorCoreChoice& choice,
                                           const CudaContext& context);

}  // namespace graft::ops
