// The rough cost of running nodes, to compare a lowering with a plugin.
#pragma once

#include <cstdint>
#include <string>

#include "onnx/model.hpp"

namespace graft::passes {

struct Cost {
  std::int64_t layers = 0;
  std::int64_t written = 0;     ///< Elements of the results, without those that only get another shape.
  std::int64_t operations = 0;  ///< Additions, multiplications, comparisons and the like.
  bool is_known = true;         ///< Whether all sizes are known.
};

/// Returns the cost of all nodes of a graph, with the shapes that infer_shapes found and 1 for each dynamic size.
[[nodiscard]] Cost cost_of(const onnx::Graph& graph);

/// Returns "12 layers, 3.2e+06 operations, 8.1e+04 elements written".
[[nodiscard]] std::string to_string(const Cost& cost);

}  // namespace graft::passes
