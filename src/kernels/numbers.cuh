// Dispatches by element type, for kernels that do not quantize: integers and floating-point numbers in their stored
// types.
#pragma once

#include <cstdint>

#include "kernels/vector.cuh"

namespace graft {

/// Calls `f` with a value of the device type that stores `dtype`, one of f32, f16 and bf16.
template <class F>
[[nodiscard]] Status dispatch_floats(DType dtype, F&& f) {
  if (dtype == DType::f16) return f(__half{});
  if (dtype == DType::bf16) return f(__nv_bfloat16{});
  return f(float{});
}

/// Calls `f` with a value of the device type that stores `dtype`, one of f32, f16, bf16, i32 and i64.
template <class F>
[[nodiscard]] Status dispatch_numbers(DType dtype, F&& f) {
  if (dtype == DType::i32) return f(std::int32_t{});
  if (dtype == DType::i64) return f(std::int64_t{});
  return dispatch_floats(dtype, f);
}

}  // namespace graft
