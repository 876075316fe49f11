// The smallest and the largest value that integers can have, as far as the graph shows.
#pragma once

#include <cstdint>
#include <optional>

#include "onnx/model.hpp"

namespace graft::passes {

struct ValueRange {
  std::int64_t low = 0;
  std::int64_t high = 0;

  [[nodiscard]] bool is_within(const ValueRange& other) const { return low >= other.low && high <= other.high; }
};

/// The values of u8.
inline constexpr ValueRange bytes{0, 255};

/// Returns a range that holds all elements of a tensor of integers or booleans, or nothing if no bound is known. A
/// floating-point tensor has a range only where it is the result of a Clip with constant bounds, rounded or not.
[[nodiscard]] std::optional<ValueRange> find_range(const onnx::Value& value);

}  // namespace graft::passes
