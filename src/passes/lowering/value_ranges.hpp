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

/// The range of u8: 0 to 255.
inline constexpr ValueRange bytes{0, 255};

/// Returns a range that contains all elements of an integer or boolean tensor, or nothing if no bound is known. A
/// floating-point tensor has a range only if it is the result of a Clip with constant bounds, possibly rounded
/// afterwards.
[[nodiscard]] std::optional<ValueRange> find_range(const onnx::Value& value);

}  // namespace graft::passes
