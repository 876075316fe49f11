// The number of nodes and the bytes of weights of a model, as every report counts them.
#pragma once

#include <cstdint>

#include "graft/report/model.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

using report::NodeCounts;

[[nodiscard]] NodeCounts count_nodes(const Model& model);

/// Returns the bytes of the initializers and Constant nodes, also in the bodies of nodes, and not in functions.
[[nodiscard]] std::uint64_t bytes_of_weights(const Model& model);

}  // namespace graft::onnx
