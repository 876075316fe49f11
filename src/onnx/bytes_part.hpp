// The bytes of a tensor: a part of a larger block, or packed elements.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "onnx/tensor_data.hpp"

namespace graft::onnx {

/// Returns a part of `bytes`: `count` bytes from `begin` on, which share the memory of `bytes`.
[[nodiscard]] inline Bytes part_of(const Bytes& bytes, std::size_t begin, std::size_t count) {
  return {std::make_shared<const Bytes>(bytes), std::span(bytes.data(), bytes.size()).subspan(begin, count)};
}

/// Returns the values as bytes, after converting each value to `Stored`.
template <class Stored, class Numbers>
std::string pack(const Numbers& numbers) {
  std::string bytes(static_cast<std::size_t>(numbers.size()) * sizeof(Stored), '\0');
  char* out = bytes.data();
  for (const auto number : numbers) {
    const auto stored = static_cast<Stored>(number);
    std::memcpy(out, &stored, sizeof stored);
    out += sizeof stored;
  }
  return bytes;
}

}  // namespace graft::onnx
