// Broadcasting in kernels of elementwise operators with several inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graft/operator/elementwise.hpp"

namespace graft::ops {

/// Maps the index of an element of the first input to the index of the element of another input that belongs to it.
struct BroadcastIndex {
  std::int64_t inner = 1;  ///< The number of consecutive elements of the first input with the same element.
  std::int64_t count = 1;  ///< The number of elements of the other input.
  GRAFT_HOST_DEVICE constexpr std::int64_t operator()(std::int64_t i) const { return i / inner % count; }
};

/// Returns the index of an input with the sizes `from` that is broadcast to the sizes `to`, as ONNX does. Returns
/// nothing if ONNX does not broadcast it, or if its axes with other sizes than 1 are not consecutive, as in [2, 1, 3]
/// for [2, 4, 3].
[[nodiscard]] inline std::optional<BroadcastIndex> broadcast_index(const Extents& from, const Extents& to) {
  const int before = to.rank() - from.rank();
  if (before < 0) return std::nullopt;
  int first = 0;
  int last = from.rank() - 1;
  while (first <= last && from[first] == 1) ++first;
  while (last >= first && from[last] == 1) --last;
  BroadcastIndex index;
  for (int axis = first; axis <= last; ++axis) {
    if (from[axis] != to[before + axis]) return std::nullopt;
    index.count *= from[axis];
  }
  for (int axis = before + last + 1; axis < to.rank(); ++axis) index.inner *= to[axis];
  // Without elements there is no index, and the divisors must not be 0.
  index.inner = std::max<std::int64_t>(index.inner, 1);
  index.count = std::max<std::int64_t>(index.count, 1);
  return index;
}

/// Fails unless broadcast_index() has an index. The message names the operator and the input.
[[nodiscard]] inline Status check_broadcast(std::string_view op, std::string_view input, const Extents& from,
                                            const Extents& to) {
  if (broadcast_index(from, to)) return {};
  return invalid_argument(std::string(op) + ": `" + std::string(input) + "` is " + to_string(from) +
                          ", allowed is a shape that is broadcast to " + to_string(to));
}

}  // namespace graft::ops
