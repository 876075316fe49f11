// Building blocks of reference kernels: elements of any type as doubles, and a loop over whole tensors.
#pragma once

#include <Eigen/Core>
#include <concepts>
#include <cstdint>

#include "graft/operator/define_operator.hpp"
#include "graft/operator/float8.hpp"
#include "graft/operator/quantization.hpp"

namespace graft::ops {

/// Returns an element as a double. i8 and f8e4m3fn elements are multiplied by `scale`; other types ignore it.
template <class Element>
[[nodiscard]] double load(Element value, [[maybe_unused]] double scale) {
  if constexpr (std::same_as<Element, std::int8_t>)
    return scale * static_cast<double>(value);
  else if constexpr (std::same_as<Element, Float8E4M3FN>)
    return scale * static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(static_cast<float>(value));
}

/// Rounds a double to an element. For i8 and f8e4m3fn the value is divided by `scale` first; other types ignore it.
template <class Element>
[[nodiscard]] Element store(double value, [[maybe_unused]] double scale) {
  if constexpr (std::same_as<Element, std::int8_t>)
    return quantize(value, scale);
  else if constexpr (std::same_as<Element, Float8E4M3FN>)
    return Float8E4M3FN(value / scale);
  else if constexpr (std::same_as<Element, float>)
    return static_cast<float>(value);
  else
    return static_cast<Element>(static_cast<float>(value));
}

/// Calls `f` with a value of the C++ type that stores `dtype`, for f32, f16, bf16 and i8.
template <class F>
[[nodiscard]] Status dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f16: return f(Eigen::half{});
    case DType::bf16: return f(Eigen::bfloat16{});
    case DType::i8: return f(std::int8_t{});
    default:
      return unsupported("the reference kernels compute in f32, f16, bf16 and i8, found " +
                         std::string(to_string(dtype)));
  }
}

/// Calls `f` with a value of the C++ type that stores `dtype`, for f32, f16, bf16, i8 and f8e4m3fn. Used by the
/// operators that support f8e4m3fn.
template <class F>
[[nodiscard]] Status dispatch_and_f8(DType dtype, F&& f) {
  if (dtype == DType::f8e4m3fn) return f(Float8E4M3FN{});
  return dispatch(dtype, f);
}

/// Calls `f` with a value of the C++ type that stores `dtype`, for f32, f16, bf16, i8 and the integer types without a
/// scale: i32, i64, u8 and boolean.
template <class F>
[[nodiscard]] Status dispatch_any(DType dtype, F&& f) {
  switch (dtype) {
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u8:
    case DType::boolean: return f(std::uint8_t{});
    default: return dispatch(dtype, f);
  }
}

/// Writes a size that depends on the data to a size output of type `dtype`, i32 or i64.
inline void store_size(DType dtype, std::int64_t size, void* output) {
  if (dtype == DType::i32) {
    *static_cast<std::int32_t*>(output) = static_cast<std::int32_t>(size);
  } else {
    *static_cast<std::int64_t*>(output) = size;
  }
}

/// Computes y[i] = op.apply(x[i]) in double, for a definition derived from Elementwise.
template <class Definition>
[[nodiscard]] Status elementwise_cpu(const Definition& op, const Problem& problem, const Buffers& buffers,
                                     const CpuContext& context) {
  return dispatch_and_f8(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    context.parallel_for(problem.inputs[0].storage_count(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = store<Element>(op.apply(load(x[i], op.x_scale)), op.y_scale);
    });
    return {};
  });
}

}  // namespace graft::ops
