// The tensor-core kernels of Convolution for i8.
#include "ops/convolution/tensor_core.cuh"

namespace graft::ops {

template Status launch_tensor_core<std::int8_t>(const TensorCoreTask& task, const TensorCoreChoice& choice,
                                                const CudaContext& context);

}  // namespace graft::ops
