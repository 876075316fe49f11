// Dispatches to f8e4m3fn on the device, for kernels that support it.
#pragma once

#include <cuda_fp8.h>

#include "kernels/vector.cuh"

namespace graft {

/// Calls `f` with a value of the device type that stores `dtype`: f8e4m3fn, or a type for which dispatch_device() calls
/// it. The conversion from float to the type of f8e4m3fn saturates as Float8E4M3FN does.
template <class F>
[[nodiscard]] Status dispatch_device_and_f8(DType dtype, F&& f) {
  if (dtype == DType::f8e4m3fn) return f(__nv_fp8_e4m3{});
  return dispatch_device(dtype, f);
}

}  // namespace graft
