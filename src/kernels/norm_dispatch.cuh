// Selects the element type and the access width for which a kernel for norms is compiled.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/norm.cuh"
#include "kernels/vector.cuh"

namespace graft::kernels {

/// Calls `f(x, y)` with the addresses of the input and the output as pointers to the element type.
template <class F>
[[nodiscard]] Status with_types(const NormTask& task, F&& f) {
  return dispatch_device(task.desc.dtype, [&](auto element) {
    using T = decltype(element);
    return f(static_cast<const T*>(task.x), static_cast<T*>(task.y));
  });
}

/// Calls `f` with the number of elements in one access as a constant: as many as fill 128 bits, or `Narrow`, or one.
template <class T, int Narrow = widest<T>, class F>
[[nodiscard]] Status with_width(const NormTask& task, F&& f) {
  const std::int64_t inner = task.aligned ? innermost(task.plan) : 1;
  if (inner % widest<T> == 0) return f(std::integral_constant<int, widest<T>>{});
  if constexpr (Narrow < widest<T>) {
    if (inner % Narrow == 0) return f(std::integral_constant<int, Narrow>{});
  }
  return f(std::integral_constant<int, 1>{});
}

}  // namespace graft::kernels
