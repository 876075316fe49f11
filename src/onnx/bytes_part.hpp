// A part of a tensor's bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "onnx/tensor_data.hpp"

namespace graft::onnx {

/// Returns `count` bytes from `begin` on, which share the memory of `bytes`.
[[nodiscard]] inline Bytes part_of(const Bytes& bytes, std::size_t begin, std::size_t count) {
  return {std::make_shared<const Bytes>(bytes), std::span(bytes.data(), bytes.size()).subspan(begin, count)};
}

}  // namespace graft::onnx
