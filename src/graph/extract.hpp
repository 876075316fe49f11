// Cuts a region out of a graph, as a model that runs on its own.
#pragma once

#include <vector>

#include "graph/model.hpp"

namespace graft {

/// Everything between `inputs` and `outputs`: the nodes that the outputs need, going back to the inputs and to
/// constants. The inputs and outputs keep their names, types and shapes; functions that are called come along. Throws
/// Error if an output depends on a value that is neither an input nor a constant, naming it, or if an input's element
/// type is unknown (run infer_shapes first).
[[nodiscard]] Model extract(const Model& model, const std::vector<const Value*>& inputs,
                            const std::vector<const Value*>& outputs);

}  // namespace graft
