// A piece of a tensor's bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "onnx/tensor_data.hpp"

namespace graft::onnx {

/// `count` bytes from `begin` on, of the same memory.
[[nodiscard]] inline Bytes part_of(const Bytes& bytes, std::size_t begin, std::size_t count) {
  return {std::make_shared<const Bytes>(bytes), std::span(bytes.data(), bytes.size()).subspan(begin, count)};
}

}  // namespace graft::onnx
