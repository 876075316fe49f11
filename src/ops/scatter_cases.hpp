// Types, reductions and tolerances that the cases of ScatterReduceND and ScatterReduceElements share.
#pragma once

#include "core/scatter.hpp"
#include "ops/operator_case.hpp"

namespace graft::ops {

inline constexpr std::array scatter_types{DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};
inline constexpr std::array scatter_reductions{"add", "mul", "min", "max"};

/// Returns the allowed absolute error of a sum of about twenty values of magnitude 1 if each addition rounds to the
/// type.
[[nodiscard]] inline double error_in_any_order(DType dtype) {
  if (dtype == DType::f16) return 0.1;
  if (dtype == DType::bf16) return 0.8;
  return dtype == DType::f32 ? 1e-5 : 0;
}

/// Maps any integer to an index from -size - 1 to size: an index from either end of the axis, or one just outside the
/// range.
template <class Index>
[[nodiscard]] Index as_index(Index any, std::int64_t size) {
  const auto places = static_cast<Index>(2 * size + 2);
  return static_cast<Index>((any % places + places) % places - static_cast<Index>(size) - 1);
}

}  // namespace graft::ops
