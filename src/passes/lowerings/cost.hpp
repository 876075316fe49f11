// What nodes cost to run, roughly: to compare a lowering with a plugin.
#pragma once

#include <cstdint>
#include <string>

#include "onnx/model.hpp"

namespace graft::passes {

struct Cost {
  std::int64_t layers = 0;
  std::int64_t written = 0;     ///< Elements of the results; what only has another shape is not written.
  std::int64_t operations = 0;  ///< Additions, multiplications, comparisons and the like.
  bool is_known = true;         ///< False where a size is not known.
};

/// Of all nodes of a graph with the shapes that infer_shapes found, with 1 in the place of each open size.
[[nodiscard]] Cost cost_of(const onnx::Graph& graph);

/// "12 layers, 3.2e+06 operations, 8.1e+04 elements written".
[[nodiscard]] std::string to_string(const Cost& cost);

}  // namespace graft::passes
