// What the cases of ScatterND and ScatterElements share.
#pragma once

#include "ops/operator_case.hpp"
#include "ops/scatter.hpp"

namespace graft::ops {

inline constexpr std::array scatter_types{DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};
inline constexpr std::array scatter_reductions{"add", "mul", "min", "max"};

/// What a sum of some twenty ordinary numbers may lose where each addition rounds to the type.
[[nodiscard]] inline double error_in_any_order(DType dtype) {
  if (dtype == DType::f16) return 0.1;
  if (dtype == DType::bf16) return 0.8;
  return dtype == DType::f32 ? 1e-5 : 0;
}

}  // namespace graft::ops
