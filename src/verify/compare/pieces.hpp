// Processes large tensors in pieces, so that no tensor is converted to double as a whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "onnx/tensor_data.hpp"

namespace graft::verify {

/// Returns whether the type is an integer type or boolean, so that its elements can be compared exactly.
[[nodiscard]] inline bool is_whole(onnx::ElementType type) {
  return is_integer(type) || type == onnx::ElementType::boolean;
}
/// Returns whether the elements of the type are numbers that TensorData::numbers() returns.
[[nodiscard]] inline bool is_real(onnx::ElementType type) {
  return is_whole(type) || (is_floating_point(type) && has_numbers(type));
}

/// Returns a 1-D tensor that refers to `count` elements of `tensor` from index `begin` on, without a copy; `tensor`
/// must outlive it. `begin` must lie on a byte boundary: for 4-bit types it must be even.
[[nodiscard]] inline onnx::TensorData piece_of(const onnx::TensorData& tensor, std::int64_t begin, std::int64_t count) {
  const auto bits = static_cast<std::size_t>(bits_of(tensor.type));
  const std::size_t first = static_cast<std::size_t>(begin) * bits / 8;
  const std::size_t size = (static_cast<std::size_t>(count) * bits + 7) / 8;
  onnx::TensorData piece;
  piece.type = tensor.type;
  piece.dims = {count};
  piece.bytes = onnx::Bytes(nullptr, std::span(tensor.bytes.data() + first, size));
  return piece;
}

inline constexpr std::int64_t piece_size = 1 << 16;

/// Calls f(begin, count) for consecutive ranges of at most `piece_size` elements that cover `elements` elements.
inline void for_each_piece(std::int64_t elements, const std::function<void(std::int64_t, std::int64_t)>& f) {
  for (std::int64_t begin = 0; begin < elements; begin += piece_size) f(begin, std::min(piece_size, elements - begin));
}

}  // namespace graft::verify
