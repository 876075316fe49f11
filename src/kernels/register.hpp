// Connects a definition with its CUDA kernels. The build generates a registry of kernels that calls
// register_cuda_kernels_of() for each operator.
#pragma once

#include <memory>

#include "graft/operator/define_operator.hpp"

namespace graft::detail {

[[nodiscard]] std::shared_ptr<DeviceConstants> new_device_constants();

template <OperatorDefinition D>
void register_cuda_kernels_of() {
  cuda_side<D> = {.kernels = [](const D& definition) { return cuda_kernels(definition); },
                  .runs_on_current_device = &runs_on_current_device,
                  .new_constants = &new_device_constants};
}

}  // namespace graft::detail
