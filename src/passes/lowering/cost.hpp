// The rough cost of running nodes, to compare a lowering with a plugin.
#pragma once

#include <cstdint>
#include <string>

#include "onnx/model.hpp"

namespace graft::passes {

struct Cost {
  std::int64_t layers = 0;
  std::int64_t written = 0;     ///< Elements that nodes write, except results that only have another shape.
  std::int64_t operations = 0;  ///< Additions, multiplications, comparisons and the like.
  bool is_known = true;         ///< Whether all sizes are known.
};

/// Returns the total cost of the nodes of a graph. Dynamic sizes count as 1, and `is_known` is then false. Shapes must
/// have been inferred.
[[nodiscard]] Cost cost_of(const onnx::Graph& graph);

/// Returns a cost as a string for reports: "12 layers, 3.2e+06 operations, 8.1e+04 elements written".
[[nodiscard]] std::string to_string(const Cost& cost);

}  // namespace graft::passes
